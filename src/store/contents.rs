//! Changes to saved content. Each leaves news of it in its own transaction.

use sqlx::SqliteConnection;

use super::content_rows::ItemColumns;
use super::toolsets::join;
use super::{Store, StoreError};
use crate::model::{
    ContentDefinition, ContentFile, ContentId, ContentItem, ContentKind, ContentVersion, PrincipalId, Timestamp,
    ToolsetId, VersionNumber,
};

/// How many news are kept; who has missed more must take everything for changed.
pub(super) const NEWS_KEPT: i64 = 1_000;

/// Which list has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list` and the lists beside it.
    Resources,
}

impl Subject {
    /// Every list.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The name used in JSON and SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    /// The list of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == text)
    }

    /// The list that shows content of this kind.
    pub fn of(kind: ContentKind) -> Self {
        match kind {
            ContentKind::Prompt => Self::Prompts,
            ContentKind::Resource | ContentKind::Skill => Self::Resources,
        }
    }
}

/// A file to save with a version.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// What is known of it.
    pub file: ContentFile,
    /// Its bytes; `None` when the store has them already, from another version.
    pub bytes: Option<Vec<u8>>,
}

/// A version of content to save.
#[derive(Clone, Debug)]
pub struct NewContentVersion {
    /// What it says.
    pub definition: ContentDefinition,
    /// Its files.
    pub files: Vec<NewFile>,
    /// BLAKE3 over the canonical JSON of definition and files, hex.
    pub fingerprint: String,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened: `create`, `update`, `rollback to 3`.
    pub note: String,
    /// Whether it is served from now on.
    pub serve: bool,
}

/// A content item to make, with its first version.
#[derive(Clone, Debug)]
pub struct NewContent {
    /// A resource's URI or URI template; a prompt's or skill's name.
    pub name: String,
    /// Whose it is.
    pub owner: PrincipalId,
    /// The toolset that it is to be inside of.
    pub toolset: Option<ToolsetId>,
    /// Whether it is listed and served.
    pub enabled: bool,
    /// Its first version.
    pub version: NewContentVersion,
}

impl Store {
    /// Makes a content item and its first version.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`]; [`StoreError::Database`], also when owner or author is no principal.
    pub async fn create_content(&self, new: &NewContent) -> Result<(ContentItem, ContentVersion), StoreError> {
        let mut transaction = self.write().await?;
        let kind = new.version.definition.kind();
        let word = kind.as_str();
        let taken = sqlx::query_scalar!("SELECT owner FROM contents WHERE kind = $1 AND name = $2", word, new.name)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(owner) = taken {
            return Err(StoreError::NameTaken { owner: PrincipalId(owner) });
        }
        let now = self.clock.now();
        let item = ContentItem {
            id: ContentId(self.clock.new_id().to_string()),
            kind,
            name: new.name.clone(),
            owner: new.owner.clone(),
            enabled: new.enabled,
            serving_version: new.version.serve.then_some(1),
            latest_version: 1,
            created_at: now,
            updated_at: now,
        };
        sqlx::query!(
            "INSERT INTO contents (id, kind, name, owner, enabled, serving_version, latest_version, created_at,
                                   updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            item.id.0,
            word,
            item.name,
            item.owner.0,
            item.enabled,
            item.serving_version,
            item.latest_version,
            item.created_at.0,
            item.updated_at.0
        )
        .execute(&mut *transaction)
        .await?;
        let version = insert_version(&mut transaction, &item, &new.version, now).await?;
        if let Some(toolset) = &new.toolset {
            join(&mut transaction, toolset, &item.id.0).await?;
        }
        tell_of(&mut transaction, &item, now).await?;
        transaction.commit().await?;
        Ok((item, version))
    }

    /// Saves the next version of a content item, if `expected_latest` still is its newest one.
    ///
    /// # Errors
    /// [`StoreError::NoSuchContent`], [`StoreError::VersionConflict`]; [`StoreError::Database`].
    pub async fn add_content_version(
        &self,
        content: &ContentId,
        expected_latest: VersionNumber,
        new: &NewContentVersion,
    ) -> Result<(ContentItem, ContentVersion), StoreError> {
        let mut transaction = self.write().await?;
        let mut item = load(&mut transaction, content).await?;
        if item.latest_version != expected_latest {
            return Err(StoreError::VersionConflict { expected: expected_latest, latest: item.latest_version });
        }
        let now = self.clock.now();
        item.latest_version += 1;
        if new.serve {
            item.serving_version = Some(item.latest_version);
        }
        item.updated_at = now;
        save(&mut transaction, &item).await?;
        let version = insert_version(&mut transaction, &item, new, now).await?;
        if new.serve {
            tell_of(&mut transaction, &item, now).await?;
        }
        transaction.commit().await?;
        Ok((item, version))
    }

