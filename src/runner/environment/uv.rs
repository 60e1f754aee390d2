//! uv: which program, which arguments and variables, and what its words mean.
//!
//! uv gets options on its command line and lines of ours on stdin, no file of the author's and no setting of the user's: it
//! would obey a script's `[tool.uv]` table and a `uv.toml` in the home directory.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::EnvironmentOptions;
use super::builder::{BuildCommand, BuildEnd, BuildOutput, BuilderPlaces};
use super::error::EnvironmentError;

/// The most bytes of uv's own words that are kept.
const WORDS: usize = 8 << 10;
/// Lines that say how far uv is, not what went wrong.
const CHATTER: [&str; 8] =
    ["Using ", "Resolved ", "Prepared ", "Installed ", "Downloading ", "Downloaded ", "Bytecode compiled ", "Audited "];

/// The program that the settings name, else the first one on the search path.
///
/// # Errors
/// [`EnvironmentError::BadInstaller`] when the one that the settings name can't be used.
pub(super) fn find(given: Option<&Path>, search_path: &OsStr) -> Result<Option<PathBuf>, EnvironmentError> {
    if let Some(path) = given {
        return usable(path).map(Some).map_err(|problem| EnvironmentError::BadInstaller {
            path: path.display().to_string(),
            problem: problem.to_owned(),
        });
    }
    let directories =
        search_path.as_bytes().split(|byte| *byte == b':').map(|bytes| Path::new(OsStr::from_bytes(bytes)));
    Ok(directories.filter(|directory| directory.is_absolute()).find_map(|directory| usable(&directory.join("uv")).ok()))
}

/// The real file behind a path. Scripts (shims of version managers) are passed over: they need what the sandbox hasn't.
fn usable(path: &Path) -> Result<PathBuf, &'static str> {
    let real = path.canonicalize().map_err(|_| "does not exist")?;
    let metadata = fs::metadata(&real).map_err(|_| "can't be looked at")?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err("is no program");
    }
    let mut start = [0u8; 4];
    match fs::File::open(&real).and_then(|mut file| file.read_exact(&mut start)) {
        Ok(()) if start == *b"\x7fELF" => Ok(real),
        Ok(()) => Err("is a script, not uv itself"),
        Err(_) => Err("can't be read"),
    }
}

/// What is asked of uv.
pub(super) enum Task<'a> {
    /// Find versions for these lines.
    Resolve,
    /// Install a lock into this directory.
    Install {
        /// The directory's path below the writable one.
        target: &'a str,
    },
    /// Empty the cache.
    CleanCache,
}

/// The command for a task.
pub(super) fn command(
    options: &EnvironmentOptions,
    places: &BuilderPlaces,
    python: &Path,
    task: &Task<'_>,
    (stdin, offline): (String, bool),
) -> BuildCommand {
    let cache = format!("{}/cache", places.work);
    let mut command = vec![places.program.clone()];
    let mut add = |words: &[&str]| command.extend(words.iter().map(|&word| word.to_owned()));
    let python = python.display().to_string();
    let packages = ["--python", &python, "--no-python-downloads", "--only-binary", ":all:"];
    match task {
        Task::Resolve => {
            add(&["pip", "compile", "-", "--generate-hashes", "--no-header", "--no-annotate"]);
            add(&packages);
            if let Some(moment) = newest_release(options) {
                add(&["--exclude-newer", &moment]);
            }
        }
        Task::Install { target } => {
            add(&["pip", "install", "--requirements", "-", "--require-hashes", "--compile-bytecode"]);
            add(&packages);
            add(&["--target", &format!("{}/{target}", places.work)]);
        }
        Task::CleanCache => add(&["cache", "clean"]),
    }
    add(&["--no-config", "--no-progress", "--color", "never", "--system-certs", "--cache-dir", &cache]);
    if options.offline || offline {
        add(&["--offline"]);
    }
    BuildCommand {
        command,
        environment: environment(options),
        stdin,
        timeout: options.build_timeout,
        file_bytes: options.max_bytes_each,
        readable: readable(options),
    }
}

/// The moment after which a release is too young.
fn newest_release(options: &EnvironmentOptions) -> Option<String> {
    let age = time::Duration::days(i64::from(options.min_age_days?));
    let moment = time::OffsetDateTime::now_utc().checked_sub(age)?;
    moment.replace_nanosecond(0).ok()?.format(&time::format_description::well_known::Rfc3339).ok()
}

