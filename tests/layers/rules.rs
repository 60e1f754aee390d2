//! The rules themselves. Each takes a source and gives its findings, one text each.

use crate::source::{Named, Source};

/// Modules by row (docs/architecture.md); a module imports only from lower numbers.
const ROWS: &[(&str, u8)] = &[
    ("main", 9),
    ("cli", 8),
    ("app", 7),
    ("api", 6),
    ("web", 6),
    ("http", 5),
    ("stdio", 5),
    ("mcp", 4),
    ("tools", 3),
    ("jobs", 2),
    ("auth", 2),
    ("trust", 2),
    ("store", 1),
    ("runner", 1),
    ("config", 0),
    ("clock", 0),
    ("lifecycle", 0),
    ("telemetry", 0),
    ("model", 0),
];

/// Pure types without any import of their own: also the other modules of the lowest row may use it.
const FLOOR: &str = "model";

/// A function may have this many lines, from `fn` to its closing brace.
const FUNCTION_LINES: usize = 60;

/// Where a part of the outside world may be touched.
struct Confined {
    /// What is confined, in words.
    what: &'static str,
    /// Whether a path touches it.
    touches: fn(&[String]) -> bool,
    /// Modules (or files) that may.
    home: &'static [&'static str],
}

const CONFINED: &[Confined] = &[
    Confined { what: "SQL (`sqlx`)", touches: |path| begins(path, &["sqlx"]), home: &["src/store"] },
    Confined {
        what: "HTTP routing (`axum`)",
        touches: |path| begins(path, &["axum"]),
        home: &["src/http", "src/api", "src/web"],
    },
    Confined { what: "starting a process", touches: starts_process, home: &["src/runner"] },
    Confined { what: "the environment (`std::env`)", touches: reads_environment, home: &["src/config"] },
];

/// Files that may do what their module may not: file, what, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "src/runner/spawner.rs",
    "the environment (`std::env`)",
    "the spawner is this program started again: it knows itself by its arguments, before there are settings",
)];

/// Where `unsafe` may stand.
const UNSAFE_HOME: &str = "src/runner/sandbox/sys";

/// Calls that make a process, under whatever crate's name.
const PROCESS_CALLS: &[&str] =
    &["fork", "vfork", "clone3", "posix_spawn", "posix_spawnp", "execv", "execve", "execveat", "execvp", "fexecve"];

fn begins(path: &[String], with: &[&str]) -> bool {
    path.len() >= with.len() && path.iter().zip(with).all(|(part, wanted)| part == wanted)
}

fn starts_process(path: &[String]) -> bool {
    let command = path.windows(2).any(|pair| pair[0] == "process" && pair[1] == "Command");
    let call = path.len() > 1 && path.last().is_some_and(|last| PROCESS_CALLS.contains(&last.as_str()));
    command || call || begins(path, &["tokio", "process"])
}

/// Constants, and splitting or joining a list of paths, read nothing.
fn reads_environment(path: &[String]) -> bool {
    let pure = path.get(2).is_some_and(|name| ["consts", "split_paths", "join_paths"].contains(&name.as_str()));
    begins(path, &["std", "env"]) && !pure
}

/// The top-level module a file belongs to; `None` for the crate's root.
fn module_of(file: &str) -> Option<&str> {
    let inner = file.strip_prefix("src/")?;
    let module = inner.split('/').next()?.trim_end_matches(".rs");
    (module != "lib").then_some(module)
}

/// How many modules deep a file stands: `src/a.rs` and `src/a/mod.rs` 1, `src/a/b.rs` 2.
fn depth_of(file: &str) -> usize {
    let parts = file.trim_start_matches("src/").split('/').count();
    if file.ends_with("/mod.rs") { parts - 1 } else { parts }
}

fn row_of(module: &str) -> Option<u8> {
    ROWS.iter().find(|(name, _)| *name == module).map(|(_, row)| *row)
}

/// Whether `from` may import `to`.
fn may_import(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    match (row_of(from), row_of(to)) {
        (Some(0), Some(0)) => to == FLOOR,
        (Some(above), Some(below)) => above > below,
        _ => false,
    }
}

/// The top-level module of this crate that a path leads to, if it leads out of its own.
fn target<'a>(path: &'a Named, file: &str) -> Option<&'a str> {
    let first = path.parts.first()?.as_str();
    if first == "crate" || first == "omniforge" {
        return path.parts.get(1).map(String::as_str);
    }
    let ups = path.parts.iter().take_while(|part| *part == "super").count();
    let leaves_module = ups > 0 && ups == depth_of(file) + path.depth;
    if leaves_module { path.parts.get(ups).map(String::as_str) } else { None }
}

/// Imports from a row that is not below, and modules without a row.
pub fn imports(source: &Source) -> Vec<String> {
    let Some(from) = module_of(&source.name) else { return Vec::new() };
    if row_of(from).is_none() {
        return vec![format!("{}: module `{from}` has no row; give it one in tests/layers/rules.rs", source.name)];
    }
    let judge = |path: &Named| {
        let to = target(path, &source.name)?;
        let known = to.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
        let wrong = known && !may_import(from, to);
        wrong.then(|| format!("{}:{}: `{from}` may not import `{to}`", source.name, path.line))
    };
    let mut findings: Vec<String> = source.paths().iter().filter_map(judge).collect();
    findings.dedup();
    findings
}

/// Whether a file lies in a module's folder or is its file.
fn lies_in(file: &str, home: &str) -> bool {
    file.strip_prefix(home).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
}

/// SQL, HTTP, processes, environment and `unsafe` outside their homes.
pub fn confined(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let paths = source.paths();
    for rule in CONFINED {
        let excused = EXCEPTIONS.iter().any(|(file, what, _)| *file == source.name && *what == rule.what);
        if excused || rule.home.iter().any(|home| lies_in(&source.name, home)) {
            continue;
        }
        for path in paths.iter().filter(|path| (rule.touches)(&path.parts)) {
            let spelled = path.parts.join("::");
            findings.push(format!(
                "{}:{}: {} belongs to {}, found `{spelled}`",
                source.name,
                path.line,
                rule.what,
                rule.home.join(", ")
            ));
        }
    }
    if !lies_in(&source.name, UNSAFE_HOME) {
        let finding = |line| format!("{}:{line}: `unsafe` belongs to {UNSAFE_HOME}", source.name);
        findings.extend(source.lines_with_word("unsafe").map(finding));
    }
    findings
}

/// A file that doesn't open with `//!`.
pub fn opening(source: &Source) -> Vec<String> {
    let first = source.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
    match first {
        Some(line) if line.starts_with("//!") => Vec::new(),
        _ => vec![format!("{}: must open with `//!`: what it owns, what it leaves to others", source.name)],
    }
}

/// Functions over the limit.
pub fn long_functions(source: &Source) -> Vec<String> {
    let long = source.functions().into_iter().filter(|function| function.lines > FUNCTION_LINES);
    long.map(|function| {
        let (file, line) = (&source.name, function.line);
        format!("{file}:{line}: `{}` has {} lines, at most {FUNCTION_LINES}", function.name, function.lines)
    })
    .collect()
}

/// Tests that are switched off with `#[ignore]`, also behind `cfg_attr`.
pub fn ignored(source: &Source) -> Vec<String> {
    let in_attribute = |line: &usize| source.code.lines().nth(line - 1).is_some_and(|text| text.contains("#["));
    let finding = |line| format!("{}:{line}: `#[ignore]`: mend the test or take it out", source.name);
    source.lines_with_word("ignore").filter(in_attribute).map(finding).collect()
}
