//! Turns a request into a process: command line, environment, mounts, limits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::frames::Dispatch;
use super::interpreters::Runtime;
use super::layout::{Layout, text};
use super::mask::Masker;
use super::network::{NetworkOptions, Plan, RunNetwork, Serving};
use super::process::{Call, Launch};
use super::sandbox::spec::{Mount, ProcessLimits, Purpose, Spec};
use super::{RunRequest, RunnerError, harness, spawner};
use crate::model::{Json, Language, Limits, RunId, SandboxLevel, SecretNameError, check_secret_name};

/// The most bytes of arguments and of code.
const ARGUMENTS_LIMIT: usize = 8 << 20;
const CODE_LIMIT: usize = 1 << 20;
/// The most bytes of one argument, and of all, that Bash gets as variables.
const VARIABLE_LIMIT: usize = 64 << 10;
const VARIABLES_LIMIT: usize = 512 << 10;
/// The variables that differ from call to call.
const CALLS_OWN: [&str; 2] = ["OMNIFORGE_RUN_ID=", "OMNIFORGE_TOOL="];
/// Where programs are looked for.
pub(super) const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Address space that Python may reserve beyond its memory limit: stacks, arenas, mapped libraries.
const ADDRESS_SPACE_SLACK: u64 = 4 << 30;

/// A process for this request, and the places it uses (to be kept until it has ended).
///
/// # Errors
/// When the request is too large or can't be passed to a process, or the run's directory can't be made.
pub(super) fn prepare(
    level: SandboxLevel,
    runtime_dir: &Path,
    runtime: &Runtime,
    request: &RunRequest,
    inspect: bool,
) -> Result<(Launch, Layout), RunnerError> {
    check_size("the arguments", request.arguments.get().len(), ARGUMENTS_LIMIT)?;
    check_size("the code", request.code.len(), CODE_LIMIT)?;
    let mut layout = Layout::new(level, runtime_dir, request.id, request.environment.as_deref())?;
    let has_harness = request.language != Language::Bash;
    let script = (!has_harness).then(|| request.code.to_string());
    layout.mounts.extend(runtime.mount()?);
    layout.write_files(request.arguments.get(), script.as_deref()).map_err(RunnerError::io("write a run's files"))?;
    let spec = Spec {
        command: command(runtime, &layout, inspect)?,
        environment: environment(&layout, runtime, request)?,
        script,
        ..base_spec(level, &layout, process_limits(&request.limits, request.language))
    };
    let frame = if has_harness { Some(dispatch(request, inspect)?) } else { None };
    let stdin = spawner::memory_file(request.arguments.get().as_bytes())
        .map_err(RunnerError::io("hold the arguments in memory"))?;
    let spools = spools(runtime_dir, request.id);
    // A run that learns has placeholders in their place, which may be seen.
    let secrets = request.secrets.iter().filter(|_| !matches!(request.network, RunNetwork::Learn));
    let masker = Masker::new(secrets.map(|(_, value)| value.as_str())).map(Arc::new);
    let limits = request.limits.clone();
    Ok((Launch { spec, stdin, call: Call { frame, limits, spools, network: None, masker } }, layout))
}

/// Gives a launch the network of its run, where the run has one and the sandbox can hold it.
///
/// # Errors
/// An entry that names no host.
pub(super) fn connect(
    launch: &mut Launch,
    network: &RunNetwork,
    options: &Arc<NetworkOptions>,
) -> Result<(), RunnerError> {
    let (entries, learn): (&[String], bool) = match network {
        RunNetwork::None => return Ok(()),
        RunNetwork::Granted(entries) => (entries, false),
        RunNetwork::Learn => (&[], true),
    };
    if launch.spec.level != SandboxLevel::Full {
        return Ok(());
    }
    let Some(plan) = Plan::new(entries, learn).map_err(|source| RunnerError::Network { source })? else {
        return Ok(());
    };
    launch.spec.environment.extend(plan.variables().into_iter().map(|(name, value)| format!("{name}={value}")));
    launch.spec.network = Some(plan.spec());
    launch.call.network = Some(Serving::new(plan, Arc::clone(options)));
    Ok(())
}

