//! Where the parts are wired: the only place that knows them all.

mod doors;
mod serve;
mod upkeep;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::{ApprovalPolicy, AuthMode, Settings};
use crate::jobs::{Gate, GateOptions, LiveRuns};
use crate::lifecycle::{InstanceLock, Lifecycle, private_dir};
use crate::model::SandboxLevel;
use crate::runner::{EnvironmentOptions, Environments, NetworkOptions, Runner, RunnerOptions, Spawner};
use crate::store::{AuditEntry, Instance, Store};
use crate::tools::{Parts, Tools, ToolsOptions};
use crate::trust::{Approvals, CREDENTIALS, OperatorKey, Policy, Refusals, Secrets, ServerKey};

pub use serve::{ServeOutput, serve, stop_on_signal};
use upkeep::Keeper;

/// How long one build may take, and how many go at once.
const BUILD: (Duration, usize) = (Duration::from_secs(300), 2);

/// The whole product on one data directory, without a door.
pub struct App {
    /// Who is calling.
    pub auth: Auth,
    /// The catalogue and the calls.
    pub tools: Tools,
    /// Everything that lasts.
    pub store: Store,
    /// How runs are confined and by what.
    pub runner: Runner,
    /// Where refusals are noted.
    pub refusals: Refusals,
    /// Starting and stopping.
    pub lifecycle: Lifecycle,
    lock: InstanceLock,
    instance: String,
    data_dir: PathBuf,
}

impl App {
    /// Opens the store, sweeps what dead processes left, proves the sandbox, and wires everything. `url` is where browsers
    /// find the pages, where some are served.
    ///
    /// # Errors
    /// What failed and what to do; nothing runs then.
    pub async fn start(settings: &Settings, spawner: Spawner, url: Option<&str>) -> anyhow::Result<Self> {
        private_dir(&settings.data_dir)
            .with_context(|| format!("cannot make the data directory {}", settings.data_dir.display()))?;
        let clock = Clock::system();
        let operator = OperatorKey::open(&settings.key, &settings.data_dir)?;
        let store = Store::open(&settings.data_dir, clock.clone()).await?;
        let key = ServerKey::open(&store, &operator).await?;
        let auth = match settings.auth {
            AuthMode::Token => Auth::new(store.clone(), key.derive(CREDENTIALS)).await?,
            AuthMode::None => Auth::anonymous(store.clone(), key.derive(CREDENTIALS)).await?,
        };
        let lifecycle = Lifecycle::new(settings.drain);
        let (refusals, writer) = Refusals::new();
        // To the very end: what is refused meanwhile, and the last uses, are written too.
        lifecycle.tasks.spawn(writer.write(store.clone(), lifecycle.ended.clone()));
        lifecycle.tasks.spawn(auth.clone().watch(lifecycle.ended.clone()));
        record_weakened(settings, &store).await?;
        let instance = clock.new_id().to_string();
        let lock = register(settings, &store, &instance).await?;
        let interrupted = upkeep::sweep(&store, &settings.data_dir, &instance).await?;
        let (runner, environments) = runner(settings, &lock, spawner).await?;
        let parts = Parts {
            store: store.clone(),
            runner: runner.clone(),
            environments: environments.clone(),
            gate: Gate::new(GateOptions { slots: settings.slots, queue: settings.queue, wait: settings.queue_wait }),
            live: LiveRuns::default(),
            approvals: approvals(settings, &store, &key),
            secrets: Secrets::new(store.clone(), &key),
            refusals: refusals.clone(),
            states: key.sealer("request state"),
            clock,
            lifecycle: lifecycle.clone(),
            instance: instance.clone(),
            options: tools_options(settings, url),
        };
        let tools = Tools::open(parts).await?;
        let again = tools.start_again(&interrupted).await;
        if again > 0 {
            tracing::info!(runs = again, "Started {again} interrupted run(s) again");
        }
        let data_dir = settings.data_dir.clone();
        let app = Self { auth, tools, store, runner, refusals, lifecycle, lock, instance, data_dir };
        let (store, auth, tools, outputs) =
            (app.store.clone(), app.auth.clone(), app.tools.clone(), app.runner.outputs().clone());
        let keeper = Keeper {
            store,
            auth,
            environments,
            outputs,
            tools,
            history: settings.history,
            audit_keep: settings.audit_keep,
        };
        app.lifecycle.tasks.spawn(keeper.keep(app.lifecycle.closing.clone()));
        Ok(app)
    }

