//! What to do when the sandbox can't be built: the step that failed, and the setting that would allow it.

use std::fs;

use super::sandbox::spec::Failure;

/// Facts about this machine that tell one cause from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Facts {
    apparmor_restricts: bool,
    namespaces_allowed: Option<u64>,
    in_container: bool,
}

impl Facts {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        Self {
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            namespaces_allowed: number("/proc/sys/user/max_user_namespaces"),
            in_container: fs::exists("/.dockerenv").unwrap_or(false)
                || fs::exists("/run/.containerenv").unwrap_or(false),
        }
    }
}

const WEAKER: &str = "The weaker choice is `--sandbox landlock`; until then, tools do not run.";

/// What to do about this failure.
pub(super) fn advice(failure: &Failure) -> String {
    advise(failure, Facts::read())
}

fn advise(failure: &Failure, facts: Facts) -> String {
    let refused = failure.errno == libc::EPERM || failure.errno == libc::EACCES;
    let step = failure.step.as_str();
    if step == "create namespaces" && failure.errno == libc::EPERM {
        return format!(
            "User namespaces are denied. In Docker, start the container with `--security-opt seccomp=<profile that allows \
             user namespaces> --security-opt systempaths=unconfined`; elsewhere, set \
             `sysctl kernel.unprivileged_userns_clone=1`. {WEAKER}"
        );
    }
    if step == "create namespaces" && failure.errno == libc::ENOSPC {
        let allowed = facts.namespaces_allowed.map_or_else(String::new, |allowed| format!(" (it is {allowed})"));
        return format!(
            "The limit `user.max_user_namespaces` is used up or 0{allowed}: raise it with \
             `sysctl user.max_user_namespaces=10000`. {WEAKER}"
        );
    }
    if step.starts_with("restrict file access with Landlock") {
        return "Landlock needs Linux 5.13, and `--sandbox landlock` version 6 of it (Linux 6.12); it must be among the \
                kernel's security modules: boot with `lsm=landlock,…` as `/sys/kernel/security/lsm` shows them."
            .to_owned();
    }
    if refused && step.ends_with("the new /proc") {
        return format!(
            "Parts of /proc are masked, so the kernel grants no new one. In Docker, start the container with \
             `--security-opt systempaths=unconfined`. {WEAKER}"
        );
    }
    if refused && is_about_mounts(step) && (facts.apparmor_restricts || !facts.in_container) {
        return format!(
            "AppArmor keeps this program from using user namespaces (`kernel.apparmor_restrict_unprivileged_userns`). \
             Install a profile for it in /etc/apparmor.d/omniforge: `abi <abi/4.0>, include <tunables/global> profile \
             omniforge /path/to/omniforge flags=(unconfined) {{ userns, }}` and load it with `apparmor_parser -r`. {WEAKER}"
        );
    }
    if refused && is_about_mounts(step) {
        return format!(
            "The container may not mount. In Docker, start it with `--security-opt seccomp=<profile that allows user \
             namespaces> --security-opt apparmor=unconfined --security-opt systempaths=unconfined`. {WEAKER}"
        );
    }
    format!("`omniforge doctor` lists what this machine can enforce. {WEAKER}")
}

fn is_about_mounts(step: &str) -> bool {
    ["map", "mount", "root", "proc", "setgroups", "group", "host name"].iter().any(|word| step.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_advice() {
        let host = Facts::default();
        let ubuntu = Facts { apparmor_restricts: true, ..host };
        let docker = Facts { in_container: true, ..host };
        let cases = [
            ("create namespaces", libc::EPERM, docker, "systempaths=unconfined"),
            ("create namespaces", libc::ENOSPC, host, "user.max_user_namespaces"),
            ("write the user map", libc::EPERM, ubuntu, "/etc/apparmor.d/omniforge"),
            ("make all mounts private", libc::EACCES, ubuntu, "/etc/apparmor.d/omniforge"),
            ("create the new /proc", libc::EPERM, docker, "/proc are masked"),
            ("make all mounts private", libc::EPERM, docker, "may not mount"),
            ("restrict file access with Landlock", 0, host, "lsm=landlock"),
            ("execute /usr/bin/sh", libc::ENOENT, host, "omniforge doctor"),
        ];
        for (step, errno, facts, expected) in cases {
            let text = advise(&Failure { step: step.to_owned(), errno }, facts);
            assert!(text.contains(expected), "{step}: {text}");
        }
    }
}