/// Where a run's long outputs go.
pub(super) fn spools(runtime_dir: &Path, id: RunId) -> [std::path::PathBuf; 2] {
    ["stdout", "stderr"].map(|stream| runtime_dir.join("spool").join(format!("{id}.{stream}")))
}

/// A spec without command and environment.
pub(super) fn base_spec(level: SandboxLevel, layout: &Layout, limits: ProcessLimits) -> Spec {
    Spec {
        level,
        command: Vec::new(),
        environment: Vec::new(),
        directory: layout.work.clone(),
        mounts: layout.mounts.clone(),
        script: None,
        purpose: Purpose::Tool,
        writable: layout.directory.as_ref().map(|_| layout.tmp.clone()),
        limits,
        network: None,
        waits: false,
    }
}

/// The spec of a sandbox that can serve this one's call and any other that is like it: all that is the call's alone is left
/// out and comes with the call. `None` where that can't be.
pub(super) fn waiting(spec: &Spec) -> Option<Spec> {
    let fits = spec.level == SandboxLevel::Full && spec.script.is_none() && spec.network.is_none();
    let is_calls = |variable: &String| CALLS_OWN.iter().any(|name| variable.starts_with(name));
    let environment = spec.environment.iter().filter(|variable| !is_calls(variable)).cloned().collect();
    fits.then(|| Spec { environment, waits: true, ..spec.clone() })
}

/// The limits that the sandbox enforces, of those that the run has.
pub(super) fn process_limits(limits: &Limits, language: Language) -> ProcessLimits {
    ProcessLimits {
        cpu_milliseconds: u64::try_from(limits.cpu.as_millis()).unwrap_or(u64::MAX),
        memory_bytes: limits.memory_bytes,
        // Node reserves far more than it uses and doesn't start under such a limit.
        address_space_bytes: (language == Language::Python).then(|| limits.memory_bytes + ADDRESS_SPACE_SLACK),
        processes: limits.processes,
        tmp_bytes: limits.tmp_bytes,
        file_bytes: limits.file_bytes,
        open_files: limits.open_files,
    }
}

fn check_size(what: &'static str, size: usize, limit: usize) -> Result<(), RunnerError> {
    if size > limit { Err(RunnerError::TooLarge { what, size, limit }) } else { Ok(()) }
}

fn dispatch(request: &RunRequest, inspect: bool) -> Result<Vec<u8>, RunnerError> {
    let dispatch = Dispatch {
        language: request.language,
        style: request.style,
        code: &request.code,
        arguments: &request.arguments,
        context: &request.context,
        result_limit: request.limits.result_bytes,
        inspect,
    };
    let too_large = RunnerError::TooLarge { what: "the request", size: usize::MAX, limit: u32::MAX as usize };
    dispatch.to_frame().ok_or(too_large)
}

fn command(runtime: &Runtime, layout: &Layout, inspect: bool) -> Result<Vec<String>, RunnerError> {
    let program = text(&runtime.path)?;
    let strings = |arguments: &[&str]| arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>();
    let arguments = match runtime.language {
        Language::Python => harness::python_arguments(&layout.harness),
        Language::JavaScript | Language::TypeScript => vec![format!("{}/node/run.cjs", layout.harness)],
        // It parses a script itself; with `-n` it executes no command.
        Language::Bash if inspect => strings(&["-n", &format!("{}/main.sh", layout.tool)]),
        Language::Bash => vec![format!("{}/main.sh", layout.tool)],
    };
    Ok([program].into_iter().chain(arguments).collect())
}

