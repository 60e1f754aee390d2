//! Which versions wait for a person.

use crate::config::ApprovalPolicy;
use crate::model::{Grants, Limits, SandboxLevel, ToolDefinition};

/// What decides whether a version waits.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The setting.
    pub approval: ApprovalPolicy,
    /// How runs are confined: a weaker sandbox makes `reach` act as `always`.
    pub sandbox: SandboxLevel,
    /// The limits that need no approval.
    pub limits: Limits,
}

impl Policy {
    /// Whether all code waits, whatever it asks for.
    pub fn stops_all_code(&self) -> bool {
        match self.approval {
            ApprovalPolicy::Always => true,
            ApprovalPolicy::Reach => self.sandbox != SandboxLevel::Full,
            ApprovalPolicy::Never => false,
        }
    }

    /// What a person must approve before this version may serve, in words; empty when nothing waits.
    pub fn waits_for(&self, definition: &ToolDefinition) -> Vec<String> {
        let weak = self.sandbox != SandboxLevel::Full;
        match self.approval {
            ApprovalPolicy::Never => Vec::new(),
            ApprovalPolicy::Reach if !weak => self.reach(definition),
            ApprovalPolicy::Reach => self
                .unapproved_code(definition, format!("the sandbox is `{}`, so all code waits", self.sandbox.as_str())),
            ApprovalPolicy::Always => self.unapproved_code(definition, "the server's policy is `always`".to_owned()),
        }
    }

    fn unapproved_code(&self, definition: &ToolDefinition, why: String) -> Vec<String> {
        let mut reasons = vec![format!("its code ({why})")];
        reasons.extend(self.reach(definition));
        reasons
    }

    /// The reach that a version asks for, in words; empty when it asks for none.
    pub fn reach(&self, definition: &ToolDefinition) -> Vec<String> {
        let names = named(definition).into_iter().filter(|(_, names)| !names.is_empty());
        let mut reasons: Vec<String> = names.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
        reasons.extend(self.beyond_names(definition));
        reasons
    }

    /// The same, each name by itself.
    pub fn reach_by_name(&self, definition: &ToolDefinition) -> Vec<String> {
        let each = |(what, names): (&str, &[String])| {
            let each: Vec<String> = names.iter().map(|name| format!("{what}: {name}")).collect();
            each
        };
        let mut asks: Vec<String> = named(definition).into_iter().flat_map(each).collect();
        asks.extend(self.beyond_names(definition));
        asks
    }

    /// A definition that asks for no reach, as far as this server's limits go.
    pub fn without_reach(&self, mut definition: ToolDefinition) -> ToolDefinition {
        definition.grants = Grants::default();
        let (wall, memory) = (self.limits.wall.as_secs_f64(), self.limits.memory_bytes >> 20);
        definition.timeout_seconds = definition.timeout_seconds.filter(|seconds| *seconds <= wall);
        definition.memory_mb = definition.memory_mb.filter(|megabytes| *megabytes <= memory);
        definition
    }

    /// What it asks for that has no names: shared state and higher limits.
    fn beyond_names(&self, definition: &ToolDefinition) -> Vec<String> {
        let (wall, memory) = (self.limits.wall, self.limits.memory_bytes >> 20);
        let seconds = definition.timeout_seconds.filter(|seconds| *seconds > wall.as_secs_f64());
        let megabytes = definition.memory_mb.filter(|megabytes| *megabytes > memory);
        let shared = definition.grants.shared_state.then(|| "state that all callers share".to_owned());
        let seconds = seconds.map(|seconds| format!("a timeout of {seconds} s (more than {})", wall.as_secs()));
        let megabytes = megabytes.map(|megabytes| format!("{megabytes} MiB of memory (more than {memory})"));
        [shared, seconds, megabytes].into_iter().flatten().collect()
    }
}

fn named(definition: &ToolDefinition) -> [(&'static str, &[String]); 3] {
    let grants = &definition.grants;
    [("network", &grants.network), ("secrets", &grants.secrets), ("calls", &grants.calls)]
}
