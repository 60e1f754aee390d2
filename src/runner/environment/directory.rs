//! The directories of environments on disk: `root/HASH`, the locks beside them, sizes and removal.
//!
//! `root/` is this user's alone. `root/HASH/` holds the installed packages of one environment and never changes.
//! `root/work/` is what the installer may write to: its cache and the environments being built (one directory, so that
//! files are linked from one to the other and an environment is moved into place at once). `root/locks/HASH` is locked
//! exclusively by whoever builds or removes `root/HASH`, and shared by whoever uses it; the kernel lets go of it when a
//! process dies. `root/partial-HASH-ID/` is on its way from or to nothing.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tokio_util::sync::CancellationToken;

use crate::lifecycle::private_dir;

/// A use is noted at most this often.
const NOTED: Duration = Duration::from_secs(60);

/// Where environments are.
#[derive(Clone, Debug)]
pub(super) struct Directories {
    root: PathBuf,
}

impl Directories {
    /// Makes what is missing.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        private_dir(root)?;
        // What stands in requests to the spawner is absolute.
        let root = root.canonicalize()?;
        fs::set_permissions(&root, fs::Permissions::from_mode(0o700))?;
        for part in ["work", "locks"] {
            private_dir(&root.join(part))?;
        }
        Ok(Self { root })
    }

    /// What the installer may write to.
    pub(super) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Where environments are built.
    pub(super) fn builds(&self) -> PathBuf {
        self.root.join("work/builds")
    }

    /// A finished environment's place.
    pub(super) fn environment(&self, hash: &str) -> PathBuf {
        self.root.join(hash)
    }

    /// The names of all finished environments.
    pub(super) fn environments(&self) -> io::Result<Vec<String>> {
        Ok(names(&self.root)?.into_iter().filter(|name| is_hash(name)).collect())
    }

    /// What builders and removers leave when they die: directories in [`Self::builds`] and partial ones, by name.
    pub(super) fn leftovers(&self) -> io::Result<Vec<PathBuf>> {
        let partial = names(&self.root)?.into_iter().filter(|name| name.starts_with(PARTIAL));
        let mut found: Vec<PathBuf> = partial.map(|name| self.root.join(name)).collect();
        match names(&self.builds()) {
            Ok(builds) => found.extend(builds.into_iter().map(|name| self.builds().join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// Takes the lock of an environment, unless someone else holds it.
    pub(super) fn try_lock(&self, hash: &str, kind: LockKind) -> io::Result<Option<EnvironmentUse>> {
        let path = self.root.join("locks").join(hash);
        let operation = match kind {
            LockKind::Shared => FlockOperation::NonBlockingLockShared,
            LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
            match flock(&file, operation) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // Whoever removed the environment removed this file with it, maybe while we waited.
            let still_there =
                fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
            if still_there {
                return Ok(Some(EnvironmentUse { _file: file }));
            }
        }
    }

    /// Removes the locks of environments that aren't there and that nobody builds.
    pub(super) fn remove_unused_locks(&self) -> io::Result<()> {
        for hash in names(&self.root.join("locks"))? {
            if is_hash(&hash)
                && !self.environment(&hash).exists()
                && let Some(_held) = self.try_lock(&hash, LockKind::Exclusive)?
            {
                fs::remove_file(self.root.join("locks").join(&hash))?;
            }
        }
        Ok(())
    }

    /// Notes that an environment is used now.
    pub(super) fn note_use(&self, hash: &str) -> io::Result<()> {
        let path = self.environment(hash);
        let last = fs::metadata(&path)?.modified()?;
        if SystemTime::now().duration_since(last).is_ok_and(|age| age > NOTED) {
            File::open(&path)?.set_modified(SystemTime::now())?;
        }
        Ok(())
    }

    /// How long ago an environment was used last.
    pub(super) fn idle(&self, hash: &str) -> io::Result<Duration> {
        let last = fs::metadata(self.environment(hash))?.modified()?;
        Ok(SystemTime::now().duration_since(last).unwrap_or_default())
    }

    /// A new place beside the environments, where no installer can write.
    pub(super) fn partial(&self, hash: &str) -> PathBuf {
        self.root.join(format!("{PARTIAL}{hash}-{}", uuid::Uuid::now_v7()))
    }

    /// Moves a finished build into place.
    pub(super) fn install(&self, build: &Path, hash: &str) -> io::Result<()> {
        // So that a power cut can't leave an environment of empty files.
        rustix::fs::syncfs(File::open(build)?)?;
        fs::rename(build, self.environment(hash))?;
        File::open(&self.root)?.sync_all()
    }

    /// Removes an environment whose lock the caller holds exclusively.
    pub(super) fn remove_environment(&self, hash: &str, _held: &EnvironmentUse) -> io::Result<()> {
        // Out of the way at once, so that a removal that is cut short leaves no half environment.
        let partial = self.partial(hash);
        match fs::rename(self.environment(hash), &partial) {
            Ok(()) => remove_tree(&partial)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::remove_file(self.root.join("locks").join(hash))
    }
}

const PARTIAL: &str = "partial-";

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// By users.
    Shared,
    /// By one builder or remover.
    Exclusive,
}

/// Holds an environment: while it exists, in this process or another, the environment is not removed.
#[derive(Debug)]
pub struct EnvironmentUse {
    _file: File,
}

/// The hash in the name of a leftover.
pub(super) fn hash_of_leftover(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let hash = name.strip_prefix(PARTIAL).unwrap_or(name).split('-').next()?;
    is_hash(hash).then_some(hash)
}

/// Whether a directory's name is that of an environment.
pub(super) fn is_hash(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        // Ours are all UTF-8.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Bytes of the files below a directory, or of those seen before `stop`. A file that `counted` holds already (by another
/// name) counts nothing.
pub(super) fn tree_size(directory: &Path, counted: &mut HashSet<(u64, u64)>, stop: &CancellationToken) -> u64 {
    let mut total = 0;
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop().filter(|_| !stop.is_cancelled()) {
        // What vanishes meanwhile takes no room.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
            if metadata.nlink() < 2 || metadata.is_dir() || counted.insert((metadata.dev(), metadata.ino())) {
                total += metadata.blocks() * 512;
            }
        }
    }
    total
}

/// Makes everything readable to the sandbox's user and nothing writable to others, and drops what only the installer needed.
pub(super) fn settle_modes(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(".lock")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.mode() & 0o7777;
        let wanted = if metadata.is_dir() { 0o755 } else { (mode | 0o444) & 0o755 };
        if mode != wanted {
            // Through a descriptor that is no link's: a server that is root must not be led elsewhere.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, Mode::empty())?;
            rustix::fs::fchmod(file, Mode::from_raw_mode(wanted))?;
        }
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
    }
    Ok(())
}

/// Removes a tree; one that isn't there is gone already.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_each_file_once_and_end_when_told() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/file"), [1; 20_000]).unwrap();
        fs::hard_link(dir.path().join("a/file"), dir.path().join("link")).unwrap();
        let (mut counted, stop) = (HashSet::new(), CancellationToken::new());
        let size = tree_size(dir.path(), &mut counted, &stop);
        assert!((20_000..40_000).contains(&size), "{size}");
        assert!(tree_size(&dir.path().join("a"), &mut counted, &stop) < 20_000, "it is counted already");
        stop.cancel();
        assert_eq!(tree_size(dir.path(), &mut HashSet::new(), &stop), 0);
    }
}
