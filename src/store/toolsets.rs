//! Toolsets, what is inside them, and who is limited to them.

use sqlx::SqliteConnection;

use super::contents::{Subject, tell};
use super::error::corrupt;
use super::tools::advance_catalog;
use super::{AuditEntry, Store, StoreError};
use crate::model::{ContentId, PrincipalId, Timestamp, ToolId, Toolset, ToolsetId, ToolsetSettings};

/// A toolset as it is to be.
#[derive(Clone, Debug, Default)]
pub struct ToolsetWrite {
    /// What it is.
    pub settings: ToolsetSettings,
    /// The ids of the tools and saved content that are inside by hand.
    pub members: Vec<String>,
}

/// Something that is inside a toolset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsetMember {
    /// `tool`, `resource`, `prompt` or `skill`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Whether it is inside by hand.
    pub by_hand: bool,
}

struct ToolsetColumns {
    id: String,
    name: String,
    owner: String,
    description: String,
    instructions: String,
    tags: String,
    everything: bool,
    search: bool,
    portable: bool,
    revision: i64,
    created_at: i64,
    updated_at: i64,
}

impl TryFrom<ToolsetColumns> for Toolset {
    type Error = StoreError;

    fn try_from(row: ToolsetColumns) -> Result<Self, StoreError> {
        let settings = ToolsetSettings {
            description: row.description,
            instructions: row.instructions,
            tags: serde_json::from_str(&row.tags).map_err(|error| corrupt("tags of a toolset", error))?,
            everything: row.everything,
            search: row.search,
            portable: row.portable,
        };
        Ok(Self {
            id: ToolsetId(row.id),
            name: row.name,
            owner: PrincipalId(row.owner),
            settings,
            revision: row.revision,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        })
    }
}

