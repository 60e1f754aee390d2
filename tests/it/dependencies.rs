//! Tools with packages of their own, through the product's door: saved, installed, called, kept and cleared away.

use std::fs::{File, TryLockError};
use std::path::Path;

use serde_json::{Value, json};

use crate::environments::{age, entries, until};
use crate::server::Server;

const VERSION: &str = "import six\n\ndef main():\n    return six.__version__\n";

/// The environments that are there, by name.
fn environments(data_dir: &Path) -> Vec<String> {
    entries(&data_dir.join("environments")).into_iter().filter(|name| name.len() == 64).collect()
}

/// Whether somebody uses or builds this environment.
fn is_held(data_dir: &Path, name: &str) -> bool {
    let lock = File::open(data_dir.join("environments/locks").join(name)).unwrap();
    matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
}

/// Saves a tool that wants this package and calls it once; the name of its environment.
async fn installed(server: &Server, data_dir: &Path, tool: Value) -> String {
    let before = environments(data_dir);
    let name = tool["name"].as_str().unwrap().to_owned();
    server.create(tool).await;
    let (text, is_error) = server.call(&name, json!({})).await;
    assert!(!is_error, "{text}");
    let new: Vec<String> = environments(data_dir).into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    new.into_iter().next().unwrap()
}

/// The page's line of each tool: its name, and the words of its state.
async fn states(server: &Server) -> Vec<(String, String)> {
    let page = server.page("/").await;
    let between = |text: &str, start: &str, end: &str| {
        let from = text.split_once(start).unwrap_or_else(|| panic!("no {start:?} in {text}")).1;
        from.split_once(end).unwrap().0.to_owned()
    };
    page.split("<th scope=\"row\"")
        .skip(1)
        .map(|row| (between(row, "<bdi>", "</bdi>"), between(row, "<span class=\"vh\">", "</span>")))
        .collect()
}

#[tokio::test]
async fn the_page_tells_the_state_of_every_tool() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--auth", "none"]);
    let code = "def main():\n    return 1\n";
    for tool in [json!({"name": "off", "enabled": false}), json!({"name": "slow", "timeout_seconds": 600})] {
        let mut tool = tool;
        tool["code"] = json!(code);
        server.create(tool).await;
    }
    server.create(json!({"name": "plain", "code": code})).await;
    let owned = |states: [(&str, &str); 3]| states.map(|(name, state)| (name.to_owned(), state.to_owned()));
    let expected = owned([("plain", "Ready"), ("slow", "Needs approval"), ("off", "Off")]);
    assert_eq!(states(&server).await, expected);
    drop(server);
    // What was saved under a laxer policy waits under a stricter one, and the page says so.
    let server = Server::start_on(dir.path(), &["--auth", "none", "--approval", "always"]);
    let expected = owned([("plain", "Needs approval"), ("slow", "Needs approval"), ("off", "Off")]);
    assert_eq!(states(&server).await, expected);
}

#[tokio::test]
async fn environments_are_cleared_away_once_no_tool_needs_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join("environments").join(name);
    let server = Server::start_on(dir.path(), &[]);
    let tool =
        |name: &str, version: &str| json!({"name": name, "code": VERSION, "dependencies": [format!("six=={version}")]});
    let old = installed(&server, dir.path(), tool("changed", "1.14.0")).await;
    let kept = installed(&server, dir.path(), tool("kept", "1.16.0")).await;
    server.create(json!({"name": "changed", "replace": true, "code": VERSION, "dependencies": ["six==1.16.0"]})).await;
    let deleted = installed(&server, dir.path(), tool("deleted", "1.17.0")).await;
    let recent = installed(&server, dir.path(), tool("recent", "1.15.0")).await;
    for name in ["deleted", "recent"] {
        server.call("omniforge_delete_tool", json!({"name": name})).await;
    }
    drop(server);
    for environment in [&old, &kept, &deleted] {
        age(&path(environment), 40);
    }
    let server = Server::start_on(dir.path(), &["--environment-keep-days", "35"]);
    until(|| !path(&old).exists() && !path(&deleted).exists()).await;
    assert!(path(&kept).exists(), "a tool needs it");
    assert!(path(&recent).exists(), "it was used just now");
    assert_eq!(server.call("changed", json!({})).await, ("1.16.0".to_owned(), false));
}

