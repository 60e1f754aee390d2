//! Landlock: file access and, in its newer versions, signals and abstract sockets of other processes.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::root;
use super::spec::{Failure, Spec};

/// The version whose rights and scopes are asked for.
const VERSION: ABI = ABI::V6;

/// Inside the private root: reading everywhere, writing where the mounts allow it at all. Kernels with an older version
/// enforce what they know: here Landlock stands behind the mounts, not in their place.
pub(super) fn restrict_private_root(spec: &Spec) -> Result<(), Failure> {
    let mut writable = vec!["/tmp", "/dev"];
    writable.extend(spec.kept().map(|kept| kept.target.as_str()));
    restrict(CompatLevel::BestEffort, &[(vec!["/"], AccessFs::from_read(VERSION)), (writable, all())])
}

/// On the host's root: only the system's programs, what the run needs, and its own directory.
pub(super) fn restrict_host(spec: &Spec) -> Result<(), Failure> {
    let system: Vec<&'static str> = root::system_paths().chain(["/proc/self"]).collect();
    let mut readable: Vec<&str> = system;
    readable.extend(spec.mounts.iter().map(|mount| mount.source.as_str()));
    if spec.kept().is_some() {
        let network: Vec<&'static str> = root::network_paths().collect();
        readable = readable.into_iter().chain(network).collect();
    }
    let devices = root::devices().collect();
    let kept = spec.kept().map(|kept| kept.source.as_str());
    let writable = spec.writable.iter().map(String::as_str).chain(kept).collect();
    let rules = [(readable, AccessFs::from_read(VERSION)), (devices, AccessFs::from_file(VERSION)), (writable, all())];
    restrict(CompatLevel::HardRequirement, &rules)
}

fn all() -> landlock::BitFlags<AccessFs> {
    AccessFs::from_all(VERSION)
}

type Rule<'a> = (Vec<&'a str>, landlock::BitFlags<AccessFs>);

fn restrict(level: CompatLevel, rules: &[Rule<'_>]) -> Result<(), Failure> {
    let enforced = || -> Result<RulesetStatus, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(level)
            .handle_access(all())?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)?
            .create()?;
        for (paths, access) in rules {
            ruleset = ruleset.add_rules(path_beneath_rules(paths, *access))?;
        }
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match enforced() {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => Ok(()),
        Ok(RulesetStatus::NotEnforced) => Err(Failure {
            step: "restrict file access with Landlock, which this kernel has switched off".to_owned(),
            errno: 0,
        }),
        Err(RulesetError::HandleAccesses(_) | RulesetError::Scope(_)) => Err(Failure {
            step: "restrict file access with Landlock, which is missing or older than version 6 here".to_owned(),
            errno: 0,
        }),
        Err(error) => Err(Failure { step: format!("restrict file access with Landlock ({error})"), errno: 0 }),
    }
}
