//! What is said where the kernel refuses the sandbox, as containers and security modules make it do: the step, the
//! kernel's reason, the remedy. And nothing runs then.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// What Docker's own filter of system calls does to a container without privileges.
const DOCKER_FILTER: &[&str] =
    &["namespaces=EPERM", "clone3=ENOSYS", "unshare=EPERM", "setns=EPERM", "mount=EPERM", "umount2=EPERM"];
/// What AppArmor's `docker-default` does.
const DOCKER_PROFILE: &[&str] = &["mount=EACCES", "umount2=EACCES", "pivot_root=EACCES", "move_mount=EACCES"];

/// One way to be refused, and what is said of it.
struct Case {
    refused: &'static [&'static str],
    /// Whether each level works: full, landlock.
    works: [bool; 2],
    /// What the message for `full` holds.
    words: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        refused: DOCKER_FILTER,
        works: [false, true],
        words: &[
            "create namespaces (Operation not permitted",
            "seccomp=deploy/seccomp.json",
            "apparmor=omniforge-container",
            "systempaths=unconfined",
            "docs/docker.md",
        ],
    },
    Case { refused: DOCKER_PROFILE, works: [false, true], words: &["make all mounts private (Permission denied"] },
    Case {
        refused: &["landlock_create_ruleset=ENOSYS"],
        works: [false, false],
        words: &["Landlock", "Linux 5.13", "lsm=landlock", "deploy/seccomp.json"],
    },
    Case {
        refused: &["seccomp=EPERM"],
        works: [false, false],
        words: &["install the seccomp filter", "CONFIG_SECCOMP_FILTER"],
    },
    // Programs are told to fall back: this refuses nothing.
    Case { refused: &["clone3=ENOSYS"], works: [true, true], words: &[] },
];

fn omniforge(data: &Path, command: &str, options: &[&str]) -> Vec<String> {
    let mut arguments = vec![env!("CARGO_BIN_EXE_omniforge"), command, "--data-dir", data.to_str().unwrap()];
    arguments.extend(options);
    arguments.into_iter().map(ToOwned::to_owned).collect()
}

/// Runs a command to which these system calls are refused.
fn refusing(refused: &[&str], command: &[String]) -> Output {
    let deny = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/checks/deny.py");
    Command::new("python3").arg(deny).args(refused).arg("--").args(command).output().unwrap()
}

/// Runs a command in a user namespace of its own, after a preparation.
fn in_namespace(preparation: &str, command: &[String]) -> Output {
    let script = format!("{preparation} && exec \"$@\"");
    let unshare = ["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"];
    Command::new("unshare").args(unshare).args(command).output().unwrap()
}

/// What `doctor --json` found, level by level.
fn findings(output: &Output) -> (Option<i32>, Vec<Value>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report["sandboxes"].as_array().unwrap().clone())
}

fn check_problem(finding: &Value, words: &[&str]) {
    let problem = finding["problem"].as_str().unwrap();
    for word in words {
        assert!(problem.contains(word), "no `{word}` in: {problem}");
    }
    assert!(!problem.contains("BitFlags"), "{problem}");
}

#[test]
fn doctor_names_step_reason_and_remedy() {
    let data = tempfile::tempdir().unwrap();
    for Case { refused, works, words } in CASES {
        let output = refusing(refused, &omniforge(data.path(), "doctor", &["--json"]));
        let (status, found) = findings(&output);
        assert_eq!(
            found.iter().map(|level| level["works"] == true).collect::<Vec<_>>(),
            works,
            "{refused:?} {found:?}"
        );
        assert_eq!(status, Some(if works[0] { 0 } else { 1 }), "{refused:?}");
        for finding in found.iter().filter(|finding| finding["works"] == false) {
            check_problem(finding, if finding["level"] == "full" { words } else { &words[..1] });
        }
        // A weaker level that works is no failure for who chose it.
        let output = refusing(refused, &omniforge(data.path(), "doctor", &["--json", "--sandbox", "landlock"]));
        assert_eq!(output.status.code(), Some(if works[1] { 0 } else { 1 }), "{refused:?}");
    }
}

#[test]
fn a_denied_mount_gets_the_remedy_for_where_it_happens() {
    let data = tempfile::tempdir().unwrap();
    let (_, found) = findings(&refusing(DOCKER_PROFILE, &omniforge(data.path(), "doctor", &["--json"])));
    let problem = found[0]["problem"].as_str().unwrap();
    let remedies =
        ["apparmor=omniforge-container", "/etc/apparmor.d/omniforge", "journalctl -k", "a profile that allows"];
    assert!(remedies.iter().any(|remedy| problem.contains(remedy)), "{problem}");
    assert!(problem.contains("--sandbox landlock"), "{problem}");
}

#[test]
fn real_limits_and_a_masked_proc_are_told_apart() {
    let data = tempfile::tempdir().unwrap();
    let doctor = omniforge(data.path(), "doctor", &["--json"]);
    for (preparation, words) in [
        (
            "echo 0 > /proc/sys/user/max_user_namespaces",
            ["create namespaces (No space left on device", "user.max_user_namespaces", "(it is 0)"],
        ),
        (
            "mount --bind /dev/null /proc/version",
            ["the new /proc (Operation not permitted", "hidden by mounts", "systempaths=unconfined"],
        ),
    ] {
        let (status, found) = findings(&in_namespace(preparation, &doctor));
        assert_eq!((status, &found[0]["works"]), (Some(1), &Value::Bool(false)), "{preparation}: {found:?}");
        check_problem(&found[0], &words);
        assert_eq!(found[1]["works"], true, "{preparation}: {found:?}");
    }
}

#[test]
fn serve_says_the_same_and_serves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let serve = omniforge(data.path(), "serve", &["--listen", "127.0.0.1:0", "--ready-json"]);
    for Case { refused, words, .. } in CASES.iter().filter(|case| !case.works[0]) {
        let output = refusing(refused, &serve);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{refused:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        for word in *words {
            assert!(said.contains(word), "no `{word}` in: {said}");
        }
    }
}

#[test]
fn the_container_profile_that_we_ship_allows_the_whole_sandbox_and_refuses_others() {
    let data = tempfile::tempdir().unwrap();
    let profile = ["--profile", concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/seccomp.json")];
    let (status, found) = findings(&refusing(&profile, &omniforge(data.path(), "doctor", &["--json"])));
    assert_eq!(status, Some(0), "{found:?}");
    assert!(found.iter().all(|level| level["works"] == true), "{found:?}");
    let strace = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, os.getppid(), 0, 0), ctypes.get_errno())";
    let refused = refusing(&profile, &["python3", "-c", strace].map(str::to_owned));
    assert_eq!(String::from_utf8_lossy(&refused.stdout), "-1 1\n");
}