fn environment(layout: &Layout, runtime: &Runtime, request: &RunRequest) -> Result<Vec<String>, RunnerError> {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    if runtime.language == Language::Bash {
        variables.extend(argument_variables(&request.arguments));
    }
    for (name, value) in &request.secrets {
        check_secret(name, value)?;
        variables.insert(name.clone(), value.clone());
    }
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    set("PATH", runtime.search_path()?);
    set("HOME", layout.work.clone());
    set("TMPDIR", layout.tmp.clone());
    set("LANG", "C.UTF-8".to_owned());
    set("OMNIFORGE_RUN_ID", request.id.to_string());
    set("OMNIFORGE_ARGS_FILE", format!("{}/arguments.json", layout.tool));
    if let Some(tool) = request.context.get("tool").and_then(Value::as_str).filter(|tool| !tool.contains('\0')) {
        set("OMNIFORGE_TOOL", tool.to_owned());
    }
    if let Some(environment) = &layout.environment {
        set("OMNIFORGE_ENVIRONMENT", environment.clone());
    }
    if runtime.language == Language::Python {
        // One arena per thread reserves so much address space that 14 threads reach the limit.
        set("MALLOC_ARENA_MAX", "2".to_owned());
        set("PYTHONDONTWRITEBYTECODE", "1".to_owned());
    }
    Ok(variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
}

fn check_secret(name: &str, value: &str) -> Result<(), RunnerError> {
    let reason = match check_secret_name(name) {
        Err(SecretNameError::NoVariable) => "its name can't be the name of a variable",
        Err(SecretNameError::Reserved) => "its name is reserved",
        Ok(()) if value.contains('\0') => "its value holds a NUL byte",
        Ok(()) => return Ok(()),
    };
    Err(RunnerError::Secret { name: name.to_owned(), reason })
}

/// `ARG_<NAME>` for each top-level scalar, as its JSON says it (strings without quotes).
fn argument_variables(arguments: &Json) -> BTreeMap<String, String> {
    let object: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get()).unwrap_or_default();
    let mut left = VARIABLES_LIMIT;
    let mut variables = BTreeMap::new();
    for (name, value) in object {
        let Some(value) = scalar(value.get()) else { continue };
        let name = variable_name(&name);
        let size = name.len() + value.len();
        if value.contains('\0') || size > VARIABLE_LIMIT || size > left {
            continue;
        }
        left -= size;
        variables.insert(name, value);
    }
    variables
}

fn scalar(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'{' | b'[' => None,
        b'n' => Some(String::new()),
        _ => Some(json.to_owned()),
    }
}

fn variable_name(argument: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    format!("ARG_{}", argument.chars().map(letter).collect::<String>())
}

impl Runtime {
    /// The mount that the interpreter needs; none when it is among the system's programs.
    pub(super) fn mount(&self) -> Result<Option<Mount>, RunnerError> {
        if self.prefix.starts_with("/usr") {
            return Ok(None);
        }
        let prefix = text(&self.prefix)?;
        Ok(Some(Mount { source: prefix.clone(), target: prefix }))
    }

    fn search_path(&self) -> Result<String, RunnerError> {
        if self.prefix.starts_with("/usr") {
            return Ok(SEARCH_PATH.to_owned());
        }
        Ok(format!("{}/bin:{SEARCH_PATH}", text(&self.prefix)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_become_variables() {
        let json = r#"{"name":"a\"b","n-1":1.50,"big":123456789012345678901234567890,"yes":true,"no":null,"list":[1],
            "zero":"\u0000","é":"x"}"#;
        let variables = argument_variables(&Json::parse(json.to_owned()).unwrap());
        let expected = [
            ("ARG_BIG", "123456789012345678901234567890"),
            ("ARG_N_1", "1.50"),
            ("ARG_NAME", "a\"b"),
            ("ARG_NO", ""),
            ("ARG_YES", "true"),
            ("ARG__", "x"),
        ];
        assert_eq!(variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn long_values_are_left_to_the_file() {
        let json = format!(r#"{{"long":"{}","short":"s"}}"#, "x".repeat(VARIABLE_LIMIT + 1));
        let variables = argument_variables(&Json::parse(json).unwrap());
        assert_eq!(variables.keys().collect::<Vec<_>>(), ["ARG_SHORT"]);
    }

    #[test]
    fn secrets_cannot_replace_what_the_runner_sets() {
        assert!(check_secret("API_KEY", "x").is_ok());
        for (name, value) in [("PATH", "x"), ("LD_PRELOAD", "x"), ("OMNIFORGE_X", "x"), ("A=B", "x"), ("A", "\0")] {
            assert!(check_secret(name, value).is_err(), "{name}");
        }
    }
}