#[tokio::test]
async fn an_environment_that_a_run_uses_is_never_removed_by_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join("environments").join(name);
    // An interpreter that waits for calls uses its environment, too.
    let server = Server::start_on(dir.path(), &["--warm", "off"]);
    let code = "import time\n\ndef main(long: bool = False):\n    time.sleep(50 * long)\n";
    let tool = |name: &str, package: &str| json!({"name": name, "code": code, "dependencies": [package]});
    let used = installed(&server, dir.path(), tool("used", "six==1.16.0")).await;
    let unused = installed(&server, dir.path(), tool("unused", "six==1.17.0")).await;
    let cancelled = async {
        until(|| is_held(dir.path(), &used)).await;
        let (runs, _) = server.call("omniforge_list_runs", json!({"tool": "used", "ending": "running"})).await;
        let runs: Value = serde_json::from_str(&runs).unwrap();
        for name in ["used", "unused"] {
            server.call("omniforge_delete_tool", json!({"name": name})).await;
        }
        // The one in use looks older: it would go first.
        age(&path(&used), 50);
        age(&path(&unused), 40);
        let _other = Server::start_on(dir.path(), &[]);
        until(|| !path(&unused).exists()).await;
        assert!(path(&used).exists());
        server.call("omniforge_cancel_run", json!({"run_id": runs["runs"][0]["run_id"]})).await;
    };
    tokio::join!(server.rpc("tools/call", json!({"name": "used", "arguments": {"long": true}})), cancelled);
    let _third = Server::start_on(dir.path(), &[]);
    until(|| !path(&used).exists()).await;
}

#[tokio::test]
async fn a_failed_environment_answers_at_once_and_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let tool = json!({"name": "tool", "code": VERSION, "dependencies": ["six==1.16.0"]});
    let name = installed(&server, dir.path(), tool).await;
    let builds = dir.path().join("environments/work/builds");
    std::fs::remove_dir_all(dir.path().join("environments").join(name)).unwrap();
    // In the installer's way.
    std::fs::remove_dir_all(&builds).unwrap();
    std::fs::write(&builds, "").unwrap();
    let (waited, is_error) = server.call("tool", json!({})).await;
    assert!(is_error && waited.contains("[install] ") && !waited.contains("tried again"), "{waited}");
    let (at_once, is_error) = server.call("tool", json!({})).await;
    assert!(is_error && at_once.starts_with(&waited) && at_once.contains("It is being tried again"), "{at_once}");
    std::fs::remove_file(&builds).unwrap();
    let mut answer = (at_once, true);
    for _ in 0..100 {
        if answer.1 {
            answer = server.call("tool", json!({})).await;
        }
    }
    assert_eq!(answer, ("1.16.0".to_owned(), false));
}

#[tokio::test]
async fn what_requires_the_same_keeps_its_lock_whatever_the_index_has_today() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let code = format!("# /// script\n# dependencies = [\"idna\"]\n# ///\n{VERSION}");
    let tool = json!({"name": "tool", "code": code, "dependencies": ["six>=1.15"]});
    let name = installed(&server, dir.path(), tool).await;
    let (version, _) = server.call("tool", json!({})).await;
    drop(server);
    // An index on which every release is too young: whoever asks it finds nothing.
    let server = Server::start_on(dir.path(), &["--package-min-age-days", "9000"]);
    for change in [
        json!({"description": "Another text"}),
        json!({"code": format!("{code}# another code\n")}),
        json!({"dependencies": ["SIX >= 1.15", "six>=1.15"]}),
        json!({"dependencies": ["idna", "six>=1.15"], "code": VERSION}),
    ] {
        let mut change = change;
        change["name"] = json!("tool");
        let (text, is_error) = server.call("omniforge_update_tool", change).await;
        assert!(!is_error && text.starts_with("Saved `tool`"), "{text}");
    }
    assert_eq!(server.call("tool", json!({})).await, (version, false));
    assert_eq!(environments(dir.path()), [name]);
    for change in [
        json!({"dependencies": ["six>=1.16", "idna"]}),
        json!({"dependencies": ["six>=1.15"]}),
        json!({"code": format!("# /// script\n# requires-python = \">=3.8\"\n# ///\n{VERSION}")}),
    ] {
        let mut change = change;
        change["name"] = json!("tool");
        let (text, is_error) = server.call("omniforge_update_tool", change).await;
        assert!(is_error && text.starts_with("[install] ") && text.ends_with("Nothing was saved."), "{text}");
    }
    let (text, _) = server.call("omniforge_get_tool", json!({"name": "tool"})).await;
    assert!(text.contains("\"latest\":5"), "{text}");
}

