//! Changes to tools. Each raises the catalogue's generation in its own transaction.

use sqlx::SqliteConnection;

use super::rows::ToolColumns;
use super::toolsets::join;
use super::{Store, StoreError};
use crate::model::{
    PrincipalId, Timestamp, Tool, ToolDefinition, ToolId, ToolName, ToolVersion, ToolsetId, VersionNumber,
};

/// Whether calls run a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// From now on.
    Now,
    /// Once its environment is installed ([`Store::serve_installed`]).
    OnceInstalled,
    /// Not before a person approves of it.
    NotYet,
}

/// A version to save.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// What it says.
    pub definition: ToolDefinition,
    /// BLAKE3 over the canonical JSON of the definition, hex.
    pub fingerprint: String,
    /// By whom.
    pub created_by: PrincipalId,
    /// What happened: `create`, `update`, `rollback to 3`.
    pub note: String,
    /// Whether calls run it.
    pub serving: Serving,
}

/// A tool to make, with its first version.
#[derive(Clone, Debug)]
pub struct NewTool {
    /// Its name.
    pub name: ToolName,
    /// Whose it is.
    pub owner: PrincipalId,
    /// The toolset that it is to be inside of.
    pub toolset: Option<ToolsetId>,
    /// Whether it is listed and can be called.
    pub enabled: bool,
    /// Its first version.
    pub version: NewVersion,
}

impl Store {
    /// Makes a tool and its first version.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`]; [`StoreError::Database`], also when owner or author is no principal.
    pub async fn create_tool(&self, new: &NewTool) -> Result<(Tool, ToolVersion), StoreError> {
        let mut transaction = self.write().await?;
        let name = new.name.as_str();
        let taken = sqlx::query_scalar!("SELECT owner FROM tools WHERE name = $1", name)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(owner) = taken {
            return Err(StoreError::NameTaken { owner: PrincipalId(owner) });
        }
        let now = self.clock.now();
        let tool = Tool {
            id: ToolId(self.clock.new_id().to_string()),
            name: new.name.clone(),
            owner: new.owner.clone(),
            enabled: new.enabled,
            serving_version: (new.version.serving == Serving::Now).then_some(1),
            latest_version: 1,
            created_at: now,
            updated_at: advance_catalog(&mut transaction, now).await?,
        };
        let folded_name = tool.name.folded();
        sqlx::query!(
            "INSERT INTO tools (id, name, folded_name, owner, enabled, serving_version, latest_version, created_at,
                                updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            tool.id.0,
            name,
            folded_name,
            tool.owner.0,
            tool.enabled,
            tool.serving_version,
            tool.latest_version,
            tool.created_at.0,
            tool.updated_at.0
        )
        .execute(&mut *transaction)
        .await?;
        note_installing(&mut transaction, &tool, new.version.serving).await?;
        let version = insert_version(&mut transaction, &tool, &new.version, now).await?;
        if let Some(toolset) = &new.toolset {
            join(&mut transaction, toolset, &tool.id.0).await?;
        }
        transaction.commit().await?;
        Ok((tool, version))
    }

    /// Saves the next version of a tool, if `expected_latest` still is its newest one.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`], [`StoreError::VersionConflict`]; [`StoreError::Database`].
    pub async fn add_version(
        &self,
        tool: &ToolId,
        expected_latest: VersionNumber,
        new: &NewVersion,
    ) -> Result<(Tool, ToolVersion), StoreError> {
        let mut transaction = self.write().await?;
        let mut tool = load(&mut transaction, tool).await?;
        if tool.latest_version != expected_latest {
            return Err(StoreError::VersionConflict { expected: expected_latest, latest: tool.latest_version });
        }
        let now = self.clock.now();
        tool.latest_version += 1;
        let updated_at = advance_catalog(&mut transaction, now).await?;
        if new.serving == Serving::Now {
            tool.serving_version = Some(tool.latest_version);
            tool.updated_at = updated_at;
        }
        save(&mut transaction, &tool).await?;
        note_installing(&mut transaction, &tool, new.serving).await?;
        let version = insert_version(&mut transaction, &tool, new, now).await?;
        transaction.commit().await?;
        Ok((tool, version))
    }

    /// Chooses the version that calls run; `None`: none may serve. Choosing what serves already changes nothing. No version
    /// that is being installed will take its place.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`], [`StoreError::NoSuchVersion`]; [`StoreError::Database`].
    pub async fn set_serving(&self, tool: &ToolId, serving: Option<VersionNumber>) -> Result<Tool, StoreError> {
        let mut transaction = self.write().await?;
        let mut tool = load(&mut transaction, tool).await?;
        note_installing(&mut transaction, &tool, Serving::Now).await?;
        if tool.serving_version == serving {
            transaction.commit().await?;
            return Ok(tool);
        }
        if let Some(number) = serving
            && !(1..=tool.latest_version).contains(&number)
        {
            return Err(StoreError::NoSuchVersion { number });
        }
        tool.serving_version = serving;
        tool.updated_at = advance_catalog(&mut transaction, self.clock.now()).await?;
        save(&mut transaction, &tool).await?;
        transaction.commit().await?;
        Ok(tool)
    }