    /// Kills what still runs, waits for its rows to be written, closes the store and leaves nothing behind.
    ///
    /// # Errors
    /// When the last rows could not be written.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.lifecycle.closing.cancel();
        self.lifecycle.killing.cancel();
        self.lifecycle.ended.cancel();
        self.lifecycle.tasks.close();
        if tokio::time::timeout(Duration::from_secs(10), self.lifecycle.tasks.wait()).await.is_err() {
            tracing::warn!("Some tasks did not end within 10 s; leaving them behind");
        }
        self.store.remove_instance(&self.instance).await?;
        self.store.close().await?;
        let Self { lock, instance, data_dir, .. } = self;
        drop(lock);
        InstanceLock::remove(&data_dir, &instance).context("cannot remove this process's directory")
    }
}

/// Takes this process's lock and says in the store that it lives.
async fn register(settings: &Settings, store: &Store, instance: &str) -> anyhow::Result<InstanceLock> {
    let lock = InstanceLock::acquire(&settings.data_dir, instance).context("cannot lock this process's directory")?;
    let row = Instance {
        id: instance.to_owned(),
        pid: i64::from(std::process::id()),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        lock_file: format!("{instance}.lock"),
        started_at: store.clock().now(),
    };
    store.register_instance(&row).await?;
    Ok(lock)
}

/// The settings that calls and saves obey.
fn tools_options(settings: &Settings, url: Option<&str>) -> ToolsOptions {
    ToolsOptions {
        strict_arguments: settings.strict_arguments,
        limits: settings.limits.clone(),
        ceilings: settings.ceilings.clone(),
        inline_wait: settings.inline_wait,
        approvals_url: url.map(|url| format!("{url}/approvals")),
    }
}

/// Records what of the settings makes this start less safe than the default.
async fn record_weakened(settings: &Settings, store: &Store) -> anyhow::Result<()> {
    let weakened: Vec<String> = [
        (settings.sandbox != SandboxLevel::Full).then(|| format!("sandbox {}", settings.sandbox.as_str())),
        (settings.auth == AuthMode::None).then(|| "auth none".to_owned()),
        (settings.approval == ApprovalPolicy::Never).then(|| "approval never".to_owned()),
        (!settings.network_private_allow.is_empty()).then(|| "network_private_allow".to_owned()),
        (!settings.network_hosts.is_empty()).then(|| "network_hosts".to_owned()),
        settings.allowed_origins.iter().any(|origin| origin == "null").then(|| "allowed_origins null".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !weakened.is_empty() {
        let entry = AuditEntry {
            source: Some("cli".to_owned()),
            action: "server.weakened".to_owned(),
            subject: "settings".to_owned(),
            detail: serde_json::json!({"settings": weakened}),
            outcome: "ok".to_owned(),
            ..AuditEntry::default()
        };
        store.append_audit(&entry).await?;
    }
    Ok(())
}

/// The approvals of a data directory, under the policy of these settings.
pub fn approvals(settings: &Settings, store: &Store, key: &ServerKey) -> Approvals {
    let (approval, sandbox) = (settings.approval, settings.sandbox);
    Approvals::new(store.clone(), key, Policy { approval, sandbox, limits: settings.limits.clone() })
}

async fn runner(settings: &Settings, lock: &InstanceLock, spawner: Spawner) -> anyhow::Result<(Runner, Environments)> {
    let options = RunnerOptions {
        outputs_dir: settings.data_dir.join("outputs"),
        ..runner_options(settings, settings.sandbox, &lock.dir)
    };
    let runner = Runner::start(options, spawner).await?;
    let options = EnvironmentOptions {
        root: settings.data_dir.join("environments"),
        variables: settings.package_variables.clone(),
        uv: settings.uv.clone(),
        search_path: settings.search_path.clone(),
        index: settings.package_index.clone(),
        allow: settings.package_allow.clone(),
        min_age_days: settings.package_min_age_days,
        offline: settings.offline,
        max_bytes_each: settings.environment_max_bytes,
        max_bytes_all: settings.environments_max_bytes,
        keep: settings.environment_keep,
        build_timeout: BUILD.0,
        builders: BUILD.1,
    };
    let environments = Environments::new(options, &runner)?;
    Ok((runner, environments))
}

/// How a runner is made under these settings, at this level, in this directory.
pub fn runner_options(settings: &Settings, sandbox: SandboxLevel, runtime_dir: &Path) -> RunnerOptions {
    RunnerOptions {
        sandbox,
        runtime_dir: runtime_dir.to_owned(),
        outputs_dir: runtime_dir.join("spool"),
        search_path: settings.search_path.clone(),
        python: settings.python.clone(),
        node: settings.node.clone(),
        bash: settings.bash.clone(),
        network: NetworkOptions {
            private_allow: settings.network_private_allow.clone(),
            hosts: settings.network_hosts.clone(),
            own: Some(settings.listen),
        },
        warm: settings.warm,
    }
}