impl Store {
    /// Makes a toolset, with its entry in the audit log.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`]; [`StoreError::Database`].
    pub async fn create_toolset(
        &self,
        (owner, name): (&PrincipalId, &str),
        new: &ToolsetWrite,
        entry: &AuditEntry,
    ) -> Result<Toolset, StoreError> {
        let mut transaction = self.write().await?;
        let taken = sqlx::query_scalar!("SELECT owner FROM toolsets WHERE name = $1", name)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(owner) = taken {
            return Err(StoreError::NameTaken { owner: PrincipalId(owner) });
        }
        let now = self.clock.now();
        let toolset = Toolset {
            id: ToolsetId(self.clock.new_id().to_string()),
            name: name.to_owned(),
            owner: owner.clone(),
            settings: new.settings.clone(),
            revision: 1,
            created_at: now,
            updated_at: now,
        };
        let (settings, tags) = (&toolset.settings, encode_tags(&toolset.settings)?);
        sqlx::query!(
            "INSERT INTO toolsets (id, name, owner, description, instructions, tags, everything, search, portable,
                                   revision, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $10)",
            toolset.id.0,
            name,
            owner.0,
            settings.description,
            settings.instructions,
            tags,
            settings.everything,
            settings.search,
            settings.portable,
            now.0
        )
        .execute(&mut *transaction)
        .await?;
        self.toolset_written(&mut transaction, (&toolset, &new.members), entry).await?;
        transaction.commit().await?;
        Ok(toolset)
    }

    /// Changes a toolset, if `expected` still is its revision.
    ///
    /// # Errors
    /// [`StoreError::NoSuchToolset`], [`StoreError::VersionConflict`]; [`StoreError::Database`].
    pub async fn update_toolset(
        &self,
        (id, expected): (&ToolsetId, i64),
        new: &ToolsetWrite,
        entry: &AuditEntry,
    ) -> Result<Toolset, StoreError> {
        let mut transaction = self.write().await?;
        let before = load(&mut transaction, id).await?.ok_or(StoreError::NoSuchToolset)?;
        if before.revision != expected {
            return Err(StoreError::VersionConflict { expected, latest: before.revision });
        }
        let now = self.clock.now();
        let toolset =
            Toolset { settings: new.settings.clone(), revision: before.revision + 1, updated_at: now, ..before };
        let (settings, tags) = (&toolset.settings, encode_tags(&toolset.settings)?);
        sqlx::query!(
            "UPDATE toolsets SET description = $2, instructions = $3, tags = $4, everything = $5, search = $6,
                                 portable = $7, revision = $8, updated_at = $9 WHERE id = $1",
            toolset.id.0,
            settings.description,
            settings.instructions,
            tags,
            settings.everything,
            settings.search,
            settings.portable,
            toolset.revision,
            now.0
        )
        .execute(&mut *transaction)
        .await?;
        self.toolset_written(&mut transaction, (&toolset, &new.members), entry).await?;
        transaction.commit().await?;
        Ok(toolset)
    }

    /// Deletes a toolset, if `expected` still is its revision and no token that still counts is limited to it; what was
    /// inside stays.
    ///
    /// # Errors
    /// [`StoreError::NoSuchToolset`], [`StoreError::VersionConflict`], [`StoreError::ToolsetInUse`];
    /// [`StoreError::Database`].
    pub async fn delete_toolset(
        &self,
        (id, expected): (&ToolsetId, Option<i64>),
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        let toolset = load(&mut transaction, id).await?.ok_or(StoreError::NoSuchToolset)?;
        if let Some(expected) = expected.filter(|expected| *expected != toolset.revision) {
            return Err(StoreError::VersionConflict { expected, latest: toolset.revision });
        }
        let now = self.clock.now();
        let tokens = sqlx::query_scalar!(
            r#"SELECT COUNT(*) AS "count!: i64" FROM tokens
               WHERE toolset = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)"#,
            id.0,
            now.0
        )
        .fetch_one(&mut *transaction)
        .await?;
        if tokens > 0 {
            return Err(StoreError::ToolsetInUse { tokens });
        }
        sqlx::query!("DELETE FROM toolsets WHERE id = $1", id.0).execute(&mut *transaction).await?;
        self.toolset_changed(&mut transaction, &toolset.owner, entry).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn toolset_written(
        &self,
        connection: &mut SqliteConnection,
        (toolset, members): (&Toolset, &[String]),
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        sqlx::query!("DELETE FROM toolset_members WHERE toolset = $1", toolset.id.0).execute(&mut *connection).await?;
        for member in members {
            join(&mut *connection, &toolset.id, member).await?;
        }
        self.toolset_changed(connection, &toolset.owner, entry).await
    }

    /// Whoever acts within a toolset sees other tools and other content now.
    async fn toolset_changed(
        &self,
        connection: &mut SqliteConnection,
        owner: &PrincipalId,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        advance_catalog(&mut *connection, now).await?;
        for subject in [Subject::Prompts, Subject::Resources] {
            tell(&mut *connection, owner, (Some(subject), None), now).await?;
        }
        self.record(connection, entry).await?;
        Ok(())
    }

    /// The toolset with this id.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_toolset(&self, id: &ToolsetId) -> Result<Option<Toolset>, StoreError> {
        let mut connection = self.read().acquire().await?;
        load(&mut connection, id).await
    }

    /// The toolset of this name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn get_toolset_by_name(&self, name: &str) -> Result<Option<Toolset>, StoreError> {
        sqlx::query_as!(
            ToolsetColumns,
            r#"SELECT id, name, owner, description, instructions, tags, everything AS "everything!: bool",
                      search AS "search!: bool", portable AS "portable!: bool", revision, created_at, updated_at
               FROM toolsets WHERE name = $1"#,
            name
        )
        .fetch_optional(self.read())
        .await?
        .map(Toolset::try_from)
        .transpose()
    }

    /// The toolsets of a principal, or everybody's, by name.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_toolsets(&self, owner: Option<&PrincipalId>) -> Result<Vec<Toolset>, StoreError> {
        let owner = owner.map(|owner| owner.0.as_str());
        sqlx::query_as!(
            ToolsetColumns,
            r#"SELECT id, name, owner, description, instructions, tags, everything AS "everything!: bool",
                      search AS "search!: bool", portable AS "portable!: bool", revision, created_at, updated_at
               FROM toolsets WHERE $1 IS NULL OR owner = $1 ORDER BY name"#,
            owner
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(Toolset::try_from)
        .collect()
    }

    /// Everything that is inside a toolset, by kind and name.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn toolset_members(&self, id: &ToolsetId) -> Result<Vec<ToolsetMember>, StoreError> {
        let rows = sqlx::query_as!(
            ToolsetMember,
            r#"SELECT 'tool' AS "kind!: String", t.name AS "name!: String", t.id AS "id!: String",
                      EXISTS (SELECT 1 FROM toolset_members m WHERE m.toolset = $1 AND m.subject = t.id)
                          AS "by_hand!: bool"
               FROM toolset_tools i JOIN tools t ON t.id = i.tool WHERE i.toolset = $1
               UNION ALL
               SELECT c.kind, c.name, c.id,
                      EXISTS (SELECT 1 FROM toolset_members m WHERE m.toolset = $1 AND m.subject = c.id)
               FROM toolset_contents i JOIN contents c ON c.id = i.content WHERE i.toolset = $1
               ORDER BY 1, 2"#,
            id.0
        )
        .fetch_all(self.read())
        .await?;
        Ok(rows)
    }

    /// How many enabled tools of a principal's have a serving version, inside a toolset where one is named.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn count_visible_tools(
        &self,
        owner: &PrincipalId,
        toolset: Option<&ToolsetId>,
    ) -> Result<i64, StoreError> {
        let toolset = toolset.map(|toolset| toolset.0.as_str());
        let count = sqlx::query_scalar!(
            r#"SELECT COUNT(*) AS "count!: i64" FROM tools t
               WHERE t.owner = $1 AND t.enabled = 1 AND t.serving_version IS NOT NULL
                 AND ($2 IS NULL OR t.id IN (SELECT tool FROM toolset_tools WHERE toolset = $2))"#,
            owner.0,
            toolset
        );
        Ok(count.fetch_one(self.read()).await?)
    }

    /// Whether a tool is inside a toolset.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn toolset_holds_tool(&self, id: &ToolsetId, tool: &ToolId) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"SELECT 1 AS "found!: i64" FROM toolset_tools WHERE toolset = $1 AND tool = $2"#,
            id.0,
            tool.0
        );
        Ok(found.fetch_optional(self.read()).await?.is_some())
    }

    /// Whether saved content is inside a toolset.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn toolset_holds_content(&self, id: &ToolsetId, content: &ContentId) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"SELECT 1 AS "found!: i64" FROM toolset_contents WHERE toolset = $1 AND content = $2"#,
            id.0,
            content.0
        );
        Ok(found.fetch_optional(self.read()).await?.is_some())
    }
}

/// Puts something inside a toolset by hand.
pub(super) async fn join(
    connection: &mut SqliteConnection,
    toolset: &ToolsetId,
    subject: &str,
) -> Result<(), StoreError> {
    sqlx::query!("INSERT OR IGNORE INTO toolset_members (toolset, subject) VALUES ($1, $2)", toolset.0, subject)
        .execute(connection)
        .await?;
    Ok(())
}

async fn load(connection: &mut SqliteConnection, id: &ToolsetId) -> Result<Option<Toolset>, StoreError> {
    sqlx::query_as!(
        ToolsetColumns,
        r#"SELECT id, name, owner, description, instructions, tags, everything AS "everything!: bool",
                  search AS "search!: bool", portable AS "portable!: bool", revision, created_at, updated_at
           FROM toolsets WHERE id = $1"#,
        id.0
    )
    .fetch_optional(connection)
    .await?
    .map(Toolset::try_from)
    .transpose()
}

fn encode_tags(settings: &ToolsetSettings) -> Result<String, StoreError> {
    serde_json::to_string(&settings.tags).map_err(|source| StoreError::Encode { what: "tags of a toolset", source })
}