    /// Switches a content item on or off. Switching to what it is already changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NoSuchContent`]; [`StoreError::Database`].
    pub async fn set_content_enabled(&self, content: &ContentId, enabled: bool) -> Result<ContentItem, StoreError> {
        let mut transaction = self.write().await?;
        let mut item = load(&mut transaction, content).await?;
        if item.enabled == enabled {
            return Ok(item);
        }
        let now = self.clock.now();
        (item.enabled, item.updated_at) = (enabled, now);
        save(&mut transaction, &item).await?;
        tell_of(&mut transaction, &item, now).await?;
        transaction.commit().await?;
        Ok(item)
    }

    /// Deletes a content item with its versions and files; says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_content(&self, content: &ContentId) -> Result<bool, StoreError> {
        let mut transaction = self.write().await?;
        let item = match load(&mut transaction, content).await {
            Ok(item) => item,
            Err(StoreError::NoSuchContent) => return Ok(false),
            Err(error) => return Err(error),
        };
        sqlx::query!("DELETE FROM contents WHERE id = $1", content.0).execute(&mut *transaction).await?;
        tell_of(&mut transaction, &item, self.clock.now()).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Leaves news for clients of every process: that a list, or what is read under each of these URIs, is not what it was.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn leave_news(
        &self,
        owner: &PrincipalId,
        subject: Option<Subject>,
        uris: impl Iterator<Item = Option<&str>>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        for uri in uris {
            tell(&mut transaction, owner, (subject, uri), self.clock.now()).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}

pub(super) async fn tell_of(
    connection: &mut SqliteConnection,
    item: &ContentItem,
    now: Timestamp,
) -> Result<(), StoreError> {
    let uri = item.uri();
    tell(connection, &item.owner, (Some(Subject::of(item.kind)), uri.as_deref()), now).await
}

pub(super) async fn tell(
    connection: &mut SqliteConnection,
    owner: &PrincipalId,
    (subject, uri): (Option<Subject>, Option<&str>),
    now: Timestamp,
) -> Result<(), StoreError> {
    let subject = subject.map(Subject::as_str);
    let told = sqlx::query!(
        "INSERT INTO content_news (owner, subject, uri, at) VALUES ($1, $2, $3, $4)",
        owner.0,
        subject,
        uri,
        now.0
    )
    .execute(&mut *connection)
    .await?;
    let forgotten = told.last_insert_rowid() - NEWS_KEPT;
    sqlx::query!("DELETE FROM content_news WHERE id <= $1", forgotten).execute(connection).await?;
    Ok(())
}

pub(super) async fn load(connection: &mut SqliteConnection, content: &ContentId) -> Result<ContentItem, StoreError> {
    sqlx::query_as!(
        ItemColumns,
        r#"SELECT id, kind, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at,
                  updated_at
           FROM contents WHERE id = $1"#,
        content.0
    )
    .fetch_optional(connection)
    .await?
    .ok_or(StoreError::NoSuchContent)?
    .try_into()
}

pub(super) async fn save(connection: &mut SqliteConnection, item: &ContentItem) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE contents SET enabled = $2, serving_version = $3, latest_version = $4, updated_at = $5 WHERE id = $1",
        item.id.0,
        item.enabled,
        item.serving_version,
        item.latest_version,
        item.updated_at.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores the version that `item.latest_version` names, with its files.
async fn insert_version(
    connection: &mut SqliteConnection,
    item: &ContentItem,
    new: &NewContentVersion,
    now: Timestamp,
) -> Result<ContentVersion, StoreError> {
    let definition = serde_json::to_string(&new.definition)
        .map_err(|source| StoreError::Encode { what: "content definition", source })?;
    let about = new.definition.about();
    sqlx::query!(
        "INSERT INTO content_versions (content, number, title, description, fingerprint, created_at, created_by, note,
                                       definition) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        item.id.0,
        item.latest_version,
        about.title,
        about.description,
        new.fingerprint,
        now.0,
        new.created_by.0,
        new.note,
        definition
    )
    .execute(&mut *connection)
    .await?;
    for NewFile { file, bytes } in &new.files {
        insert_file(connection, item, file, bytes.as_deref()).await?;
    }
    Ok(ContentVersion {
        content: item.id.clone(),
        number: item.latest_version,
        definition: new.definition.clone(),
        files: new.files.iter().map(|new| new.file.clone()).collect(),
        fingerprint: new.fingerprint.clone(),
        created_at: now,
        created_by: new.created_by.clone(),
        note: new.note.clone(),
    })
}

async fn insert_file(
    connection: &mut SqliteConnection,
    item: &ContentItem,
    file: &ContentFile,
    bytes: Option<&[u8]>,
) -> Result<(), StoreError> {
    if let Some(bytes) = bytes {
        sqlx::query!(
            "INSERT INTO content_blobs (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING",
            file.digest,
            bytes
        )
        .execute(&mut *connection)
        .await?;
    }
    let size = i64::try_from(file.size).unwrap_or(i64::MAX);
    sqlx::query!(
        "INSERT INTO content_files (content, number, path, mime_type, size, digest) VALUES ($1, $2, $3, $4, $5, $6)",
        item.id.0,
        item.latest_version,
        file.path,
        file.mime_type,
        size,
        file.digest
    )
    .execute(connection)
    .await?;
    Ok(())
}
