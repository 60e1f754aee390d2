//! uv itself, without the sandbox: what doesn't depend on how the builder is confined.

use std::path::Path;
use std::process::Stdio;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;

use super::builder::{BuildCommand, BuildEnd, BuildOutput};
use super::*;

#[derive(Debug)]
struct Unconfined(PathBuf);

#[async_trait]
impl Builder for Unconfined {
    fn places(&self, program: &Path, work: &Path) -> Result<BuilderPlaces, EnvironmentError> {
        Ok(BuilderPlaces { program: program.display().to_string(), work: work.display().to_string() })
    }

    async fn run(&self, command: BuildCommand) -> Result<BuildOutput, EnvironmentError> {
        let mut child = tokio::process::Command::new(&command.command[0])
            .args(&command.command[1..])
            .env_clear()
            .envs(command.environment)
            .env("HOME", &self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(command.stdin.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let end = BuildEnd::Exit(output.status.code().unwrap());
        Ok(BuildOutput { end, stdout: text(output.stdout), stderr: text(output.stderr) })
    }
}

fn open(root: &Path, change: impl FnOnce(&mut EnvironmentOptions)) -> Environments {
    let mut options = EnvironmentOptions {
        root: root.join("environments"),
        uv: None,
        search_path: std::env::var_os("PATH").unwrap(),
        index: None,
        allow: Vec::new(),
        min_age_days: None,
        offline: false,
        max_bytes_each: 2 << 30,
        max_bytes_all: 20 << 30,
        build_timeout: Duration::from_secs(120),
        builders: 2,
        variables: Vec::new(),
    };
    change(&mut options);
    let python = Python { path: "/usr/bin/python3".into(), version: "3.11.2".into() };
    Environments::with_builder(options, Box::new(Unconfined(root.to_owned())), Some(python)).unwrap()
}

fn requirements(texts: &[&str]) -> Vec<Requirement> {
    parse_requirements(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn basics() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {});
    let lock = environments.lock(&requirements(&["six==1.16.0"]), Some(">=3.8")).await.unwrap();
    assert!(lock.lock.starts_with("six==1.16.0 \\\n"), "{}", lock.lock);
    assert_eq!(environments.state(&lock), EnvironmentState::Missing);
    let path = environments.ready(&lock).await.unwrap();
    assert!(path.join("six.py").exists());
    assert_eq!(environments.state(&lock), EnvironmentState::Ready);
    let error = environments.lock(&requirements(&["six==99"]), None).await.unwrap_err().to_string();
    println!("{error}");
    assert!(error.contains("there is no version of six==99"));
    let offline = open(dir.path(), |options| options.offline = true);
    std::fs::remove_dir_all(&path).unwrap();
    offline.ready(&lock).await.unwrap();
    println!("{:?}", offline.collect_garbage(&Default::default()).await.unwrap());
}
