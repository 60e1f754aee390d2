//! Which interpreters there are: the configured one, else the first on the search path that, resolved past shims, the
//! sandbox's user can execute.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{RunnerError, RunnerOptions};
use crate::model::Language;

/// An installed interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// What it runs.
    pub language: Language,
    /// The program itself, no shim and no link.
    pub path: PathBuf,
    /// The directory that holds all of it; mounted where it isn't under `/usr`.
    pub prefix: PathBuf,
    /// Its version, such as `3.11.7`.
    pub version: String,
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.language.as_str(), self.version)
    }
}

/// The first Node that strips TypeScript's types without being asked.
const NODE_STRIPS_TYPES: (u32, u32) = (22, 18);
/// Prints path, prefix and version, a line each. Of a virtual environment, the real interpreter counts.
const ASK_PYTHON: &str = "import os, sys\nbase = getattr(sys, '_base_executable', None) or sys.executable\nprint(os.path.realpath(base))\nprint(os.path.realpath(sys.base_prefix))\nprint('.'.join(map(str, sys.version_info[:3])))";
const ASK_NODE: &str = "console.log(require('fs').realpathSync(process.execPath)); console.log(process.versions.node)";

/// The interpreters of this machine, in the order of [`Language::ALL`].
pub(super) fn find(options: &RunnerOptions) -> Vec<Runtime> {
    let mut found: Vec<Runtime> = Vec::new();
    found.extend(first(options, options.python.as_deref(), &["python3", "python"], ask_python));
    let node = first(options, options.node.as_deref(), &["node", "nodejs"], ask_node);
    let strips = node.as_ref().is_some_and(|node| strips_types(&node.version));
    found.extend(node.clone());
    found.extend(node.filter(|_| strips).map(|node| Runtime { language: Language::TypeScript, ..node }));
    found.extend(first(options, options.bash.as_deref(), &["bash"], ask_bash));
    found
}

fn first(
    options: &RunnerOptions,
    configured: Option<&Path>,
    names: &[&str],
    ask: fn(&Path) -> Option<Runtime>,
) -> Option<Runtime> {
    let candidates: Vec<PathBuf> = match configured {
        Some(path) => vec![path.to_owned()],
        None => std::env::split_paths(&options.search_path)
            .flat_map(|dir| names.iter().map(move |name| dir.join(name)))
            .filter(|path| path.is_file())
            .collect(),
    };
    candidates.iter().find_map(|path| ask(path).filter(usable))
}

/// Whether the sandbox's user, who owns nothing, can execute it. Directories above its prefix don't matter: the prefix is
/// mounted.
fn usable(runtime: &Runtime) -> bool {
    let open = |path: &Path, bits: u32| path.metadata().is_ok_and(|metadata| metadata.mode() & bits == bits);
    open(&runtime.path, 0o005) && (runtime.prefix.starts_with("/usr") || open(&runtime.prefix, 0o005))
}

/// What a program prints, where it ends well. Only interpreters that the administrator or PATH names are asked.
fn say(path: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

fn ask_python(path: &Path) -> Option<Runtime> {
    let lines = say(path, &["-I", "-c", ASK_PYTHON])?;
    let [path, prefix, version] = lines.as_slice() else { return None };
    Some(Runtime { language: Language::Python, path: path.into(), prefix: prefix.into(), version: version.clone() })
}

fn ask_node(path: &Path) -> Option<Runtime> {
    let lines = say(path, &["-e", ASK_NODE])?;
    let [path, version] = lines.as_slice() else { return None };
    let path = PathBuf::from(path);
    // PREFIX/bin/node
    let prefix = path.parent()?.parent()?.to_owned();
    Some(Runtime { language: Language::JavaScript, path, prefix, version: version.clone() })
}

fn ask_bash(path: &Path) -> Option<Runtime> {
    let version = say(path, &["-c", "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}"])?.pop()?;
    let path = path.canonicalize().ok()?;
    let prefix = path.parent()?.parent()?.to_owned();
    // `/bin/bash` where /bin is no link: its prefix would be the whole root, and /bin is mounted anyway.
    let prefix = if prefix == Path::new("/") { PathBuf::from("/usr") } else { prefix };
    Some(Runtime { language: Language::Bash, path, prefix, version })
}

fn strips_types(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= NODE_STRIPS_TYPES
}

/// Writes the harness's bytecode for this interpreter.
///
/// # Errors
/// [`RunnerError::Harness`] with the interpreter's own words.
pub(super) fn compile_harness(runtime: &Runtime, script: &Path) -> Result<(), RunnerError> {
    let failed = |problem: String| RunnerError::Harness { path: runtime.path.clone(), problem };
    let output = Command::new(&runtime.path).args(["-I", "-S"]).arg(script).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_real_interpreter_behind_a_shim() {
        let dir = tempfile::tempdir().unwrap();
        let shim = dir.path().join("python3");
        std::fs::write(&shim, "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n").unwrap();
        std::fs::set_permissions(&shim, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let options = RunnerOptions {
            sandbox: crate::model::SandboxLevel::Full,
            runtime_dir: dir.path().to_owned(),
            outputs_dir: dir.path().to_owned(),
            search_path: dir.path().as_os_str().to_owned(),
            python: None,
            node: None,
            bash: None,
            network: Default::default(),
            warm: false,
        };
        let found = find(&options);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].path.starts_with("/usr/bin"), "{found:?}");
        assert!(found[0].version.starts_with("3."));
    }

    #[test]
    fn node_strips_types_from_22_18_on() {
        assert!(strips_types("22.18.0") && strips_types("24.0.1"));
        assert!(!strips_types("22.17.9") && !strips_types("20.20.2"));
    }
}
