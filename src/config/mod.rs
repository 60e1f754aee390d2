//! Settings: flag over `OMNIFORGE_*` variable over `omniforge.toml` over default. The only place that reads the
//! environment.

mod key;
mod network;
mod options;
mod packages;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
pub use key::{KeySource, KeyText};
pub use options::{List, Options};

use crate::model::{Ceilings, Limits, SandboxLevel};

/// Why the settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("cannot read the settings file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no TOML, or has an unknown key or a wrong type.
    #[error("the settings file {} is wrong: {problem}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, key and what was expected.
        problem: String,
    },
    /// A value is not one of those allowed.
    #[error("`{name}` is `{value}`; it must be {expected}")]
    Value {
        /// The option's name.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// `--auth none` on an address that others can reach.
    #[error(
        "`--auth none` lets everyone in, so it only works on a loopback address; `{listen}` is not one. Use \
         `--listen 127.0.0.1:8787`, or leave `--auth` out so that a token is needed"
    )]
    OpenToTheWorld {
        /// The address.
        listen: SocketAddr,
    },
    /// No place for the data.
    #[error("no data directory: neither `--data-dir`, `XDG_DATA_HOME` nor `HOME` is set; give `--data-dir DIR`")]
    NoDataDirectory,
}

/// Who must show a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Everybody.
    Token,
    /// Nobody; one principal. Loopback only.
    None,
}

/// What waits for a person's approval (DESIGN §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Versions that ask for reach.
    Reach,
    /// Every version.
    Always,
    /// Nothing.
    Never,
}

/// How much of the runs' history is kept (DESIGN §4). A run that has not ended is always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// How long the results of runs are kept after their end.
    pub results: Duration,
    /// How long their rows are.
    pub rows: Duration,
    /// How many rows are.
    pub count: u32,
}

/// All settings of a process, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The URL clients reach us by, when a proxy stands before us. Without a trailing slash.
    pub public_url: Option<String>,
    /// Who must show a credential.
    pub auth: AuthMode,
    /// Where the key is that opens approvals and secrets.
    pub key: KeySource,
    /// How runs are confined.
    pub sandbox: SandboxLevel,
    /// Whether interpreters are started ahead of calls.
    pub warm: bool,
    /// What waits for approval.
    pub approval: ApprovalPolicy,
    /// Further `Host` values that are served.
    pub allowed_hosts: Vec<String>,
    /// Reverse proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins of browsers' pages that may call.
    pub allowed_origins: Vec<String>,
    /// The interpreters, where the first on PATH is not wanted.
    pub python: Option<PathBuf>,
    /// Node.
    pub node: Option<PathBuf>,
    /// Bash.
    pub bash: Option<PathBuf>,
    /// The `uv` program.
    pub uv: Option<PathBuf>,
    /// The package index that environments are built from; the one of the machine's package tools, else uv's default, when
    /// unset.
    pub package_index: Option<String>,
    /// Certificates and proxies that the installer of packages gets, as `NAME` and value.
    pub package_variables: Vec<(String, String)>,
    /// Only these packages may be installed; all when empty.
    pub package_allow: Vec<String>,
    /// Ignore releases younger than this many days.
    pub package_min_age_days: Option<u32>,
    /// The most bytes of one environment.
    pub environment_max_bytes: u64,
    /// The most bytes of all environments, with the installer's cache.
    pub environments_max_bytes: u64,
    /// How long an environment that no version needs is kept after its last use.
    pub environment_keep: Duration,
    /// Build environments from what is cached alone.
    pub offline: bool,
    /// Internal addresses that network grants may open by naming the host.
    pub network_private_allow: Vec<IpNet>,
    /// Addresses of names for runs, over what DNS says.
    pub network_hosts: BTreeMap<String, IpAddr>,
    /// PATH, to find programs by.
    pub search_path: OsString,
    /// Arguments are never coerced.
    pub strict_arguments: bool,
    /// The limits of a run that asks for nothing.
    pub limits: Limits,
    /// The most that a tool may ask for.
    pub ceilings: Ceilings,
    /// Runs at once.
    pub slots: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// How long a call may wait for a slot.
    pub queue_wait: Duration,
    /// How long a call of an `auto` tool waits before it becomes a handle.
    pub inline_wait: Duration,
    /// How much of the runs' history is kept.
    pub history: History,
    /// How long entries of the audit log are kept; for good when unset.
    pub audit_keep: Option<Duration>,
    /// How long running calls may go on after SIGTERM.
    pub drain: Duration,
    /// What the log shows (`tracing` filter syntax).
    pub log: String,
}

