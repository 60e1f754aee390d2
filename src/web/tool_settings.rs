//! The settings of a tool, as its page shows them.

use super::tool_page::Failure;
use super::{Visitor, Web, WebError};
use crate::model::{Limits, Mode, ToolDefinition};
use crate::tools::ToolView;

/// Everything but the code, to be changed.
pub(super) struct SettingsPanel {
    pub(super) definition: ToolDefinition,
    pub(super) network: &'static str,
    pub(super) hosts: String,
    pub(super) secrets: Vec<(String, bool)>,
    pub(super) dependencies: String,
    pub(super) packages: Vec<String>,
    pub(super) from_code: Vec<String>,
    pub(super) calls: String,
    pub(super) tags: String,
    pub(super) seconds: String,
    pub(super) megabytes: String,
    pub(super) limits: Limits,
    pub(super) most_seconds: u64,
    pub(super) most_megabytes: u64,
}

impl SettingsPanel {
    pub(super) fn is_mode(&self, mode: &str) -> bool {
        Mode::parse(mode) == Some(self.definition.mode)
    }
}

/// The settings of the version that is looked at, or as they were sent.
pub(super) async fn settings(
    web: &Web,
    visitor: &Visitor,
    view: &ToolView,
    failure: &Failure,
) -> Result<SettingsPanel, WebError> {
    let tools = &web.state.tools;
    let definition = failure.sent.clone().unwrap_or_else(|| view.version.definition.clone());
    let grants = &definition.grants;
    let known = tools.secrets.list(&visitor.caller).await.map(|all| all.into_iter().map(|one| one.name).collect());
    let mut names: Vec<String> = known.unwrap_or_default();
    names.extend(grants.secrets.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    let network = match grants.network.first().map(String::as_str) {
        None => "none",
        Some("full") => "full",
        Some(_) => "list",
    };
    let ceilings = &tools.options.ceilings;
    Ok(SettingsPanel {
        network,
        hosts: if network == "list" { grants.network.join("\n") } else { String::new() },
        secrets: names
            .into_iter()
            .map(|name| (grants.secrets.contains(&name), name))
            .map(|(on, name)| (name, on))
            .collect(),
        dependencies: definition.dependencies.join("\n"),
        packages: view.packages.clone(),
        from_code: definition.code_dependencies.clone(),
        calls: grants.calls.join(", "),
        tags: definition.tags.join(", "),
        seconds: definition.timeout_seconds.map(|seconds| seconds.to_string()).unwrap_or_default(),
        megabytes: definition.memory_mb.map(|megabytes| megabytes.to_string()).unwrap_or_default(),
        limits: tools.options.limits.clone(),
        most_seconds: ceilings.wall.as_secs(),
        most_megabytes: ceilings.memory_bytes >> 20,
        definition,
    })
}