    /// Notes that the latest version is to serve once its environment is installed.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`], [`StoreError::VersionConflict`]; [`StoreError::Database`].
    pub async fn serve_once_installed(&self, tool: &ToolId, latest: VersionNumber) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        let tool = load(&mut transaction, tool).await?;
        if tool.latest_version != latest {
            return Err(StoreError::VersionConflict { expected: latest, latest: tool.latest_version });
        }
        note_installing(&mut transaction, &tool, Serving::OnceInstalled).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Lets a version serve that was waiting for its environment, if it still is; says whether it was.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn serve_installed(&self, tool: &ToolId, number: VersionNumber) -> Result<bool, StoreError> {
        let mut transaction = self.write().await?;
        let updated_at = advance_catalog(&mut transaction, self.clock.now()).await?;
        let done = sqlx::query!(
            "UPDATE tools SET serving_version = $2, installing_version = NULL, updated_at = $3
             WHERE id = $1 AND installing_version = $2",
            tool.0,
            number,
            updated_at.0
        )
        .execute(&mut *transaction)
        .await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Switches a tool on or off. Switching to what it is already changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`]; [`StoreError::Database`].
    pub async fn set_enabled(&self, tool: &ToolId, enabled: bool) -> Result<Tool, StoreError> {
        let mut transaction = self.write().await?;
        let mut tool = load(&mut transaction, tool).await?;
        if tool.enabled == enabled {
            return Ok(tool);
        }
        tool.enabled = enabled;
        tool.updated_at = advance_catalog(&mut transaction, self.clock.now()).await?;
        save(&mut transaction, &tool).await?;
        transaction.commit().await?;
        Ok(tool)
    }

    /// Deletes a tool and its versions; says whether there was one. Its runs stay.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn delete_tool(&self, tool: &ToolId) -> Result<bool, StoreError> {
        let mut transaction = self.write().await?;
        let done = sqlx::query!("DELETE FROM tools WHERE id = $1", tool.0).execute(&mut *transaction).await?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        advance_catalog(&mut transaction, self.clock.now()).await?;
        transaction.commit().await?;
        Ok(true)
    }
}

/// Raises the catalogue's generation and hands out an `updated_at` that is later than every one before.
pub(super) async fn advance_catalog(
    connection: &mut SqliteConnection,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    let updated_at = sqlx::query_scalar!(
        "UPDATE meta SET catalog_generation = catalog_generation + 1,
                         catalog_updated_at = CASE WHEN $1 > catalog_updated_at THEN $1 ELSE catalog_updated_at + 1 END
         WHERE id = 1 RETURNING catalog_updated_at",
        now.0
    )
    .fetch_one(connection)
    .await?;
    Ok(Timestamp(updated_at))
}

pub(super) async fn load(connection: &mut SqliteConnection, tool: &ToolId) -> Result<Tool, StoreError> {
    sqlx::query_as!(
        ToolColumns,
        r#"SELECT id, name, owner, enabled AS "enabled!: bool", serving_version, latest_version, created_at, updated_at
           FROM tools WHERE id = $1"#,
        tool.0
    )
    .fetch_optional(connection)
    .await?
    .map(Tool::from)
    .ok_or(StoreError::NoSuchTool)
}

pub(super) async fn save(connection: &mut SqliteConnection, tool: &Tool) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE tools SET enabled = $2, serving_version = $3, latest_version = $4, updated_at = $5 WHERE id = $1",
        tool.id.0,
        tool.enabled,
        tool.serving_version,
        tool.latest_version,
        tool.updated_at.0
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes what becomes of the version that waits for its environment now that `tool.latest_version` serves like this.
pub(super) async fn note_installing(
    connection: &mut SqliteConnection,
    tool: &Tool,
    serving: Serving,
) -> Result<(), StoreError> {
    let installing = match serving {
        Serving::Now => None,
        Serving::OnceInstalled => Some(tool.latest_version),
        // One before it may still be under way.
        Serving::NotYet => return Ok(()),
    };
    sqlx::query!("UPDATE tools SET installing_version = $2 WHERE id = $1", tool.id.0, installing)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the version that `tool.latest_version` names.
async fn insert_version(
    connection: &mut SqliteConnection,
    tool: &Tool,
    new: &NewVersion,
    now: Timestamp,
) -> Result<ToolVersion, StoreError> {
    let encode = |what| move |source| StoreError::Encode { what, source };
    let definition = serde_json::to_string(&new.definition).map_err(encode("tool definition"))?;
    let tags = serde_json::to_string(&new.definition.tags).map_err(encode("tags"))?;
    let language = new.definition.language.as_str();
    sqlx::query!(
        "INSERT INTO tool_versions (tool, number, title, description, language, tags, fingerprint, created_at,
                                    created_by, note, definition)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        tool.id.0,
        tool.latest_version,
        new.definition.title,
        new.definition.description,
        language,
        tags,
        new.fingerprint,
        now.0,
        new.created_by.0,
        new.note,
        definition
    )
    .execute(connection)
    .await?;
    Ok(ToolVersion {
        tool: tool.id.clone(),
        number: tool.latest_version,
        definition: new.definition.clone(),
        fingerprint: new.fingerprint.clone(),
        created_at: now,
        created_by: new.created_by.clone(),
        note: new.note.clone(),
    })
}