impl Settings {
    /// Puts flags and variables (already in `options`) over the settings file over defaults.
    ///
    /// # Errors
    /// [`ConfigError`] names the option, the value and what would be right.
    pub fn resolve(options: Options) -> Result<Self, ConfigError> {
        let data_dir = data_dir(&options)?;
        let file = options.config.clone().or_else(|| {
            let default = data_dir.join("omniforge.toml");
            default.exists().then_some(default)
        });
        let options = match file {
            Some(path) => options.over(Options::from_file(&path)?),
            None => options,
        };
        Self::checked(options, data_dir)
    }

    fn checked(options: Options, data_dir: PathBuf) -> Result<Self, ConfigError> {
        let listen = listen(options.listen.as_deref().unwrap_or("127.0.0.1:8787"))?;
        let auth = one_of("auth", options.auth.as_deref(), &[("token", AuthMode::Token), ("none", AuthMode::None)])?;
        if auth == AuthMode::None && !listen.ip().is_loopback() {
            return Err(ConfigError::OpenToTheWorld { listen });
        }
        let sandbox = one_of("sandbox", options.sandbox.as_deref(), SANDBOXES)?;
        let approval = one_of("approval", options.approval.as_deref(), APPROVALS)?;
        let history = history(&options)?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            listen,
            data_dir,
            public_url: options.public_url.as_deref().map(public_url).transpose()?,
            auth,
            key: key::source(options.key_file),
            sandbox,
            warm: one_of("warm", options.warm.as_deref(), &[("on", true), ("off", false)])?,
            approval,
            allowed_hosts: options.allowed_hosts.unwrap_or_default().0,
            trusted_proxies: network::ranges("trusted_proxies", options.trusted_proxies)?,
            allowed_origins: options.allowed_origins.unwrap_or_default().0,
            python: options.python,
            node: options.node,
            bash: options.bash,
            uv: options.uv,
            package_index: options.package_index.or_else(packages::index),
            package_variables: packages::variables(),
            package_allow: options.package_allow.unwrap_or_default().0,
            package_min_age_days: options.package_min_age_days,
            environment_max_bytes: mebibytes("environment_max_mb", options.environment_max_mb, 2048)?,
            environments_max_bytes: mebibytes("environments_max_mb", options.environments_max_mb, 20_480)?,
            environment_keep: days(options.environment_keep_days.unwrap_or(30)),
            offline: options.offline.unwrap_or(false),
            network_private_allow: network::ranges("network_private_allow", options.network_private_allow)?,
            network_hosts: network::hosts(options.network_hosts)?,
            search_path: std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            strict_arguments: options.strict_arguments.unwrap_or(false),
            limits: Limits::default(),
            ceilings: Ceilings::default(),
            slots: positive("slots", options.slots, 2 * cores)?,
            queue: options.queue.unwrap_or(256),
            queue_wait: Duration::from_secs(options.queue_wait_seconds.unwrap_or(30)),
            inline_wait: Duration::from_secs(options.inline_wait_seconds.unwrap_or(25)),
            history,
            audit_keep: audit_keep(options.audit_keep_days)?,
            drain: Duration::from_secs(options.drain_seconds.unwrap_or(5)),
            log: options.log.unwrap_or_else(|| "info,rmcp=warn,sqlx=warn".to_owned()),
        })
    }
}

const SANDBOXES: &[(&str, SandboxLevel)] =
    &[("full", SandboxLevel::Full), ("landlock", SandboxLevel::Landlock), ("none", SandboxLevel::None)];
const APPROVALS: &[(&str, ApprovalPolicy)] =
    &[("reach", ApprovalPolicy::Reach), ("always", ApprovalPolicy::Always), ("never", ApprovalPolicy::Never)];

/// The value of that name; the first when none is given.
fn one_of<T: Copy>(name: &'static str, given: Option<&str>, allowed: &[(&str, T)]) -> Result<T, ConfigError> {
    let Some(given) = given else { return Ok(allowed[0].1) };
    allowed.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| ConfigError::Value {
        name,
        value: given.to_owned(),
        expected: allowed.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
    })
}

