//! Reads of tools: by name, by id, for lists, and the search over thousands.

use std::collections::HashMap;

use super::error::corrupt;
use super::rows::{ToolColumns, ToolWithVersionColumns, VersionColumns};
use super::{Store, StoreError};
use crate::model::{Language, PrincipalId, Timestamp, Tool, ToolId, ToolName, ToolVersion, ToolsetId, VersionNumber};

/// The most words of a text that are searched for.
const WORDS: usize = 64;

/// A version without its code and schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionSummary {
    /// Its number.
    pub number: VersionNumber,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// What it is written in.
    pub language: Language,
    /// Free words to search by.
    pub tags: Vec<String>,
    /// BLAKE3 over the canonical JSON of the definition, hex.
    pub fingerprint: String,
    /// When it was saved.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened.
    pub note: String,
}

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct ToolSearch {
    /// Words as a person types them; a tool matches that has any of them, in whatever form or as the beginning of one,
    /// in name, title, description, tags or what is said of its arguments, or that has the whole text somewhere in its
    /// name. The rarer the words, and the more of them, the better. Blank: every tool.
    pub text: String,
    /// Tags that the tool must have, in any case of A to Z.
    pub tags: Vec<String>,
    /// Whose tools; `None`: everybody's.
    pub owner: Option<PrincipalId>,
    /// Tools inside this toolset.
    pub toolset: Option<ToolsetId>,
    /// Whether to find tools that are switched off too.
    pub include_disabled: bool,
    /// How many to return at most.
    pub limit: u32,
    /// How many to skip.
    pub offset: u32,
}

/// A tool that was found, with its latest version.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTool {
    /// The tool.
    pub tool: Tool,
    /// Its latest version.
    pub latest: VersionSummary,
}

/// One page of a search: the best match first, and among equals the last updated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundTools {
    /// The page.
    pub tools: Vec<FoundTool>,
    /// How many match in all; 0 on a page behind the last.
    pub total: u64,
}

