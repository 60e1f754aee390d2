//! Trust: the server's key, fingerprints of versions, and which of them wait for a person (DESIGN §3).

mod key;

use crate::config::ApprovalPolicy;
use crate::model::{Limits, SandboxLevel, ToolDefinition, canonical_json};

pub use key::{KeyError, Sealer, ServerKey};

/// BLAKE3, in hex, over the canonical JSON of the whole definition.
///
/// # Errors
/// When the definition can't be written as JSON.
pub fn fingerprint(definition: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(definition)?;
    Ok(blake3::hash(canonical_json(&value).as_bytes()).to_hex().to_string())
}

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
        let mut reasons = Vec::new();
        let list = |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
        reasons.extend(list("network", &definition.grants.network));
        reasons.extend(list("secrets", &definition.grants.secrets));
        reasons.extend(list("calls", &definition.grants.calls));
        if let Some(seconds) = definition.timeout_seconds
            && seconds > self.limits.wall.as_secs_f64()
        {
            reasons.push(format!("a timeout of {seconds} s (more than {})", self.limits.wall.as_secs()));
        }
        if let Some(megabytes) = definition.memory_mb
            && megabytes > self.limits.memory_bytes >> 20
        {
            reasons.push(format!("{megabytes} MiB of memory (more than {})", self.limits.memory_bytes >> 20));
        }
        reasons
    }
}
