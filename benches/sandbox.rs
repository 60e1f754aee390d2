//! What the full sandbox adds to a trivial tool over a bare spawn of the same interpreter with the same harness, in a small
//! process and in one that has touched a gibibyte. In turn, in one run; `benches/sandbox.py` starts it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use omniforge::model::{Ending, Language, Limits, RunId, SandboxLevel, Style};
use omniforge::runner::{RunRequest, Runner, RunnerOptions, Runtime, Spawner, run_spawner_if_asked};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How much memory the large process has touched.
const LARGE: usize = 1 << 30;
/// The large memory comes and goes this often, so that both sizes see the same machine.
const TURNS: usize = 4;
/// How the runner starts Python with the harness.
const PYTHON: [&str; 6] = ["-I", "-S", "-X", "utf8", "-c", include_str!("../src/runner/harness/python/command.py")];
/// What the sandbox may add at the median, on a machine where an interpreter's start that does nothing takes what
/// [`reference_start`] says; in proportion on any other.
const PROMISED_MILLISECONDS: f64 = 3.0;

/// What `python3 -I -S -c pass` and `node -e 0` took, in milliseconds, where the promise was made.
fn reference_start(language: Language) -> f64 {
    if language == Language::Python { 6.33 } else { 25.9 }
}

fn main() {
    run_spawner_if_asked();
    // The harness talks on descriptor 3: kept free for the bare processes, before anything else opens one.
    let three = OwnedFd::from(std::fs::File::open("/dev/null").expect("there is a /dev/null"));
    assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&three), 3, "start this bench with descriptors 0 to 2 only");
    let spawners = [(); 2].map(|()| Spawner::start().expect("the spawner starts"));
    let runtime = tokio::runtime::Runtime::new().expect("tokio starts");
    // In a task, as the server's calls are.
    let passed = runtime.block_on(async { tokio::spawn(measure(spawners, three)).await.expect("no panic") });
    std::process::exit(if passed { 0 } else { 1 });
}

async fn measure([full, none]: [Spawner; 2], mut three: OwnedFd) -> bool {
    let rounds: usize = std::env::var("BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let full = Bench::start(SandboxLevel::Full, directory.path().join("full"), full).await;
    let none = Bench::start(SandboxLevel::None, directory.path().join("none"), none).await;
    let mut passed = true;
    for language in [Language::Python, Language::JavaScript] {
        let Some(runtime) = full.runner.runtime(language).cloned() else { continue };
        println!("# {language:?} {} at {}", runtime.version, runtime.path.display());
        let mut samples = [Samples::default(), Samples::default()];
        for _ in 0..TURNS {
            for (large, samples) in [false, true].into_iter().zip(&mut samples) {
                let _held = large.then(|| vec![1u8; LARGE]);
                for round in 0..rounds.div_ceil(TURNS) + 3 {
                    let start = start(&runtime);
                    let bare = bare(&runtime, &full.harness, directory.path(), &mut three);
                    let (full, none) = (full.run(language).await, none.run(language).await);
                    // The first ones after the change of memory warm the caches.
                    if round >= 3 {
                        samples.push([start, bare, none, full]);
                    }
                }
            }
        }
        for (size, samples) in ["small", "1 GB"].into_iter().zip(&samples) {
            passed &= samples.report(language, size);
        }
    }
    passed
}

/// A runner at one level.
struct Bench {
    runner: Runner,
    harness: PathBuf,
}

impl Bench {
    async fn start(sandbox: SandboxLevel, runtime_dir: PathBuf, spawner: Spawner) -> Self {
        let harness = runtime_dir.join("harness");
        let search_path: OsString = std::env::var_os("PATH").unwrap_or_default();
        let outputs_dir = runtime_dir.join("outputs");
        let options = RunnerOptions {
            sandbox,
            runtime_dir,
            outputs_dir,
            search_path,
            python: None,
            node: None,
            bash: None,
            network: Default::default(),
            warm: false,
        };
        Self { runner: Runner::start(options, spawner).await.expect("the sandbox works here"), harness }
    }

    /// A call through the runner, to the death of its processes.
    async fn run(&self, language: Language) -> Duration {
        let request = RunRequest {
            id: RunId(uuid::Uuid::now_v7()),
            language,
            style: Style::Function,
            code: code(language).into(),
            arguments: RawValue::from_string("{}".to_owned()).expect("an object").into(),
            limits: Limits::default(),
            environment: None,
            held: None,
            may_wait: false,
            context: json!({}),
            secrets: Vec::new(),
            network: Default::default(),
        };
        let (events, _nobody) = mpsc::channel(1);
        let started = Instant::now();
        let outcome = self.runner.run(request, events, CancellationToken::new()).await.expect("it starts");
        let took = started.elapsed();
        assert_eq!(outcome.ending, Ending::Ok, "{outcome:?}");
        took
    }
}

fn code(language: Language) -> &'static str {
    match language {
        Language::Python => "def main():\n    return 'ok'\n",
        _ => "exports.main = () => 'ok';\n",
    }
}

