//! Where a run's files are, as the tool sees them: fixed places in the full sandbox, a directory of the run's own without a
//! mount namespace.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::RunnerError;
use super::sandbox::spec::Mount;
use crate::model::{RunId, SandboxLevel};

/// The places of one run.
pub(super) struct Layout {
    /// The harness's directory.
    pub(super) harness: String,
    /// The dependencies' directory, where there is one.
    pub(super) environment: Option<String>,
    /// Where the arguments and a Bash script are.
    pub(super) tool: String,
    /// The writable directory.
    pub(super) tmp: String,
    /// The working directory, empty at the start.
    pub(super) work: String,
    /// What has to be mounted or made readable for it.
    pub(super) mounts: Vec<Mount>,
    /// The run's directory on the host; `None` in the full sandbox, which needs none.
    pub(super) directory: Option<RunDirectory>,
}

impl Layout {
    /// The places of a run at this level. Makes the run's directory where one is needed.
    ///
    /// # Errors
    /// When a path isn't UTF-8 or the directory can't be made.
    pub(super) fn new(
        level: SandboxLevel,
        runtime_dir: &Path,
        id: RunId,
        environment: Option<&Path>,
    ) -> Result<Self, RunnerError> {
        let harness = text(&runtime_dir.join("harness"))?;
        let environment = environment.map(text).transpose()?;
        if level == SandboxLevel::Full {
            let mut mounts = vec![Mount { source: harness, target: "/omniforge".to_owned() }];
            mounts.extend(environment.map(|source| Mount { source, target: "/environment".to_owned() }));
            return Ok(Self {
                harness: "/omniforge".to_owned(),
                environment: mounts.get(1).map(|mount| mount.target.clone()),
                tool: "/tool".to_owned(),
                tmp: "/tmp".to_owned(),
                work: "/tmp/work".to_owned(),
                mounts,
                directory: None,
            });
        }
        let directory = RunDirectory::make(&runtime_dir.join("run").join(id.to_string()))
            .map_err(RunnerError::io("make the run's directory"))?;
        let within = |name: &str| text(&directory.path.join(name));
        let mount = |path: &String| Mount { source: path.clone(), target: path.clone() };
        let tool = within("tool")?;
        let mut mounts = vec![mount(&harness), mount(&tool)];
        mounts.extend(environment.as_ref().map(mount));
        Ok(Self {
            harness,
            environment,
            tool,
            tmp: within("tmp")?,
            work: within("tmp/work")?,
            mounts,
            directory: Some(directory),
        })
    }

    /// Writes what the sandbox itself would write in a private root.
    ///
    /// # Errors
    /// Whatever the file system refuses.
    pub(super) fn write_files(&self, arguments: &str, script: Option<&str>) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        fs::write(directory.path.join("tool/arguments.json"), arguments)?;
        script.map_or(Ok(()), |script| fs::write(directory.path.join("tool/main.sh"), script))
    }
}

/// A path as text: requests travel as JSON.
pub(super) fn text(path: &Path) -> Result<String, RunnerError> {
    path.to_str().map(str::to_owned).ok_or_else(|| RunnerError::Path { path: path.to_owned() })
}

/// A run's directory on the host. Removed when dropped, whatever the tool left in it.
pub(super) struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    fn make(path: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path)?;
        let directory = Self { path: path.to_owned() };
        builder.create(path.join("tool"))?;
        builder.create(path.join("tmp/work"))?;
        Ok(directory)
    }

    /// Removes it now, without blocking the caller's thread.
    pub(super) async fn remove(mut self) {
        let path = std::mem::take(&mut self.path);
        // A task that can't finish leaves the directory to the sweep at the next start.
        let _swept_later = tokio::task::spawn_blocking(move || remove(&path)).await;
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        let path = std::mem::take(&mut self.path);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&path))),
            Err(_) => remove(&path),
        }
    }
}

/// Removes a tree. Tries again for a while: where the run was dropped, its processes are only just being killed.
fn remove(path: &Path) {
    for attempt in 0..20 {
        match fs::remove_dir_all(path) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => open_up(path, 0),
        }
        std::thread::sleep(Duration::from_millis(10 * attempt));
    }
    tracing::warn!(path = %path.display(), "Could not remove the run directory `{}`", path.display());
}

/// Gives this user access to directories that the tool closed to it.
fn open_up(path: &Path, depth: usize) {
    // Deeper trees fall to `remove_dir_all`, which doesn't recurse by path.
    if depth > 64 {
        return;
    }
    let _not_ours = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth + 1);
        }
    }
}
