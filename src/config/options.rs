//! The options as given: on the command line, in `OMNIFORGE_*` variables, in `omniforge.toml`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;

/// Declares each option once: flag, variable and file key share its name.
macro_rules! options {
    ($($(#[doc = $doc:literal])* $name:ident / $variable:literal: $type:ty $(, $value:literal)?;)*) => {
        /// Every option of the server; `None` where it was not given.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, clap::Args)]
        #[serde(deny_unknown_fields, default)]
        pub struct Options {
            /// Settings file [default: omniforge.toml in the data directory]
            #[arg(long, env = "OMNIFORGE_CONFIG", value_name = "FILE")]
            #[serde(skip)]
            pub config: Option<PathBuf>,
            $(
                $(#[doc = $doc])*
                #[arg(long, env = $variable $(, value_name = $value)?)]
                pub $name: Option<$type>,
            )*
        }

        impl Options {
            /// These options, with those of `file` where nothing was given.
            pub fn over(self, file: Self) -> Self {
                Self { config: self.config, $($name: self.$name.or(file.$name),)* }
            }
        }
    };
}

/// Several values: parted by commas on the command line and in a variable, an array in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct List(pub Vec<String>);

impl FromStr for List {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()))
    }
}

options! {
    /// Address and port to listen on [default: 127.0.0.1:8787]
    listen / "OMNIFORGE_LISTEN": String, "ADDRESS";
    /// Where everything is kept [default: $XDG_DATA_HOME/omniforge]
    data_dir / "OMNIFORGE_DATA_DIR": PathBuf, "DIR";
    /// The URL that clients reach the server by, behind a proxy
    public_url / "OMNIFORGE_PUBLIC_URL": String, "URL";
    /// Who must show a token: `token` (everybody) or `none` (loopback only) [default: token]
    auth / "OMNIFORGE_AUTH": String, "MODE";
    /// How runs are confined: `full`, `landlock` (weaker) or `none` [default: full]
    sandbox / "OMNIFORGE_SANDBOX": String, "LEVEL";
    /// Whether interpreters are started ahead of calls: `on` or `off` [default: on]
    warm / "OMNIFORGE_WARM": String, "on|off";
    /// The key that opens approvals and secrets, in a file [default: $OMNIFORGE_KEY, else `server.key` in the data directory]
    key_file / "OMNIFORGE_KEY_FILE": PathBuf, "FILE";
    /// What waits for a person: `reach`, `always` or `never` [default: reach]
    approval / "OMNIFORGE_APPROVAL": String, "POLICY";
    /// Further Host values to serve, such as tools.example.com
    allowed_hosts / "OMNIFORGE_ALLOWED_HOSTS": List, "HOST";
    /// Reverse proxies that say whom they speak for, such as 10.1.0.0/16 [default: none]
    trusted_proxies / "OMNIFORGE_TRUSTED_PROXIES": List, "RANGE";
    /// Origins of web pages that may call, such as https://app.example.com
    allowed_origins / "OMNIFORGE_ALLOWED_ORIGINS": List, "ORIGIN";
    /// The Python interpreter [default: the first python3 on PATH]
    python / "OMNIFORGE_PYTHON": PathBuf, "FILE";
    /// The Node program [default: the first node on PATH]
    node / "OMNIFORGE_NODE": PathBuf, "FILE";
    /// The Bash program [default: the first bash on PATH]
    bash / "OMNIFORGE_BASH": PathBuf, "FILE";
    /// The uv program, which installs dependencies [default: the first uv on PATH]
    uv / "OMNIFORGE_UV": PathBuf, "FILE";
    /// The package index for Python dependencies [default: UV_DEFAULT_INDEX, PIP_INDEX_URL or uv's own]
    package_index / "OMNIFORGE_PACKAGE_INDEX": String, "URL";
    /// Packages that may be installed [default: all]
    package_allow / "OMNIFORGE_PACKAGE_ALLOW": List, "NAME";
    /// Ignore package releases younger than this
    package_min_age_days / "OMNIFORGE_PACKAGE_MIN_AGE_DAYS": u32, "DAYS";
    /// The most mebibytes that one tool's dependencies may take [default: 2048]
    environment_max_mb / "OMNIFORGE_ENVIRONMENT_MAX_MB": u64, "MIB";
    /// The most mebibytes of all dependencies, with the installer's cache [default: 20480]
    environments_max_mb / "OMNIFORGE_ENVIRONMENTS_MAX_MB": u64, "MIB";
    /// How long dependencies that no tool needs are kept after their last use [default: 30]
    environment_keep_days / "OMNIFORGE_ENVIRONMENT_KEEP_DAYS": u32, "DAYS";
    /// Install from what is cached alone
    offline / "OMNIFORGE_OFFLINE": bool, "BOOL";
    /// Internal addresses that a network grant may open by naming the host, such as 10.1.0.0/16 [default: none]
    network_private_allow / "OMNIFORGE_NETWORK_PRIVATE_ALLOW": List, "RANGE";
    /// Addresses of names for runs, over what DNS says, such as db.internal=10.1.2.3
    network_hosts / "OMNIFORGE_NETWORK_HOSTS": List, "NAME=ADDRESS";
    /// Never turn JSON in a string argument into the value that the schema wants
    strict_arguments / "OMNIFORGE_STRICT_ARGUMENTS": bool, "BOOL";
    /// Runs at once [default: twice the cores]
    slots / "OMNIFORGE_SLOTS": usize, "N";
    /// Calls that may wait for a slot [default: 256]
    queue / "OMNIFORGE_QUEUE": usize, "N";
    /// How long a call may wait for a slot [default: 30]
    queue_wait_seconds / "OMNIFORGE_QUEUE_WAIT_SECONDS": u64, "SECONDS";
    /// How long a call of an `auto` tool waits before it goes on as a run to be fetched later [default: 25]
    inline_wait_seconds / "OMNIFORGE_INLINE_WAIT_SECONDS": u64, "SECONDS";
    /// How long the results of runs are kept [default: 24]
    result_keep_hours / "OMNIFORGE_RESULT_KEEP_HOURS": u32, "HOURS";
    /// How long runs are kept in the history [default: 30]
    run_keep_days / "OMNIFORGE_RUN_KEEP_DAYS": u32, "DAYS";
    /// How many runs are kept in the history [default: 1000000]
    run_keep_rows / "OMNIFORGE_RUN_KEEP_ROWS": u32, "N";
    /// How long entries of the audit log are kept [default: for good]
    audit_keep_days / "OMNIFORGE_AUDIT_KEEP_DAYS": u32, "DAYS";
    /// How long running calls may go on after SIGTERM [default: 5]
    drain_seconds / "OMNIFORGE_DRAIN_SECONDS": u64, "SECONDS";
    /// What the log shows, such as `debug` or `info,omniforge::runner=debug`
    log / "OMNIFORGE_LOG": String, "FILTER";
}

impl Options {
    /// Reads a settings file.
    ///
    /// # Errors
    /// [`ConfigError::Read`], or [`ConfigError::Parse`] with line and key.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text)
            .map_err(|error| ConfigError::Parse { path: path.to_owned(), problem: error.to_string().trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_options_stand_over_the_file_and_an_unknown_key_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("omniforge.toml");
        std::fs::write(&path, "listen = \"127.0.0.1:1\"\nslots = 3\n").unwrap();
        let given = Options { slots: Some(5), ..Options::default() };
        let merged = given.over(Options::from_file(&path).unwrap());
        assert_eq!((merged.slots, merged.listen.as_deref()), (Some(5), Some("127.0.0.1:1")));
        std::fs::write(&path, "listne = \"127.0.0.1:1\"\n").unwrap();
        let error = Options::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("listne") && error.contains("line 1"), "{error}");
    }
}
