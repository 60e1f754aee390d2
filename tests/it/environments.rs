//! Environments with the real uv, in the real sandbox, from the package index that every machine reaches.

mod garbage;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use omniforge::model::{EnvironmentLock, SandboxLevel};
use omniforge::runner::environment::{
    EnvironmentError, EnvironmentOptions, EnvironmentState, Environments, Requirement, parse_requirements,
};
use omniforge::runner::{Runner, RunnerOptions, Spawner};

fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok())
}

/// The real program behind `python3`, past what version managers put there.
fn interpreter() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let program = variable(&["OMNIFORGE_PYTHON"]).unwrap_or_else(|| "python3".to_owned());
        let code = "import os, sys; print(os.path.realpath(sys.executable))";
        let output = std::process::Command::new(program).args(["-I", "-S", "-c", code]).output().unwrap();
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    };
    FOUND.get_or_init(find).clone()
}

async fn runner(root: &Path, sandbox: SandboxLevel) -> Runner {
    let options = RunnerOptions {
        sandbox,
        runtime_dir: root.join(uuid::Uuid::now_v7().to_string()),
        outputs_dir: root.join("outputs"),
        search_path: std::env::var_os("PATH").unwrap(),
        python: Some(interpreter()),
        node: None,
        bash: None,
        network: Default::default(),
        warm: false,
    };
    std::fs::create_dir_all(&options.runtime_dir).unwrap();
    let spawner = Spawner::start_from(Path::new(env!("CARGO_BIN_EXE_omniforge"))).unwrap();
    Runner::start(options, spawner).await.unwrap()
}

