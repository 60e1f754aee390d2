//! What to do when the sandbox can't be built: the step that failed, and the setting that would allow it.

use std::fs;

use super::sandbox::spec::Failure;

/// Facts about this machine that tell one cause from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Facts {
    apparmor_restricts: bool,
    /// The AppArmor profile that this process is confined by.
    apparmor_profile: Option<String>,
    namespaces_allowed: Option<u64>,
    /// Whether a filter of system calls is in force already.
    filtered: bool,
    in_container: bool,
}

impl Facts {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let exists = |path: &str| fs::exists(path).unwrap_or(false);
        let own = fs::read_to_string("/proc/self/attr/apparmor/current")
            .or_else(|_| fs::read_to_string("/proc/self/attr/current"));
        let profile = own.ok().and_then(|text| text.split([' ', '\n', '\0']).next().map(str::to_owned));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            apparmor_profile: profile.filter(|name| !name.is_empty() && name != "unconfined"),
            namespaces_allowed: number("/proc/sys/user/max_user_namespaces"),
            filtered: status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])),
            in_container: [
                "/.dockerenv",
                "/run/.containerenv",
                "/run/secrets/kubernetes.io",
                "/run/host/container-manager",
            ]
            .into_iter()
            .any(exists),
        }
    }
}

const WEAKER: &str = "The weaker choice is `--sandbox landlock`; until then, tools do not run.";
const CONTAINER: &str = "In Docker, start the container with `--security-opt seccomp=deploy/seccomp.json --security-opt \
                         apparmor=omniforge-container --security-opt systempaths=unconfined`: docs/docker.md says why, \
                         and how to load the AppArmor profile first.";
const HOST_PROFILE: &str = "AppArmor keeps programs without a profile from using user namespaces \
                            (`kernel.apparmor_restrict_unprivileged_userns` is 1). Install `deploy/apparmor-omniforge` as \
                            /etc/apparmor.d/omniforge (its first profile names the program's path) and load it with \
                            `apparmor_parser --replace /etc/apparmor.d/omniforge`.";

/// What to do about this failure.
pub(super) fn advice(failure: &Failure) -> String {
    advise(failure, &Facts::read())
}

fn advise(failure: &Failure, facts: &Facts) -> String {
    let refused = failure.errno == libc::EPERM || failure.errno == libc::EACCES;
    let step = failure.step.as_str();
    let cause = match step {
        "create namespaces" if failure.errno == libc::EPERM => namespaces_refused(facts),
        "create namespaces" if failure.errno == libc::ENOSPC => {
            let allowed = facts.namespaces_allowed.map_or_else(String::new, |allowed| format!(" (it is {allowed})"));
            format!(
                "The limit `user.max_user_namespaces` is used up or 0{allowed}: raise it with \
                 `sysctl user.max_user_namespaces=10000`."
            )
        }
        _ if step.starts_with("restrict file access with Landlock") => landlock_missing(facts),
        "install the seccomp filter" => {
            "The kernel takes no filter of system calls: it was built without CONFIG_SECCOMP_FILTER, or the container's \
             own filter refuses the call `seccomp`."
                .to_owned()
        }
        _ if refused && step.ends_with("the new /proc") => format!(
            "Parts of /proc are hidden by mounts on top of them, as Docker does it, so the kernel grants no new one. \
             {CONTAINER}"
        ),
        _ if refused && is_about_mounts(step) => mounts_refused(facts),
        _ => "`omniforge doctor` lists what this machine can enforce.".to_owned(),
    };
    if step.starts_with("restrict file access with Landlock") { cause } else { format!("{cause} {WEAKER}") }
}

fn namespaces_refused(facts: &Facts) -> String {
    if facts.in_container || facts.filtered {
        return format!(
            "User namespaces are denied by a filter of system calls, such as Docker's own, or by the container's \
             settings. {CONTAINER}"
        );
    }
    "User namespaces are denied to ordinary users: allow them with `sysctl kernel.unprivileged_userns_clone=1`."
        .to_owned()
}

fn mounts_refused(facts: &Facts) -> String {
    if let Some(profile) = &facts.apparmor_profile {
        let where_ = if facts.in_container { CONTAINER } else { "Give the program a profile that allows it to mount." };
        return format!("The AppArmor profile `{profile}` denies mounts, as `docker-default` does. {where_}");
    }
    if facts.in_container {
        return format!(
            "The container may not mount: Docker's AppArmor profile and its filter of calls deny it. {CONTAINER}"
        );
    }
    if facts.apparmor_restricts {
        return HOST_PROFILE.to_owned();
    }
    "Something on this machine denies mounts inside user namespaces: a security module, which says so in the kernel's log \
     (`journalctl -k`), or a filter of system calls."
        .to_owned()
}

fn landlock_missing(facts: &Facts) -> String {
    let text = "Landlock needs Linux 5.13, and `--sandbox landlock` version 6 of it (Linux 6.12); it must be among the \
                kernel's security modules: boot with `lsm=landlock,…` as `/sys/kernel/security/lsm` shows them.";
    let also = " Or the container's filter of system calls hides it: `deploy/seccomp.json` does not.";
    if facts.filtered { format!("{text}{also}") } else { text.to_owned() }
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
        let ubuntu = Facts { apparmor_restricts: true, ..host.clone() };
        let docker = Facts { in_container: true, filtered: true, ..host.clone() };
        let confined = Facts { apparmor_profile: Some("docker-default".to_owned()), ..docker.clone() };
        let docker_on_ubuntu = Facts { apparmor_restricts: true, ..docker.clone() };
        let containers = "apparmor=omniforge-container";
        let cases = [
            ("create namespaces", libc::EPERM, &docker, "seccomp=deploy/seccomp.json"),
            ("create namespaces", libc::EPERM, &host, "kernel.unprivileged_userns_clone=1"),
            ("create namespaces", libc::ENOSPC, &host, "user.max_user_namespaces"),
            ("write the user map", libc::EPERM, &ubuntu, "/etc/apparmor.d/omniforge"),
            ("make all mounts private", libc::EACCES, &ubuntu, "/etc/apparmor.d/omniforge"),
            ("make all mounts private", libc::EACCES, &host, "journalctl -k"),
            ("make all mounts private", libc::EACCES, &confined, "profile `docker-default` denies mounts"),
            ("make all mounts private", libc::EACCES, &confined, containers),
            ("make all mounts private", libc::EACCES, &docker_on_ubuntu, containers),
            ("create the new /proc", libc::EPERM, &docker, "systempaths=unconfined"),
            ("make all mounts private", libc::EPERM, &docker, "may not mount"),
            ("restrict file access with Landlock", 0, &host, "lsm=landlock"),
            ("restrict file access with Landlock", 0, &docker, "deploy/seccomp.json"),
            ("install the seccomp filter", libc::EINVAL, &host, "CONFIG_SECCOMP_FILTER"),
            ("execute /usr/bin/sh", libc::ENOENT, &host, "omniforge doctor"),
        ];
        for (step, errno, facts, expected) in cases {
            let text = advise(&Failure { step: step.to_owned(), errno }, facts);
            assert!(text.contains(expected), "{step}: {text}");
        }
    }
}
