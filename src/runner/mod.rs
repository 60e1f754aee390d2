//! Where a run happens: environment → sandbox → process. Knows nothing of tools, callers or the store.

mod advice;
mod capture;
mod channels;
mod conversation;
pub mod environment;
mod error;
mod frames;
mod harness;
mod host;
mod inspect;
mod inspection;
mod interpreters;
mod launch;
mod layout;
mod mask;
mod network;
mod outcome;
mod outputs;
mod pool;
mod process;
mod sandbox;
mod selftest;
mod spawner;
mod supervisor;
mod timer;

use std::ffi::OsString;
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::model::{Json, Language, Limits, Outcome, RunId, SandboxLevel, Style};
use frames::Frame;
use pool::Pool;
use process::{Finished, Launch};
use spawner::SpawnerClient;

pub use environment::{
    Collected, EnvironmentError, EnvironmentOptions, EnvironmentState, EnvironmentUse, Environments, Requirement,
    check_requires_python, parse_requirements,
};
pub use error::RunnerError;
pub use host::{HostRefusal, HostRequest, RunClock, Said, Stopped};
pub use inspection::{CodeError, Import, Inspection};
pub use interpreters::Runtime;
pub use network::{NetworkOptions, RunNetwork};
pub use outputs::{Outputs, Piece};
pub use pool::WarmCounts;
pub use spawner::{Spawner, run_spawner_if_asked};

/// How a runner is made.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// How runs are confined.
    pub sandbox: SandboxLevel,
    /// This process's own directory (0700): harness, run directories. Made where it doesn't exist.
    pub runtime_dir: PathBuf,
    /// Where outputs go that don't fit inline (0700). Made where it doesn't exist; outlives the process.
    pub outputs_dir: PathBuf,
    /// Where interpreters are looked for, as in `PATH`.
    pub search_path: OsString,
    /// The Python to use, where it isn't the first that is found.
    pub python: Option<PathBuf>,
    /// The Node to use.
    pub node: Option<PathBuf>,
    /// The Bash to use.
    pub bash: Option<PathBuf>,
    /// What the owner says of the network of runs.
    pub network: NetworkOptions,
    /// Whether interpreters are started ahead of calls.
    pub warm: bool,
}

/// One script to run.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The run's id; names its files.
    pub id: RunId,
    /// What the code is written in.
    pub language: Language,
    /// How it is called.
    pub style: Style,
    /// The code.
    pub code: Arc<str>,
    /// The arguments, a JSON object.
    pub arguments: Json,
    /// What it may use.
    pub limits: Limits,
    /// The directory of its dependencies.
    pub environment: Option<PathBuf>,
    /// What keeps that directory. Whatever is started with it ahead of a later call holds on to it, too.
    pub held: Option<Arc<EnvironmentUse>>,
    /// Whether it may be called again, so that an interpreter may wait for it.
    pub may_wait: bool,
    /// Facts for the script's `ctx`, a JSON object.
    pub context: Value,
    /// Granted secrets: variable name and value.
    pub secrets: Vec<(String, String)>,
    /// What it may reach.
    pub network: RunNetwork,
}

/// Runs scripts in sandboxes. Clones share everything.
#[derive(Clone, Debug)]
pub struct Runner {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    spawner: Arc<SpawnerClient>,
    sandbox: SandboxLevel,
    runtime_dir: PathBuf,
    outputs: Outputs,
    runtimes: Vec<Runtime>,
    network: Arc<NetworkOptions>,
    /// Interpreters that wait; `None` where none shall.
    pool: Option<Pool>,
}

impl Runner {
    /// Finds the interpreters, writes the harness and proves the whole sandbox. Must be called on a tokio runtime.
    ///
    /// # Errors
    /// [`RunnerError::Sandbox`] names the step that the machine refuses and what to do; nothing runs then. Others when
    /// files can't be written or the spawner is gone.
    pub async fn start(options: RunnerOptions, spawner: Spawner) -> Result<Self, RunnerError> {
        let spawner = SpawnerClient::new(spawner).map_err(|source| RunnerError::Spawner { source })?;
        let prepare = tokio::task::spawn_blocking(move || {
            let runtimes = interpreters::find(&options);
            write_files(&options, &runtimes)?;
            Ok::<_, RunnerError>((options, runtimes))
        });
        let (options, runtimes) = prepare.await.map_err(RunnerError::io("prepare the runner"))??;
        let inner = Inner {
            spawner: Arc::new(spawner),
            sandbox: options.sandbox,
            network: Arc::new(options.network),
            runtime_dir: options.runtime_dir,
            outputs: Outputs::new(options.outputs_dir),
            runtimes,
            pool: (options.warm && options.sandbox == SandboxLevel::Full).then(Pool::new),
        };
        let runner = Self { inner: Arc::new(inner) };
        selftest::prove(&runner).await?;
        tokio::spawn(pool::keep(Arc::downgrade(&runner.inner)));
        Ok(runner)
    }

    /// Runs a script to its end. What it says arrives on `listener` in order; while that channel is full, the script
    /// waits.
    ///
    /// # Errors
    /// When the process can't be started. A script that fails is an [`Outcome`].
    ///
    /// # Cancellation
    /// `cancel`, or dropping the future, kills the whole process tree.
    pub async fn run(
        &self,
        request: RunRequest,
        listener: mpsc::Sender<Said>,
        cancel: CancellationToken,
    ) -> Result<Outcome, RunnerError> {
        let finished = self.finish(&request, false, &listener, &cancel).await?;
        Ok(outcome::of(finished, request.style, self.inner.sandbox))
    }