fn positive<N: Copy + Default + PartialEq>(name: &'static str, given: Option<N>, default: N) -> Result<N, ConfigError> {
    let value = given.unwrap_or(default);
    if value == N::default() {
        return Err(ConfigError::Value { name, value: "0".into(), expected: "at least 1".into() });
    }
    Ok(value)
}

fn history(options: &Options) -> Result<History, ConfigError> {
    Ok(History {
        results: Duration::from_hours(positive("result_keep_hours", options.result_keep_hours, 24)?.into()),
        rows: days(positive("run_keep_days", options.run_keep_days, 30)?),
        count: positive("run_keep_rows", options.run_keep_rows, 1_000_000)?,
    })
}

fn audit_keep(given: Option<u32>) -> Result<Option<Duration>, ConfigError> {
    given.map(|given| positive("audit_keep_days", Some(given), 1).map(days)).transpose()
}

/// That many mebibytes in bytes.
fn mebibytes(name: &'static str, given: Option<u64>, default: u64) -> Result<u64, ConfigError> {
    let count = given.unwrap_or(default);
    count.checked_mul(1 << 20).filter(|bytes| *bytes > 0).ok_or_else(|| ConfigError::Value {
        name,
        value: count.to_string(),
        expected: format!("from 1 to {}", u64::MAX >> 20),
    })
}

fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 3600)
}

fn listen(text: &str) -> Result<SocketAddr, ConfigError> {
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let text = named.as_deref().unwrap_or(text);
    text.parse().or_else(|_| text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 8787))).map_err(|_| {
        ConfigError::Value {
            name: "listen",
            value: text.to_owned(),
            expected: "an address and a port, such as 127.0.0.1:8787 or [::1]:8787".to_owned(),
        }
    })
}

fn public_url(text: &str) -> Result<String, ConfigError> {
    let url = text.trim_end_matches('/');
    let after = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let well_formed =
        after.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ']));
    if well_formed {
        return Ok(url.to_owned());
    }
    Err(ConfigError::Value {
        name: "public_url",
        value: text.to_owned(),
        expected: "an http(s) URL without query, such as https://tools.example.com/forge".to_owned(),
    })
}

fn data_dir(options: &Options) -> Result<PathBuf, ConfigError> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(dir) = &options.data_dir {
        return Ok(absolute(dir));
    }
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base =
        of("XDG_DATA_HOME").filter(|path| path.is_absolute()).or_else(|| of("HOME").map(|h| h.join(".local/share")));
    base.map(|base| base.join("omniforge")).ok_or(ConfigError::NoDataDirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: Options) -> Result<Settings, ConfigError> {
        Settings::resolve(Options { data_dir: Some("/nonexistent/omniforge".into()), ..options })
    }

    #[test]
    fn defaults_are_safe() {
        let settings = settings(Options::default()).unwrap();
        assert!(settings.listen.ip().is_loopback());
        assert_eq!((settings.auth, settings.sandbox), (AuthMode::Token, SandboxLevel::Full));
    }

    #[test]
    fn open_doors_are_refused_beyond_loopback() {
        let open = |listen: &str| {
            settings(Options { auth: Some("none".into()), listen: Some(listen.into()), ..Options::default() })
        };
        assert!(open("127.0.0.1:0").is_ok());
        assert!(open("[::1]:0").is_ok());
        assert!(matches!(open("0.0.0.0:8787"), Err(ConfigError::OpenToTheWorld { .. })));
    }

    #[test]
    fn a_wrong_value_names_what_would_be_right() {
        let error = settings(Options { sandbox: Some("off".into()), ..Options::default() }).unwrap_err();
        assert_eq!(error.to_string(), "`sandbox` is `off`; it must be `full` or `landlock` or `none`");
        assert!(settings(Options { listen: Some("nowhere".into()), ..Options::default() }).is_err());
        assert!(settings(Options { public_url: Some("ftp://x".into()), ..Options::default() }).is_err());
        let error = settings(Options { environment_max_mb: Some(0), ..Options::default() }).unwrap_err().to_string();
        assert!(error.starts_with("`environment_max_mb` is `0`; it must be from 1 to "), "{error}");
        assert!(settings(Options { run_keep_rows: Some(0), ..Options::default() }).is_err());
        assert!(settings(Options { environments_max_mb: Some(u64::MAX), ..Options::default() }).is_err());
    }
}
