//! The proof at the start: a script runs in the whole sandbox and tries what it must not be able to do.

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::interpreters::Runtime;
use super::{RunNetwork, RunRequest, Runner, RunnerError, outcome};
use crate::model::{Ending, Json, Language, Limits, RunId, SandboxLevel, Style};

/// What the script prints when it could do nothing that it must not.
const HOLDS: &str = "the sandbox holds";

/// Tries in turn to read a file of the server's, to write outside its own directory, to see other processes and to find a
/// network. Only the shell's own commands: nothing else needs to be installed.
const SCRIPT: &str = r#"
fail() { echo "a script can $1"; exit 1; }
read -r secret < "$ARG_HIDDEN" && fail "read the server's files"
(: > /usr/omniforge-self-test) && fail "write to /usr"
(: > "$ARG_HIDDEN-written") && fail "write to the server's directory"
if [ "$ARG_LEVEL" = full ]; then
    [ -e "$ARG_HIDDEN" ] && fail "see the server's files"
    count=0
    for process in /proc/[0-9]*; do count=$((count + 1)); done
    [ "$count" -gt 3 ] && fail "see the machine's processes"
    while read -r interface _; do
        case $interface in lo:*|*\||Inter-*|face) ;; *) fail "see the network interface $interface" ;; esac
    done < /proc/net/dev
fi
(: > "$HOME/file") || { echo "a script cannot write to its own directory"; exit 1; }
echo "the sandbox holds"
"#;

/// Proves the runner's sandbox.
///
/// # Errors
/// [`RunnerError::Sandbox`] with step and advice when it can't be built, [`RunnerError::NotIsolated`] when it doesn't hold.
pub(super) async fn prove(runner: &Runner) -> Result<(), RunnerError> {
    let inner = &runner.inner;
    let hidden = inner.runtime_dir.join("self-test");
    let failed = RunnerError::io("write the self-test's file");
    tokio::fs::write(&hidden, "a file of the server's").await.map_err(&failed)?;
    let level = inner.sandbox;
    let request = RunRequest {
        id: RunId(uuid::Uuid::now_v7()),
        language: Language::Bash,
        style: Style::Script,
        code: if level == SandboxLevel::None { format!("echo '{HOLDS}'").into() } else { SCRIPT.into() },
        arguments: Json::of(&json!({"hidden": hidden, "level": level.as_str()}))
            .map_err(|error| failed(error.into()))?,
        limits: Limits::default(),
        environment: None,
        held: None,
        may_wait: false,
        context: json!({}),
        secrets: Vec::new(),
        network: RunNetwork::None,
    };
    let shell = runner.runtime(Language::Bash).cloned().unwrap_or_else(plain_shell);
    let (listener, _) = mpsc::channel(1);
    let finished = runner.finish_with(&shell, (&request, false), &listener, &CancellationToken::new()).await?;
    let outcome = outcome::of(finished, Style::Script, level);
    tokio::fs::remove_file(&hidden).await.map_err(&failed)?;
    if outcome.ending == Ending::Ok && outcome.stdout.text.trim() == HOLDS {
        return Ok(());
    }
    let said = if outcome.stdout.text.trim().is_empty() { outcome.stderr.text } else { outcome.stdout.text };
    let problem = format!("{} (the self-test ended with `{}`)", said.trim(), outcome.ending.as_str());
    Err(RunnerError::NotIsolated { problem })
}

/// The shell that every system has; it runs the self-test where no Bash is installed.
fn plain_shell() -> Runtime {
    Runtime { language: Language::Bash, path: "/bin/sh".into(), prefix: "/usr".into(), version: String::new() }
}