    /// Has the harness look at code that is not executed; its answer, where it gave one.
    pub(self) async fn look_at(&self, request: &RunRequest) -> Result<(Option<Value>, Outcome), RunnerError> {
        let (listener, _) = mpsc::channel(1);
        let mut finished = self.finish(request, true, &listener, &CancellationToken::new()).await?;
        let answer = match std::mem::replace(&mut finished.last, Ok(None)) {
            Ok(Some(Frame::Answer(answer))) => Some(answer),
            other => {
                finished.last = other;
                None
            }
        };
        Ok((answer, outcome::of(finished, request.style, self.inner.sandbox)))
    }

    async fn finish(
        &self,
        request: &RunRequest,
        inspect: bool,
        listener: &mpsc::Sender<Said>,
        cancel: &CancellationToken,
    ) -> Result<Finished, RunnerError> {
        let runtime = self.runtime(request.language).ok_or(RunnerError::NoRuntime { language: request.language })?;
        self.finish_with(runtime, (request, inspect), listener, cancel).await
    }

    /// The same with a runtime that need not be one of those that were found.
    async fn finish_with(
        &self,
        runtime: &Runtime,
        (request, inspect): (&RunRequest, bool),
        listener: &mpsc::Sender<Said>,
        cancel: &CancellationToken,
    ) -> Result<Finished, RunnerError> {
        let inner = &self.inner;
        let (mut launch, layout) = launch::prepare(inner.sandbox, &inner.runtime_dir, runtime, request, inspect)?;
        if !inspect {
            launch.call.spools = inner.outputs.paths(request.id);
        }
        launch::connect(&mut launch, &request.network, &inner.network)?;
        let notice = network::notice(&request.network, inner.sandbox);
        let member = if inspect { None } else { self.waiting_member(request, &launch.spec) };
        let finished = self.execute(launch, member, &request.arguments, (listener, cancel)).await;
        if let Some(directory) = layout.directory {
            directory.remove().await;
        }
        finished.map(|finished| Finished { network: finished.network.or(notice), ..finished })
    }

    /// Runs it in a sandbox that waits for a call, or in one of its own.
    async fn execute(
        &self,
        mut launch: Launch,
        member: Option<pool::Member>,
        arguments: &Json,
        (listener, cancel): (&mpsc::Sender<Said>, &CancellationToken),
    ) -> Result<Finished, RunnerError> {
        let begun = tokio::time::Instant::now();
        match member.map(|member| member.take_call(&launch.spec.environment, arguments.get())) {
            Some(Ok((process, mut frames, _held))) => {
                frames.extend(launch.call.frame.take().unwrap_or_default());
                launch.call.frame = Some(frames);
                process::attend(process, (launch.call, begun), listener, cancel).await
            }
            // One that has just ended is as if it had not been there.
            Some(Err(_)) | None => process::execute(&self.inner.spawner, launch, listener, cancel).await,
        }
    }

    /// How often an interpreter waited for a call that could have used one.
    pub fn warm_counts(&self) -> WarmCounts {
        self.inner.pool.as_ref().map(Pool::counts).unwrap_or_default()
    }

    /// The outputs that did not fit inline.
    pub fn outputs(&self) -> &Outputs {
        &self.inner.outputs
    }

    /// The runtime for a language, where one is installed.
    pub fn runtime(&self, language: Language) -> Option<&Runtime> {
        self.inner.runtimes.iter().find(|runtime| runtime.language == language)
    }

    /// What is installed, in the order of [`Language::ALL`].
    pub fn runtimes(&self) -> &[Runtime] {
        &self.inner.runtimes
    }

    /// The spawner, for builds of environments.
    pub(self) fn spawner(&self) -> Arc<SpawnerClient> {
        self.inner.spawner.clone()
    }

    /// This process's own directory.
    pub(self) fn runtime_dir(&self) -> &Path {
        &self.inner.runtime_dir
    }

    /// How runs are confined.
    pub fn sandbox(&self) -> SandboxLevel {
        self.inner.sandbox
    }
}

/// Writes the harness and its bytecode. What the tool reads of it must be readable by the id that the sandbox maps.
fn write_files(options: &RunnerOptions, runtimes: &[Runtime]) -> Result<(), RunnerError> {
    let runtime_dir = &options.runtime_dir;
    let failed = RunnerError::io("write the runner's files");
    for dir in ["", "spool", "run"].map(|name| runtime_dir.join(name)).iter().chain([&options.outputs_dir]) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(&failed)?;
    }
    let harness = runtime_dir.join("harness");
    harness::write(&harness).map_err(&failed)?;
    for runtime in runtimes.iter().filter(|runtime| runtime.language == Language::Python) {
        interpreters::compile_harness(runtime, &harness.join(harness::PYTHON_COMPILE))?;
    }
    open_to_all(&harness).map_err(&failed)
}

fn open_to_all(path: &Path) -> std::io::Result<()> {
    if !path.is_dir() {
        return std::fs::set_permissions(path, Permissions::from_mode(0o644));
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o755))?;
    std::fs::read_dir(path)?.try_for_each(|entry| open_to_all(&entry?.path()))
}
