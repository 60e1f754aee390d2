//! Tools as pages show them: lists with filters, and one tool with everything that stands on a version.

use std::collections::{BTreeMap, HashMap};

use super::DeskError;
use crate::model::{Caller, PrincipalId, Tool, ToolVersion, VersionNumber};
use crate::runner::EnvironmentState;
use crate::store::{FoundTool, ToolSearch, VersionSummary};
use crate::tools::overview::ToolState;
use crate::tools::{Tools, authoring};

/// The most tools that a list looks at.
const MOST: u32 = 2000;

/// Which tools to list.
#[derive(Clone, Debug, Default)]
pub struct ToolQuery {
    /// Words in name, title, description or tags.
    pub text: String,
    /// A tag that they must have.
    pub tag: Option<String>,
}

/// One tool, with one of its versions.
#[derive(Clone, Debug)]
pub struct ToolView {
    /// The tool.
    pub tool: Tool,
    /// The version that is looked at.
    pub version: ToolVersion,
    /// The tool's state.
    pub state: ToolState,
    /// What the newest version waits for; empty when nothing.
    pub waits: Vec<String>,
    /// All requirements of the version.
    pub requirements: Vec<String>,
    /// What was locked for it, as `name version`.
    pub packages: Vec<String>,
    /// `ready`, `installing` or `failed: …`, where it has an environment.
    pub environment: Option<String>,
    /// Every version, newest first.
    pub history: Vec<VersionSummary>,
    /// The names of those who saved them.
    pub names: HashMap<PrincipalId, String>,
}

impl Tools {
    /// The tools that match, those of this caller alone unless it may see all; each with its state. With them, how often
    /// each tag is used among them.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn find_tools(
        &self,
        caller: &Caller,
        query: &ToolQuery,
    ) -> Result<(Vec<(FoundTool, ToolState)>, BTreeMap<String, usize>), DeskError> {
        let search = ToolSearch {
            text: query.text.clone(),
            tags: query.tag.iter().cloned().collect(),
            owner: caller.sees_only().cloned(),
            toolset: caller.toolset.clone(),
            include_disabled: true,
            limit: MOST,
            offset: 0,
        };
        let found = self.store.search_tools(&search).await?;
        let mut tags = BTreeMap::new();
        for tag in found.tools.iter().flat_map(|found| &found.latest.tags) {
            *tags.entry(tag.clone()).or_insert(0) += 1;
        }
        Ok((self.with_states(found.tools).await?, tags))
    }

    /// A tool and one of its versions, the newest where none is named.
    ///
    /// # Errors
    /// [`DeskError::NotFound`] for a tool that isn't the caller's, too.
    pub async fn view_tool(
        &self,
        caller: &Caller,
        name: &str,
        number: Option<VersionNumber>,
    ) -> Result<ToolView, DeskError> {
        let tool = self.tool_of(caller, name).await?;
        let tool = tool.ok_or_else(|| DeskError::NotFound { what: "tool", name: name.to_owned() })?;
        let number = number.unwrap_or(tool.latest_version);
        let version = self.store.get_version(&tool.id, number).await?;
        let version =
            version.ok_or_else(|| DeskError::NotFound { what: "version", name: format!("{name} v{number}") })?;
        let latest = if number == tool.latest_version {
            version.clone()
        } else {
            self.version(&tool.id, tool.latest_version).await?
        };
        let waits = self.waits(&latest).await?;
        let state = self.state_of(&tool, &latest, !waits.is_empty());
        let lock = version.definition.lock.as_ref();
        let history = self.store.list_versions(&tool.id).await?;
        Ok(ToolView {
            state,
            waits,
            requirements: authoring::requirements(&version.definition),
            packages: lock.map(|lock| locked(&lock.lock)).unwrap_or_default(),
            environment: lock.map(|lock| self.environment_status(lock)),
            names: self.names().await?,
            history,
            tool,
            version,
        })
    }

    /// Whether the environment of a version failed, in the installer's words.
    pub fn install_failure(&self, version: &ToolVersion) -> Option<String> {
        match version.definition.lock.as_ref().map(|lock| self.environments.state(lock)) {
            Some(EnvironmentState::Failed(words)) => Some(words),
            _ => None,
        }
    }

    /// The names of all principals.
    ///
    /// # Errors
    /// [`DeskError::Broken`].
    pub async fn names(&self) -> Result<HashMap<PrincipalId, String>, DeskError> {
        let principals = self.store.list_principals().await?;
        Ok(principals.into_iter().map(|principal| (principal.id, principal.name)).collect())
    }
}

/// The packages that a lock file names.
fn locked(lock: &str) -> Vec<String> {
    let lines = lock.lines().map(|line| line.trim_end_matches('\\').trim());
    let pins = lines.filter_map(|line| line.split_once("=="));
    let plain = |text: &str| !text.starts_with(['#', '-', ' ']);
    pins.filter(|(name, _)| plain(name))
        .map(|(name, version)| format!("{name} {}", version.split([' ', ';']).next().unwrap_or_default()))
        .collect()
}