impl Store {
    /// The catalogue's generation: it grows with every change to a tool, by any process.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn catalog_generation(&self) -> Result<u64, StoreError> {
        let generation =
            sqlx::query_scalar!("SELECT catalog_generation FROM meta WHERE id = 1").fetch_one(self.read()).await?;
        u64::try_from(generation).map_err(|_| corrupt("catalogue generation", generation))
    }

    /// The tool with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn get_tool(&self, id: &ToolId) -> Result<Option<Tool>, StoreError> {
        let row = sqlx::query_as!(
            ToolColumns,
            r#"SELECT id, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at,
                      updated_at
               FROM tools WHERE id = $1"#,
            id.0
        )
        .fetch_optional(self.read())
        .await?;
        Ok(row.map(Tool::from))
    }

    /// The tool of exactly this name.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn get_tool_by_name(&self, name: &str) -> Result<Option<Tool>, StoreError> {
        let row = sqlx::query_as!(
            ToolColumns,
            r#"SELECT id, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at,
                      updated_at
               FROM tools WHERE name = $1"#,
            name
        )
        .fetch_optional(self.read())
        .await?;
        Ok(row.map(Tool::from))
    }

    /// One version of a tool.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_version(&self, tool: &ToolId, number: VersionNumber) -> Result<Option<ToolVersion>, StoreError> {
        sqlx::query_as!(
            VersionColumns,
            "SELECT tool, number, fingerprint, created_at, created_by, note, definition FROM tool_versions
             WHERE tool = $1 AND number = $2",
            tool.0,
            number
        )
        .fetch_optional(self.read())
        .await?
        .map(ToolVersion::try_from)
        .transpose()
    }

    /// The versions of a tool without their code, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_versions(&self, tool: &ToolId) -> Result<Vec<VersionSummary>, StoreError> {
        sqlx::query_as!(
            SummaryColumns,
            "SELECT number, title, description, language, tags, fingerprint, created_at, created_by, note
             FROM tool_versions WHERE tool = $1 ORDER BY number DESC",
            tool.0
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(VersionSummary::try_from)
        .collect()
    }

    /// A principal's enabled tools that have a serving version, with that version; the last updated first. Only those
    /// inside the toolset, where one is named.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn visible_tools(
        &self,
        owner: &PrincipalId,
        toolset: Option<&ToolsetId>,
    ) -> Result<Vec<(Tool, ToolVersion)>, StoreError> {
        let toolset = toolset.map(|toolset| toolset.0.as_str());
        sqlx::query_as!(
            ToolWithVersionColumns,
            r#"SELECT t.id, t.name, t.owner, t.enabled AS "enabled!: bool", t.serving_version, t.latest_version,
                      t.created_at, t.updated_at, v.number, v.fingerprint, v.created_at AS version_created_at,
                      v.created_by, v.note, v.definition
               FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.serving_version
               WHERE t.owner = $1 AND t.enabled = 1
                 AND ($2 IS NULL OR t.id IN (SELECT tool FROM toolset_tools WHERE toolset = $2))
               ORDER BY t.updated_at DESC, t.id DESC"#,
            owner.0,
            toolset
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(TryInto::try_into)
        .collect()
    }

    /// The latest versions of these tools, by tool. Those that are gone are left out.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn latest_versions(&self, tools: &[ToolId]) -> Result<HashMap<ToolId, ToolVersion>, StoreError> {
        let tools = serde_json::to_string(tools).map_err(|source| StoreError::Encode { what: "tool ids", source })?;
        sqlx::query_as!(
            VersionColumns,
            r#"SELECT v.tool, v.number AS "number!", v.fingerprint, v.created_at, v.created_by, v.note, v.definition
               FROM json_each($1) wanted
               JOIN tools t ON t.id = wanted.value
               JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version"#,
            tools
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(|row| ToolVersion::try_from(row).map(|version| (version.tool.clone(), version)))
        .collect()
    }

    /// The names of a principal's tools and how they fold, for the warning about names that hide each other.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn folded_names(&self, owner: &PrincipalId) -> Result<Vec<(ToolName, String)>, StoreError> {
        let rows = sqlx::query!("SELECT name, folded_name FROM tools WHERE owner = $1 ORDER BY name", owner.0)
            .fetch_all(self.read())
            .await?;
        Ok(rows.into_iter().map(|row| (ToolName::from_stored(row.name), row.folded_name)).collect())
    }

    /// Finds tools by text and tags.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn search_tools(&self, search: &ToolSearch) -> Result<FoundTools, StoreError> {
        let text = search.text.replace('\0', " ");
        let text = text.trim();
        let (words, part_of_name) = (match_expression(text), text.to_ascii_lowercase());
        let tags: Vec<String> = search.tags.iter().map(|tag| tag.to_ascii_lowercase()).collect();
        let tags = serde_json::to_string(&tags).map_err(|source| StoreError::Encode { what: "tags", source })?;
        let owner = search.owner.as_ref().map(|owner| owner.0.as_str());
        let toolset = search.toolset.as_ref().map(|toolset| toolset.0.as_str());
        let rows = sqlx::query_as!(
            FoundColumns,
            r#"SELECT t.id, t.name, t.owner, t.enabled AS "enabled!: bool", t.serving_version, t.latest_version,
                      t.created_at, t.updated_at, v.title, v.description, v.language, v.tags, v.fingerprint,
                      v.created_at AS version_created_at, v.created_by, v.note, COUNT(*) OVER () AS "total!: i64"
               FROM tools t
               JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version
               LEFT JOIN (SELECT tool, bm25(tool_search, 0.0, 10.0, 5.0, 3.0, 5.0, 1.0) AS score FROM tool_search
                          WHERE tool_search MATCH $1) found ON found.tool = t.id
               WHERE ($2 = '' OR found.tool IS NOT NULL OR instr(lower(t.name), $2) > 0)
                 AND ($3 IS NULL OR t.owner = $3)
                 AND ($4 OR t.enabled = 1)
                 AND NOT EXISTS (SELECT 1 FROM json_each($5) wanted WHERE wanted.value NOT IN
                                 (SELECT lower(has.value) FROM json_each(v.tags) has))
                 AND ($8 IS NULL OR t.id IN (SELECT tool FROM toolset_tools WHERE toolset = $8))
               ORDER BY COALESCE(found.score, 0.0), t.updated_at DESC, t.id DESC
               LIMIT $6 OFFSET $7"#,
            words,
            part_of_name,
            owner,
            search.include_disabled,
            tags,
            search.limit,
            search.offset,
            toolset
        )
        .fetch_all(self.read())
        .await?;
        let total = rows.first().map_or(0, |row| row.total.unsigned_abs());
        let tools = rows.into_iter().map(FoundTool::try_from).collect::<Result<_, _>>()?;
        Ok(FoundTools { tools, total })
    }
}

