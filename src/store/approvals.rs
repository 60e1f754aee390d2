//! Approvals, and what comes to serve through them. Rows are sealed by whoever holds the server's key; the store has none.

use sqlx::SqliteConnection;

use super::error::corrupt;
use super::{Serving, Store, StoreError, contents, tools};
use crate::model::{Approval, ApprovalState, ContentId, PrincipalId, Timestamp, ToolId, VersionNumber};

/// Makes the seal of an approval as it is now.
pub type Seal<'a> = &'a (dyn Fn(&Approval) -> String + Sync);

/// What an approval is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approved {
    /// A tool.
    Tool(ToolId),
    /// A resource, prompt or skill.
    Content(ContentId),
}

impl Approved {
    /// The id.
    pub fn id(&self) -> &str {
        match self {
            Self::Tool(ToolId(id)) | Self::Content(ContentId(id)) => id,
        }
    }
}

/// An approval to record.
#[derive(Clone, Debug)]
pub struct NewApproval {
    /// Of what.
    pub of: Approved,
    /// The version that was looked at.
    pub version: VersionNumber,
    /// What it says, as it was shown.
    pub fingerprint: String,
    /// By whom.
    pub by: PrincipalId,
    /// What the person noted.
    pub note: String,
    /// When the version serves.
    pub serving: Serving,
}

impl Store {
    /// Records an approval of the newest version, which is to serve; the approval before it retires.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`], [`StoreError::NoSuchContent`]; [`StoreError::VersionConflict`] where that is not the
    /// newest version any more; [`StoreError::Database`].
    pub async fn approve(&self, new: &NewApproval, seal: Seal<'_>) -> Result<Approval, StoreError> {
        let mut transaction = self.write().await?;
        let now = self.clock.now();
        end_active(&mut transaction, new.of.id(), (ApprovalState::Retired, &new.by, now), seal).await?;
        let mut approval = Approval {
            id: self.clock.new_id().to_string(),
            subject: new.of.id().to_owned(),
            version: new.version,
            fingerprint: new.fingerprint.clone(),
            state: ApprovalState::Active,
            approved_at: now,
            approved_by: new.by.clone(),
            note: new.note.clone(),
            ended_at: None,
            ended_by: None,
            seal: String::new(),
        };
        approval.seal = seal(&approval);
        insert(&mut transaction, &approval).await?;
        serve(&mut transaction, new, now).await?;
        transaction.commit().await?;
        Ok(approval)
    }

    /// Makes a retired approval the active one again; the other one retires.
    ///
    /// # Errors
    /// [`StoreError::Database`].
    pub async fn reinstate_approval(
        &self,
        retired: &Approval,
        by: &PrincipalId,
        seal: Seal<'_>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write().await?;
        let now = self.clock.now();
        end_active(&mut transaction, &retired.subject, (ApprovalState::Retired, by, now), seal).await?;
        let mut again = Approval { state: ApprovalState::Active, ended_at: None, ended_by: None, ..retired.clone() };
        again.seal = seal(&again);
        update(&mut transaction, &again).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Takes the active approval back. Where a version with its fingerprint serves, none does afterwards.
    ///
    /// # Errors
    /// [`StoreError::NoSuchTool`], [`StoreError::NoSuchContent`]; [`StoreError::Database`].
    pub async fn revoke_approval(
        &self,
        of: &Approved,
        by: &PrincipalId,
        seal: Seal<'_>,
    ) -> Result<Option<Approval>, StoreError> {
        let mut transaction = self.write().await?;
        let now = self.clock.now();
        let ended = end_active(&mut transaction, of.id(), (ApprovalState::Revoked, by, now), seal).await?;
        let Some(approval) = ended else { return Ok(None) };
        stop_serving(&mut transaction, of, &approval.fingerprint, now).await?;
        transaction.commit().await?;
        Ok(Some(approval))
    }

    /// The approvals of a tool or of content, newest first.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn list_approvals(&self, subject: &str) -> Result<Vec<Approval>, StoreError> {
        sqlx::query_as!(
            Columns,
            "SELECT id, subject, version, fingerprint, state, approved_at, approved_by, note, ended_at, ended_by, seal
             FROM approvals WHERE subject = $1 ORDER BY id DESC",
            subject
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(Approval::try_from)
        .collect()
    }

    /// Every active approval of these subjects.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn active_approvals(&self, subjects: &[&str]) -> Result<Vec<Approval>, StoreError> {
        let subjects = serde_json::to_string(subjects).map_err(|source| StoreError::Encode { what: "ids", source })?;
        sqlx::query_as!(
            Columns,
            r#"SELECT a.id, a.subject, a.version, a.fingerprint, a.state, a.approved_at, a.approved_by, a.note, a.ended_at,
                      a.ended_by, a.seal
               FROM json_each($1) wanted JOIN approvals a ON a.subject = wanted.value AND a.state = 'active'"#,
            subjects
        )
        .fetch_all(self.read())
        .await?
        .into_iter()
        .map(Approval::try_from)
        .collect()
    }
}

