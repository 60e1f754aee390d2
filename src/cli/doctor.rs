//! `omniforge doctor`: what this machine can enforce, and how to repair what it can't.

use std::path::Path;

use serde_json::{Value, json};

use super::{plain, runtime};
use crate::app::runner_options;
use crate::config::{Options, Settings};
use crate::model::SandboxLevel;
use crate::runner::{Runner, RunnerError, RunnerOptions, Spawner};

/// The command's options.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    #[command(flatten)]
    options: Options,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

/// Proves each sandbox level and prints what it found.
///
/// # Errors
/// When the level that is set does not work here.
pub fn run(doctor: Doctor) -> anyhow::Result<()> {
    let settings = Settings::resolve(doctor.options)?;
    let spawners = [(SandboxLevel::Full, Spawner::start()?), (SandboxLevel::Landlock, Spawner::start()?)];
    let (findings, chosen_works) = runtime()?.block_on(async {
        let (mut findings, mut chosen_works) = (Vec::new(), settings.sandbox == SandboxLevel::None);
        for (level, spawner) in spawners {
            let scratch = tempfile_dir()?;
            let proof = Runner::start(
                RunnerOptions { warm: false, ..runner_options(&settings, level, scratch.path()) },
                spawner,
            )
            .await;
            chosen_works |= level == settings.sandbox && proof.is_ok();
            findings.push(finding(level, &proof));
        }
        anyhow::Ok((findings, chosen_works))
    })?;
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "data_dir": settings.data_dir,
        "chosen_sandbox": settings.sandbox.as_str(),
        "sandboxes": findings,
    });
    if doctor.json {
        println!("{report}");
    } else {
        print!("{}", plain(&text(&report)));
    }
    anyhow::ensure!(chosen_works, "tools will not run here with `--sandbox {}`", settings.sandbox.as_str());
    Ok(())
}

fn tempfile_dir() -> anyhow::Result<Scratch> {
    let path = std::path::PathBuf::from(format!("/tmp/omniforge-doctor-{}", uuid::Uuid::new_v4().simple()));
    crate::lifecycle::private_dir(&path)?;
    Ok(Scratch(path))
}

/// A directory that goes when it is dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A scratch directory that stays behind in /tmp harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn finding(level: SandboxLevel, proof: &Result<Runner, RunnerError>) -> Value {
    match proof {
        Ok(runner) => json!({
            "level": level.as_str(),
            "works": true,
            "runtimes": runner.runtimes().iter().map(ToString::to_string).collect::<Vec<_>>(),
        }),
        Err(error) => json!({"level": level.as_str(), "works": false, "problem": error.to_string()}),
    }
}

fn text(report: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = format!(
        "OmniForge {}, kernel {}\nData directory: {}\nChosen sandbox: {}\n",
        word(&report["version"]),
        word(&report["kernel"]),
        word(&report["data_dir"]),
        word(&report["chosen_sandbox"]),
    );
    for finding in report["sandboxes"].as_array().into_iter().flatten() {
        if finding["works"] == json!(true) {
            let runtimes: Vec<String> = finding["runtimes"].as_array().into_iter().flatten().map(word).collect();
            text += &format!("  {:9} works; languages: {}\n", word(&finding["level"]), runtimes.join(", "));
        } else {
            text += &format!("  {:9} does not work: {}\n", word(&finding["level"]), word(&finding["problem"]));
        }
    }
    text
}
