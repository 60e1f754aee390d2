//! Holds the shape of the code (docs/architecture.md): who may import whom, where SQL, HTTP, processes and the
//! environment may be touched, how long a file and a function may be.
//!
//! Reads the sources as text, so it needs no crate and can't be talked out of its opinion by a `cfg`.

#[path = "layers/rules.rs"]
mod rules;
#[path = "layers/selftest.rs"]
mod selftest;
#[path = "layers/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::Source;

/// A file may be this long.
const FILE_LINES: usize = 400;

/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[
    ("tests/checks/wire_acceptance.py", "the acceptance cases as they were given"),
    ("assets/omniforge.css", "the whole style is one ordered file (DESIGN §9, issue 7: below 900 lines)"),
];

/// Endings of the files whose length is checked; a file without an ending is checked when it opens with `#!`.
const WRITTEN_BY_HAND: &[&str] = &["rs", "py", "js", "mjs", "cjs", "ts", "sh", "sql", "html", "css"];

/// Folders of the project's own sources.
const FOLDERS: &[&str] = &["src", "tests", "benches", "scripts", "migrations", "templates", "assets"];

/// Folders below them that hold what was installed or built, not written.
const NOT_OURS: &[&str] = &["node_modules", "vendor", "dist", "__pycache__", "target", "snapshots"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder, with its path relative to the project; none where the folder doesn't exist.
fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(folder)];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.expect("a folder's entry can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() || NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                let relative = path.strip_prefix(root()).expect("found below the root").to_string_lossy().into_owned();
                found.push((relative, path));
            }
        }
    }
    found.sort();
    found
}

/// The Rust sources below a folder.
fn rust_sources(folder: &str) -> Vec<Source> {
    let read = |(relative, path): (String, PathBuf)| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {relative}: {error}"));
        Source::new(&relative, &text)
    };
    files(folder).into_iter().filter(|(name, _)| name.ends_with(".rs")).map(read).collect()
}

/// Fails with every finding at once, one a line.
fn require_none(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} finding(s):\n  {}", findings.len(), findings.join("\n  "));
}

#[test]
fn modules_import_only_from_rows_below() {
    let sources = rust_sources("src");
    assert!(sources.len() > 5, "the sources were not found");
    require_none(sources.iter().flat_map(rules::imports).collect());
}

#[test]
fn sql_http_processes_environment_and_unsafe_stay_where_they_belong() {
    require_none(rust_sources("src").iter().flat_map(rules::confined).collect());
}

#[test]
fn every_module_says_what_it_owns() {
    require_none(rust_sources("src").iter().flat_map(rules::opening).collect());
}

#[test]
fn functions_are_short() {
    let folders = ["src", "tests", "benches"];
    require_none(
        folders.into_iter().flat_map(rust_sources).flat_map(|source| rules::long_functions(&source)).collect(),
    );
}

#[test]
fn no_test_is_switched_off() {
    let folders = ["src", "tests", "benches"];
    require_none(folders.into_iter().flat_map(rust_sources).flat_map(|source| rules::ignored(&source)).collect());
}

#[test]
fn files_are_short() {
    let mut findings = Vec::new();
    for (name, path) in FOLDERS.iter().flat_map(|folder| files(folder)) {
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let ours = ending.map_or(text.starts_with("#!"), |ending| WRITTEN_BY_HAND.contains(&ending.as_str()));
        let excused = LONG_FILES.iter().any(|(long, _)| *long == name);
        let lines = text.lines().count();
        if ours && !excused && lines > FILE_LINES {
            findings.push(format!("{name}: {lines} lines, at most {FILE_LINES}; split it by meaning"));
        }
    }
    require_none(findings);
}

#[test]
fn the_tests_behind_promises_exist() {
    let text = fs::read_to_string(root().join("docs/security.md")).expect("docs/security.md can be read");
    let promises: Vec<(&str, &str)> = text.split('`').filter_map(|part| part.split_once(".rs::")).collect();
    assert!(promises.len() > 20, "{} promises name a test", promises.len());
    let is_missing = |(file, test): &(&str, &str)| {
        let source = fs::read_to_string(root().join(format!("tests/it/{file}.rs"))).unwrap_or_default();
        !source.contains(&format!("fn {test}("))
    };
    require_none(
        promises.iter().filter(|it| is_missing(it)).map(|(file, test)| format!("{file}.rs::{test}")).collect(),
    );
}