fn options(root: &Path) -> EnvironmentOptions {
    let certificates = ["SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY"];
    EnvironmentOptions {
        root: root.join("environments"),
        uv: variable(&["OMNIFORGE_UV"]).map(Into::into),
        search_path: std::env::var_os("PATH").unwrap(),
        index: variable(&["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]),
        allow: Vec::new(),
        min_age_days: None,
        offline: false,
        max_bytes_each: 2 << 30,
        max_bytes_all: 20 << 30,
        keep: Duration::from_secs(30 * 24 * 3600),
        build_timeout: Duration::from_secs(120),
        builders: 2,
        variables: certificates.into_iter().filter_map(|name| Some((name.to_owned(), variable(&[name])?))).collect(),
    }
}

/// Environments in the full sandbox. What they need of it lives as long as they do.
async fn open(root: &Path, change: impl FnOnce(&mut EnvironmentOptions)) -> Environments {
    let mut options = options(root);
    change(&mut options);
    let environments = Environments::new(options, &runner(root, SandboxLevel::Full).await).unwrap();
    assert!(environments.available(), "these tests need uv: `pip install uv`, and have it on PATH");
    environments
}

fn requirements(texts: &[&str]) -> Vec<Requirement> {
    parse_requirements(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap()
}

async fn lock(environments: &Environments, texts: &[&str]) -> EnvironmentLock {
    environments.lock(&requirements(texts), None).await.unwrap()
}

async fn refused(environments: &Environments, texts: &[&str]) -> String {
    environments.lock(&requirements(texts), None).await.unwrap_err().to_string()
}

/// Runs Python as the harness does, with an environment's path.
fn python(environment: &Path, code: &str) -> String {
    let code = format!("import sys\nsys.path.insert(0, {:?})\n{code}", environment.to_str().unwrap());
    let output = std::process::Command::new(interpreter()).args(["-I", "-S", "-c", &code]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn entries(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).into_iter().flatten();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Polls until something holds.
pub async fn until(mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "it took too long");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Makes an environment look as if it was used long ago.
pub fn age(environment: &Path, days: u64) {
    let then = std::time::SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    std::fs::File::open(environment).unwrap().set_modified(then).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_of_a_package_stand_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let (old, new) = (lock(&environments, &["idna==3.6"]).await, lock(&environments, &["IDNA == 3.7"]).await);
    assert!(old.lock.starts_with("idna==3.6 \\\n    --hash=sha256:"), "{}", old.lock);
    assert_eq!(environments.state(&old), EnvironmentState::Missing);
    let (old_path, new_path) = tokio::join!(environments.ready(&old), environments.ready(&new));
    let (old_path, new_path) = (old_path.unwrap(), new_path.unwrap());
    assert_eq!(environments.state(&old), EnvironmentState::Ready);
    assert!(old_path.ends_with(&old.hash));
    let version = "import idna; print(idna.__version__)";
    assert_eq!((python(&old_path, version).as_str(), python(&new_path, version).as_str()), ("3.6", "3.7"));
    // Bytecode is there and is never checked against the source, which nobody can change.
    let bytecode = entries(&old_path.join("idna/__pycache__"));
    let core = bytecode.iter().find(|name| name.starts_with("core.")).unwrap();
    assert_eq!(std::fs::read(old_path.join("idna/__pycache__").join(core)).unwrap()[4..8], [1, 0, 0, 0]);
    assert!(entries(&dir.path().join("environments/work/builds")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_with_dependencies_works() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let lock = environments.lock(&requirements(&["httpx>=0.27,<1"]), Some(">=3.8")).await.unwrap();
    for name in ["anyio==", "certifi==", "h11==", "httpcore==", "httpx==0.", "idna=="] {
        assert!(lock.lock.contains(&format!("\n{name}")) || lock.lock.starts_with(name), "{name} in {}", lock.lock);
    }
    let mut said = Vec::new();
    let path = environments.ready_with_progress(&lock, |words| said.push(words.to_owned())).await.unwrap();
    assert!(said.iter().any(|words| words.starts_with("installing ") && words.ends_with(" packages")), "{said:?}");
    let code = "import httpx; print(httpx.Request('GET', 'https://example.org/a').url.host)";
    assert_eq!(python(&path, code), "example.org");
}

#[tokio::test(flavor = "multi_thread")]
async fn requirements_of_other_platforms_install_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let nothing = lock(&environments, &["six ; sys_platform == 'win32'"]).await;
    assert_eq!(nothing.lock, "");
    assert!(entries(&environments.ready(&nothing).await.unwrap()).is_empty());
    // What comes after it finds everything as the installer needs it.
    environments.ready(&lock(&environments, &["six==1.16.0"]).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_requests_at_once_are_one_build() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let lock = lock(&environments, &["six==1.16.0"]).await;
    let builds = dir.path().join("environments/work/builds");
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let watcher = tokio::task::spawn_blocking({
        let (builds, seen, environments, lock) = (builds.clone(), seen.clone(), environments.clone(), lock.clone());
        move || {
            while environments.state(&lock) != EnvironmentState::Ready {
                seen.lock().unwrap().extend(entries(&builds));
            }
        }
    });
    let (second, third) = (open(dir.path(), |_| {}).await, environments.clone());
    let handles = [&environments, &second, &third];
    let calls = (0..20).map(|n| handles[n % 3].ready(&lock));
    let paths = futures::future::try_join_all(calls).await.unwrap();
    watcher.await.unwrap();
    assert!(paths.iter().all(|path| *path == paths[0]));
    assert_eq!(seen.lock().unwrap().len(), 1, "{seen:?}");
    assert!(entries(&builds).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_carry_the_resolvers_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let unknown = refused(&environments, &["omniforge-there-is-no-such-package"]).await;
    assert!(unknown.contains("omniforge-there-is-no-such-package was not found in the package registry"), "{unknown}");
    let unsatisfiable = refused(&environments, &["httpx==0.27.0", "httpcore<1"]).await;
    assert!(unsatisfiable.contains("httpx==0.27.0 depends on httpcore==1.*"), "{unsatisfiable}");
    assert!(!unsatisfiable.contains("Using CPython") && !unsatisfiable.contains('\u{1b}'), "{unsatisfiable}");
    let source_only = refused(&environments, &["docopt==0.6.2"]).await;
    assert!(source_only.contains("hint: Wheels are required for `docopt`"), "{source_only}");
    let young = open(dir.path(), |options| options.min_age_days = Some(9000)).await;
    let young = refused(&young, &["six"]).await;
    assert!(young.contains("six"), "{young}");
    let dead = open(dir.path(), |options| options.index = Some("http://127.0.0.1:9/simple".to_owned())).await;
    let dead = refused(&dead, &["six"]).await;
    assert!(dead.contains("127.0.0.1:9") && dead.contains("error sending request"), "{dead}");
    let wrong = environments.lock(&requirements(&["six"]), Some(">=4")).await.unwrap_err().to_string();
    assert!(wrong.starts_with("`requires-python` wants >=4; this server has Python 3."), "{wrong}");
    assert!(entries(&dir.path().join("environments/work/builds")).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_packages_are_installed() {
    let dir = tempfile::tempdir().unwrap();
    let open_to_all = lock(&open(dir.path(), |_| {}).await, &["six==1.16.0"]).await;
    let environments = open(dir.path(), |options| options.allow = vec!["HTTPX".to_owned(), "idna".to_owned()]).await;
    assert!(refused(&environments, &["six"]).await.starts_with("not allowed on this server: six;"));
    let indirect = refused(&environments, &["httpx==0.27.0"]).await;
    assert!(indirect.contains("httpcore") && !indirect.contains("idna"), "{indirect}");
    let stored = environments.ready(&open_to_all).await.unwrap_err();
    assert_eq!(stored, EnvironmentError::NotAllowed { packages: vec!["six".to_owned()] });
    assert!(environments.ready(&lock(&environments, &["idna==3.7"]).await).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_once_can_be_built_without_a_network() {
    let dir = tempfile::tempdir().unwrap();
    let online = open(dir.path(), |_| {}).await;
    let six = lock(&online, &["six==1.16.0"]).await;
    let path = online.ready(&six).await.unwrap();
    for offline in [
        open(dir.path(), |options| options.offline = true).await,
        // The network is gone, and nobody has said so.
        open(dir.path(), |options| {
            options.variables = vec![("HTTPS_PROXY".to_owned(), "http://127.0.0.1:9".to_owned())];
        })
        .await,
    ] {
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(lock(&offline, &["six==1.16.0"]).await, six);
        assert_eq!(offline.ready(&six).await.unwrap(), path);
    }
    let offline = open(dir.path(), |options| options.offline = true).await;
    let uncached = refused(&offline, &["idna"]).await;
    assert!(uncached.contains("offline") || uncached.contains("network"), "{uncached}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_build_leaves_nothing_and_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let good = lock(&environments, &["six==1.16.0"]).await;
    let other = lock(&environments, &["idna==3.7"]).await;
    let hashes = other.lock.strip_prefix("idna==3.7").unwrap();
    let wrong = EnvironmentLock { hash: good.hash.clone(), lock: format!("six==1.16.0{hashes}") };
    let error = environments.ready(&wrong).await.unwrap_err().to_string();
    assert!(error.contains("Hash mismatch for `six==1.16.0`"), "{error}");
    assert_eq!(environments.state(&wrong), EnvironmentState::Failed(error));
    let forged = EnvironmentLock { hash: good.hash.clone(), lock: "--index-url http://127.0.0.1:9/\n".to_owned() };
    assert!(matches!(environments.ready(&forged).await, Err(EnvironmentError::BadLock { .. })));
    let small = open(dir.path(), |options| options.max_bytes_each = 64 << 10).await;
    let error = small.ready(&good).await.unwrap_err();
    assert!(matches!(error, EnvironmentError::TooLarge { limit: 65536, .. } | EnvironmentError::Uv { .. }), "{error}");
    let root = dir.path().join("environments");
    until(|| entries(&root.join("work/builds")).is_empty()).await;
    assert_eq!(entries(&root).into_iter().filter(|name| name.len() == 64).count(), 0);
    environments.ready(&good).await.unwrap();
}

#[test]
fn a_builder_that_dies_in_the_middle_leaves_nothing_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("environments");
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let first = runtime();
    let wanted = first.block_on(async {
        let environments = open(dir.path(), |_| {}).await;
        let wanted = lock(&environments, &["idna==3.7", "six==1.16.0"]).await;
        let (environments, lock) = (environments.clone(), wanted.clone());
        tokio::spawn(async move { environments.ready(&lock).await });
        until(|| {
            entries(&root.join("work/builds"))
                .iter()
                .any(|build| !entries(&root.join("work/builds").join(build)).is_empty())
        })
        .await;
        wanted
    });
    // As in a server that ends now: the installer dies with it.
    first.shutdown_background();
    runtime().block_on(async {
        let environments = open(dir.path(), |_| {}).await;
        assert_eq!(environments.state(&wanted), EnvironmentState::Missing);
        // What a killed server can't remove itself.
        std::fs::create_dir_all(root.join("work/builds").join(format!("{}-x", "a".repeat(64))).join("half")).unwrap();
        std::fs::create_dir_all(root.join(format!("partial-{}-x", "b".repeat(64))).join("half")).unwrap();
        let path = environments.ready(&wanted).await.unwrap();
        assert_eq!(python(&path, "import six, idna; print(six.__version__, idna.__version__)"), "1.16.0 3.7");
        assert!(environments.collect_garbage(std::slice::from_ref(&wanted)).await.unwrap().leftovers >= 2);
        assert_eq!(entries(&root.join("locks")), [wanted.hash.as_str()]);
        assert!(entries(&root.join("work/builds")).is_empty());
        assert!(!entries(&root).iter().any(|name| name.starts_with("partial-")));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_installer_works_at_every_level_of_confinement() {
    for sandbox in [SandboxLevel::Full, SandboxLevel::Landlock, SandboxLevel::None] {
        let dir = tempfile::tempdir().unwrap();
        let environments = Environments::new(options(dir.path()), &runner(dir.path(), sandbox).await).unwrap();
        let lock = environments
            .lock(&requirements(&["six==1.16.0"]), None)
            .await
            .unwrap_or_else(|error| panic!("{sandbox:?}: {error}"));
        let path = environments.ready(&lock).await.unwrap_or_else(|error| panic!("{sandbox:?}: {error}"));
        assert_eq!(python(&path, "import six; print(six.__version__)"), "1.16.0");
        environments.collect_garbage(&[]).await.unwrap();
        // The sandbox's user may read everything, and only this user may enter the directory.
        let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777;
        assert_eq!((mode(&path), mode(&path.join("six.py"))), (0o755, 0o644));
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert!(!path.join(".lock").exists());
    }
}

/// Bash in uv's place, with a script that bash reads first, tells what uv can see and do.
#[tokio::test(flavor = "multi_thread")]
async fn the_installer_sees_nothing_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "do not read").unwrap();
    let uv = dir.path().join("uv");
    std::fs::copy("/bin/bash", &uv).unwrap();
    let runner = runner(dir.path(), SandboxLevel::Full).await;
    let variables = vec![("BASH_ENV".to_owned(), "/environments/probe".to_owned())];
    let options = EnvironmentOptions { uv: Some(uv), variables, ..options(dir.path()) };
    let environments = Environments::new(options, &runner).unwrap();
    let root = dir.path().join("environments");
    let probe = format!(
        "exec 1>&2; read line; echo \"stdin: $line\"; cat {} /etc/shadow; ls -A ~; echo 'root:' /*; echo 'work:' /environments/*; env; \
         touch /written /usr/written /etc/written /environments/written /tmp/written; \
         cp /bin/true /environments/true; /environments/true; ls -A /proc | grep -c '^[0-9]'; exit 1",
        secret.display()
    );
    std::fs::write(root.join("work/probe"), probe).unwrap();
    let seen = environments.lock(&requirements(&["six<2"]), None).await.unwrap_err().to_string();
    assert!(seen.contains("stdin: six<2"), "{seen}");
    assert!(!seen.contains("do not read") && !seen.contains("root:x"), "{seen}");
    for refused in ["/written", "/usr/written", "/etc/written"] {
        assert!(seen.contains(&format!("cannot touch '{refused}': Read-only file system")), "{refused}: {seen}");
    }
    assert!(seen.contains("/environments/true: Permission denied"), "{seen}");
    assert!(root.join("work/written").exists() && !Path::new("/tmp/written").exists());
    assert!(
        !seen.contains("CARGO") && seen.contains("HOME=/tmp/work") && seen.contains("UV_PYTHON_DOWNLOADS=never"),
        "{seen}"
    );
    let top = seen.lines().find(|line| line.starts_with("root:")).unwrap();
    assert!(!top.contains("/var") && !top.contains("/sys"), "{top}");
}