/// The interpreter alone, doing nothing.
fn start(runtime: &Runtime) -> Duration {
    let nothing: &[&str] = match runtime.language {
        Language::Python => &["-I", "-S", "-c", "pass"],
        _ => &["-e", "0"],
    };
    let started = Instant::now();
    let status = Command::new(&runtime.path).args(nothing).env_clear().status().expect("the interpreter starts");
    assert!(status.success());
    started.elapsed()
}

/// The same interpreter, harness and request without a sandbox, to the end of the process.
fn bare(runtime: &Runtime, harness: &Path, work: &Path, three: &mut OwnedFd) -> Duration {
    let request = json!({
        "language": runtime.language, "style": "function", "code": code(runtime.language), "arguments": {}, "context": {},
        "result_limit": 4 << 20, "inspect": false,
    })
    .to_string();
    let started = Instant::now();
    let (mut ours, theirs) = UnixStream::pair().expect("a socket pair");
    // Not closed on exec, unlike every other descriptor of this process.
    rustix::io::dup2(theirs.as_fd(), three).expect("descriptor 3 can be replaced");
    let mut command = Command::new(&runtime.path);
    match runtime.language {
        Language::Python => command.args(PYTHON).arg(harness.join("python/start.bin")),
        _ => command.arg(harness.join("node/run.cjs")),
    };
    command.env_clear().envs([
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("MALLOC_ARENA_MAX", "2"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ]);
    command.current_dir(work).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the interpreter starts");
    drop(theirs);
    let null = std::fs::File::open("/dev/null").expect("there is a /dev/null");
    rustix::io::dup2(null.as_fd(), three).expect("descriptor 3 can be replaced");
    ours.write_all(&(request.len() as u32).to_be_bytes()).expect("it reads");
    ours.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    ours.read_to_end(&mut answer).expect("it answers");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    process.stdout.take().map(|mut stream| stream.read_to_end(&mut out));
    process.stderr.take().map(|mut stream| stream.read_to_end(&mut err));
    let status = process.wait().expect("it ends");
    let took = started.elapsed();
    assert!(status.success() && answer.windows(4).any(|four| four == b"\"ok\""), "{}", String::from_utf8_lossy(&err));
    took
}

/// What was measured at one size of memory: an interpreter's start, one with the harness, that through the runner, and that
/// in the full sandbox.
#[derive(Default)]
struct Samples([Vec<f64>; 4]);

impl Samples {
    fn push(&mut self, took: [Duration; 4]) {
        for (list, took) in self.0.iter_mut().zip(took) {
            list.push(took.as_secs_f64() * 1000.0);
        }
    }

    /// Prints the figures; whether the promise holds.
    fn report(&self, language: Language, size: &str) -> bool {
        let what =
            ["a start that does nothing", "bare spawn with the harness", "runner without a sandbox", "full sandbox"];
        let mut medians = [0.0; 4];
        for ((what, list), median) in what.into_iter().zip(&self.0).zip(&mut medians) {
            let name = format!("{}, {size} server: {what}", language.as_str());
            let [low, middle, high] = [0.25, 0.5, 0.75].map(|part| quantile(list, part));
            println!("{name:<60} {middle:6.2} ms  (quartiles {low:.2} to {high:.2}, n = {})", list.len());
            *median = middle;
        }
        let [start, bare, _, full] = medians;
        let slowness = start / reference_start(language);
        let (added, promised) = (full - bare, PROMISED_MILLISECONDS * slowness);
        let broken = if added > promised { ", BROKEN" } else { "" };
        let name = format!("{}, {size} server: the sandbox adds", language.as_str());
        println!(
            "{name:<60} {added:6.2} ms  (promised: at most {promised:.2} ms, {PROMISED_MILLISECONDS} ms on a machine \
             {slowness:.2} × as fast{broken})"
        );
        println!(
            "{:<60} {:6.2} ×",
            format!("{}, {size} server: full sandbox ÷ bare spawn", language.as_str()),
            full / bare
        );
        added <= promised
    }
}

fn quantile(list: &[f64], part: f64) -> f64 {
    let mut sorted = list.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