async fn insert(connection: &mut SqliteConnection, approval: &Approval) -> Result<(), StoreError> {
    let state = approval.state.as_str();
    sqlx::query!(
        "INSERT INTO approvals (id, subject, version, fingerprint, state, approved_at, approved_by, note, seal)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        approval.id,
        approval.subject,
        approval.version,
        approval.fingerprint,
        state,
        approval.approved_at.0,
        approval.approved_by.0,
        approval.note,
        approval.seal
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn update(connection: &mut SqliteConnection, approval: &Approval) -> Result<(), StoreError> {
    let (state, ended_at) = (approval.state.as_str(), approval.ended_at.map(|at| at.0));
    let ended_by = approval.ended_by.as_ref().map(|by| by.0.as_str());
    sqlx::query!(
        "UPDATE approvals SET state = $2, ended_at = $3, ended_by = $4, seal = $5 WHERE id = $1",
        approval.id,
        state,
        ended_at,
        ended_by,
        approval.seal
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends the active approval, where there is one, and returns it.
async fn end_active(
    connection: &mut SqliteConnection,
    subject: &str,
    (state, by, now): (ApprovalState, &PrincipalId, Timestamp),
    seal: Seal<'_>,
) -> Result<Option<Approval>, StoreError> {
    let found = sqlx::query_as!(
        Columns,
        "SELECT id, subject, version, fingerprint, state, approved_at, approved_by, note, ended_at, ended_by, seal
         FROM approvals WHERE subject = $1 AND state = 'active'",
        subject
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(mut approval) = found.map(Approval::try_from).transpose()? else { return Ok(None) };
    // One that nobody here has sealed gets no seal by being ended.
    let is_ours = approval.seal == seal(&approval);
    (approval.state, approval.ended_at, approval.ended_by) = (state, Some(now), Some(by.clone()));
    if is_ours {
        approval.seal = seal(&approval);
    }
    update(connection, &approval).await?;
    Ok(Some(approval))
}

/// Lets the approved version serve, if it still is the newest one.
async fn serve(connection: &mut SqliteConnection, new: &NewApproval, now: Timestamp) -> Result<(), StoreError> {
    let newest = |latest| {
        let conflict = StoreError::VersionConflict { expected: new.version, latest };
        if latest == new.version { Ok(()) } else { Err(conflict) }
    };
    match &new.of {
        Approved::Tool(id) => {
            let mut tool = tools::load(connection, id).await?;
            newest(tool.latest_version)?;
            if new.serving == Serving::Now {
                tool.serving_version = Some(new.version);
            }
            tool.updated_at = tools::advance_catalog(connection, now).await?;
            tools::save(connection, &tool).await?;
            tools::note_installing(connection, &tool, new.serving).await
        }
        Approved::Content(id) => {
            let mut item = contents::load(connection, id).await?;
            newest(item.latest_version)?;
            (item.serving_version, item.updated_at) = (Some(new.version), now);
            contents::save(connection, &item).await?;
            contents::tell_of(connection, &item, now).await
        }
    }
}

async fn stop_serving(
    connection: &mut SqliteConnection,
    of: &Approved,
    fingerprint: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    match of {
        Approved::Tool(id) => {
            let mut tool = tools::load(connection, id).await?;
            let serving = sqlx::query_scalar!(
                "SELECT fingerprint FROM tool_versions WHERE tool = $1 AND number = $2",
                id.0,
                tool.serving_version
            )
            .fetch_optional(&mut *connection)
            .await?;
            if serving.as_deref() == Some(fingerprint) {
                tool.serving_version = None;
            }
            tool.updated_at = tools::advance_catalog(connection, now).await?;
            tools::save(connection, &tool).await?;
            tools::note_installing(connection, &tool, Serving::Now).await
        }
        Approved::Content(id) => {
            let mut item = contents::load(connection, id).await?;
            let serving = sqlx::query_scalar!(
                "SELECT fingerprint FROM content_versions WHERE content = $1 AND number = $2",
                id.0,
                item.serving_version
            )
            .fetch_optional(&mut *connection)
            .await?;
            if serving.as_deref() == Some(fingerprint) {
                item.serving_version = None;
            }
            item.updated_at = now;
            contents::save(connection, &item).await?;
            contents::tell_of(connection, &item, now).await
        }
    }
}

struct Columns {
    id: String,
    subject: String,
    version: VersionNumber,
    fingerprint: String,
    state: String,
    approved_at: i64,
    approved_by: String,
    note: String,
    ended_at: Option<i64>,
    ended_by: Option<String>,
    seal: String,
}

impl TryFrom<Columns> for Approval {
    type Error = StoreError;

    fn try_from(row: Columns) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            subject: row.subject,
            version: row.version,
            fingerprint: row.fingerprint,
            state: ApprovalState::parse(&row.state).ok_or_else(|| corrupt("approval state", &row.state))?,
            approved_at: Timestamp(row.approved_at),
            approved_by: PrincipalId(row.approved_by),
            note: row.note,
            ended_at: row.ended_at.map(Timestamp),
            ended_by: row.ended_by.map(PrincipalId),
            seal: row.seal,
        })
    }
}