fn environment(options: &EnvironmentOptions) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("UV_NO_SYSTEM_CONFIG", "1"),
        // A dead network otherwise takes minutes to be found out.
        ("UV_HTTP_TIMEOUT", "30"),
        ("UV_HTTP_CONNECT_TIMEOUT", "10"),
        ("UV_HTTP_RETRIES", "2"),
        // Environments are read-only, so that the source never changes under its bytecode.
        ("PYC_INVALIDATION_MODE", "UNCHECKED_HASH"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    // Not an argument: everyone on the machine can read those, and the address may hold a password.
    variables.extend(options.index.iter().map(|index| ("UV_DEFAULT_INDEX".to_owned(), index.clone())));
    variables.extend(options.variables.iter().cloned());
    variables
}

/// The certificates that the variables name.
fn readable(options: &EnvironmentOptions) -> Vec<PathBuf> {
    let named = options.variables.iter().filter(|(name, _)| name == "SSL_CERT_FILE" || name == "SSL_CERT_DIR");
    named.map(|(_, path)| PathBuf::from(path)).filter(|path| path.is_absolute() && path.exists()).collect()
}

/// Whether uv failed because it couldn't reach the index. What is cached may still do.
pub(super) fn is_network_failure(output: &BuildOutput) -> bool {
    matches!(output.end, BuildEnd::Exit(code) if code != 0)
        && ["error sending request", "Failed to fetch", "Failed to download", "Could not connect", "timed out"]
            .iter()
            .any(|sign| output.stderr.contains(sign))
}

/// Whether it did what it was asked for.
pub(super) fn succeeded(output: &BuildOutput) -> bool {
    output.end == BuildEnd::Exit(0)
}

/// What uv wrote, when it succeeded.
///
/// # Errors
/// uv's own cause and hint, or why it was stopped.
pub(super) fn outcome(output: BuildOutput, doing: &str, seconds: u64) -> Result<String, EnvironmentError> {
    let doing = doing.to_owned();
    match output.end {
        BuildEnd::Exit(0) => Ok(output.stdout),
        BuildEnd::Exit(code) => {
            let text = own_words(&output.stderr);
            let text = if text.is_empty() { format!("uv left with exit code {code} and said nothing") } else { text };
            Err(EnvironmentError::Uv { text })
        }
        BuildEnd::Killed(problem) => Err(EnvironmentError::Stopped { doing, problem }),
        BuildEnd::TimedOut => Err(EnvironmentError::TimedOut { doing, seconds }),
    }
}

/// Cause and hint, without progress and control characters.
fn own_words(stderr: &str) -> String {
    let is_chatter = |line: &&str| CHATTER.iter().any(|start| line.trim_start().starts_with(start));
    let lines: Vec<&str> = stderr.lines().filter(|line| !is_chatter(line)).collect();
    let text: String = lines.join("\n").chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let text = text.trim();
    if text.len() <= WORDS {
        return text.to_owned();
    }
    // The cause comes last in a long chain, the hint after it.
    let cut = text.ceil_char_boundary(text.len() - WORDS);
    format!("…{}", &text[cut..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_leave_progress_out() {
        let text = "Using CPython 3.11.2 interpreter at: /usr/bin/python3.11\nResolved 8 packages in 1ms\n\u{1b}error: No solution\n  \
                    cause: Because x\n\nhint: Wheels are required\n";
        assert_eq!(own_words(text), "error: No solution\n  cause: Because x\n\nhint: Wheels are required");
        assert!(own_words(&"é".repeat(WORDS)).len() <= WORDS + 4);
    }

    #[test]
    fn scripts_are_no_uv() {
        let directory = tempfile::tempdir().unwrap();
        let shim = directory.path().join("uv");
        fs::write(&shim, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(None, directory.path().as_os_str()), Ok(None));
        let error = find(Some(&shim), OsStr::new("")).unwrap_err().to_string();
        assert!(error.contains("is a script"), "{error}");
        assert!(
            find(Some(Path::new("/nonexistent/uv")), OsStr::new(""))
                .unwrap_err()
                .to_string()
                .contains("does not exist")
        );
    }
}