/// What `omniforge_get_tool` says of the newest version: its status, the serving number and its own.
async fn status(server: &Server, name: &str) -> (String, Value, Value) {
    let (text, _) = server.call("omniforge_get_tool", json!({"name": name})).await;
    let tool: Value = serde_json::from_str(&text).unwrap();
    (tool["status"].as_str().unwrap().to_owned(), tool["versions"]["serving"].clone(), tool["version"].clone())
}

#[tokio::test]
async fn a_failing_build_leaves_the_last_good_version_serving() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--auth", "none", "--environment-max-mb", "1"]);
    server.create(json!({"name": "tool", "code": VERSION, "dependencies": ["six==1.16.0"]})).await;
    assert_eq!(server.call("tool", json!({})).await.0, "1.16.0");
    let heavy =
        json!({"name": "tool", "code": "def main():\n    return 'new'\n", "dependencies": ["pygments==2.19.2"]});
    let (text, is_error) = server.call("omniforge_update_tool", heavy.clone()).await;
    assert!(!is_error && text.contains("Environment: failed: ") && text.contains("Version 1 serves on"), "{text}");
    assert_eq!(server.call("tool", json!({})).await, ("1.16.0".to_owned(), false));
    let (words, serving, latest) = status(&server, "tool").await;
    assert!(words.starts_with("failed: ") && (serving, latest) == (json!(1), json!(2)), "{words}");
    assert_eq!(states(&server).await, [("tool".to_owned(), "Install failed".to_owned())]);
    drop(server);
    // Whatever was in the way is gone: the next start goes on with it.
    let server = Server::start_on(dir.path(), &[]);
    let mut answers = Vec::new();
    while answers.last().is_none_or(|(text, _)| text == "1.16.0") && answers.len() < 500 {
        answers.push(server.call("tool", json!({})).await);
    }
    assert_eq!(answers.pop().unwrap(), ("new".to_owned(), false));
    assert!(answers.iter().all(|(_, is_error)| !is_error), "{answers:?}");
    assert_eq!(status(&server, "tool").await, ("ready".to_owned(), json!(2), json!(2)));
}

#[tokio::test]
async fn a_failed_build_is_tried_again_by_saving_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let old = json!({"name": "tool", "code": VERSION, "dependencies": ["six==1.16.0"]});
    let old = installed(&server, dir.path(), old).await;
    let builds = dir.path().join("environments/work/builds");
    std::fs::remove_dir_all(&builds).unwrap();
    std::fs::write(&builds, "").unwrap();
    let change = json!({"name": "tool", "dependencies": ["six==1.17.0"]});
    let (text, _) = server.call("omniforge_update_tool", change.clone()).await;
    assert!(text.starts_with("Saved `tool`, version 2.") && text.contains("Version 1 serves on"), "{text}");
    std::fs::remove_file(&builds).unwrap();
    let (text, _) = server.call("omniforge_update_tool", change).await;
    assert!(text.starts_with("Unchanged: `tool`, version 2.") && text.contains("Environment: ready."), "{text}");
    assert_eq!(server.call("tool", json!({})).await, ("1.17.0".to_owned(), false), "at once");
    // The way back needs its environment, too.
    std::fs::remove_dir_all(dir.path().join("environments").join(old)).unwrap();
    let (text, _) = server.call("omniforge_rollback_tool", json!({"name": "tool", "version": 1})).await;
    assert!(text.contains("version 3.") && !text.contains("serves"), "{text}");
    assert_eq!(server.call("tool", json!({})).await, ("1.16.0".to_owned(), false));
}

#[tokio::test]
async fn the_page_shows_what_is_being_installed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &["--auth", "none"]);
    let tool = json!({"name": "tool", "code": VERSION, "dependencies": ["six==1.16.0"]});
    let name = installed(&server, dir.path(), tool).await;
    let state = |words: &str| [("tool".to_owned(), words.to_owned())];
    assert_eq!(states(&server).await, state("Ready"));
    // As if another process were building it.
    let lock = File::options().write(true).open(dir.path().join("environments/locks").join(&name)).unwrap();
    lock.lock().unwrap();
    std::fs::remove_dir_all(dir.path().join("environments").join(&name)).unwrap();
    server.call("omniforge_update_tool", json!({"name": "tool"})).await;
    let mut shown = states(&server).await;
    for _ in 0..100 {
        // The install begins beside the reply.
        if shown == state("Ready") {
            shown = states(&server).await;
        }
    }
    assert_eq!(shown, state("Installing"));
    lock.unlock().unwrap();
    assert_eq!(server.call("tool", json!({})).await, ("1.16.0".to_owned(), false));
    assert_eq!(states(&server).await, state("Ready"));
}