/// The words that say nothing of what is searched for, as long as there are others.
const FILLERS: [&str; 24] = [
    "a", "an", "and", "any", "are", "at", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it", "my", "of",
    "on", "or", "the", "this", "to", "with",
];

/// Turns what a person typed into a full-text query that means any of these words and nothing else: each stands in
/// quotes, so that no operator works, and a long one may be the beginning of a longer word.
fn match_expression(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).collect();
    let filler = |word: &&&str| FILLERS.contains(&word.to_ascii_lowercase().as_str());
    let telling = words.iter().any(|word| !filler(&word));
    let words = words.iter().filter(|word| !(telling && filler(word)));
    let quoted = words.take(WORDS).map(|word| {
        let begins = if word.chars().count() > 2 { "*" } else { "" };
        format!("\"{}\"{begins}", word.replace('"', "\"\""))
    });
    let quoted: Vec<String> = quoted.collect();
    if quoted.is_empty() { "\"\"".to_owned() } else { quoted.join(" OR ") }
}

struct SummaryColumns {
    number: VersionNumber,
    title: Option<String>,
    description: String,
    language: String,
    tags: String,
    fingerprint: String,
    created_at: i64,
    created_by: String,
    note: String,
}

impl TryFrom<SummaryColumns> for VersionSummary {
    type Error = StoreError;

    fn try_from(row: SummaryColumns) -> Result<Self, StoreError> {
        Ok(Self {
            number: row.number,
            title: row.title,
            description: row.description,
            language: Language::parse(&row.language).ok_or_else(|| corrupt("language", &row.language))?,
            tags: serde_json::from_str(&row.tags).map_err(|error| corrupt("tags", error))?,
            fingerprint: row.fingerprint,
            created_at: Timestamp(row.created_at),
            created_by: PrincipalId(row.created_by),
            note: row.note,
        })
    }
}

struct FoundColumns {
    id: String,
    name: String,
    owner: String,
    enabled: bool,
    serving_version: Option<VersionNumber>,
    latest_version: VersionNumber,
    created_at: i64,
    updated_at: i64,
    title: Option<String>,
    description: String,
    language: String,
    tags: String,
    fingerprint: String,
    version_created_at: i64,
    created_by: String,
    note: String,
    total: i64,
}

impl TryFrom<FoundColumns> for FoundTool {
    type Error = StoreError;

    fn try_from(row: FoundColumns) -> Result<Self, StoreError> {
        let latest = SummaryColumns {
            number: row.latest_version,
            title: row.title,
            description: row.description,
            language: row.language,
            tags: row.tags,
            fingerprint: row.fingerprint,
            created_at: row.version_created_at,
            created_by: row.created_by,
            note: row.note,
        };
        let tool = ToolColumns {
            id: row.id,
            name: row.name,
            owner: row.owner,
            enabled: row.enabled,
            serving_version: row.serving_version,
            latest_version: row.latest_version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        Ok(Self { tool: tool.into(), latest: latest.try_into()? })
    }
}
