//! The outputs of runs that did not fit inline: one file a stream, kept for a while, so that they can be read on.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::model::{RunId, Stream};

/// Where they are. Several processes may share the directory. Clones share it too.
#[derive(Clone, Debug)]
pub struct Outputs {
    dir: PathBuf,
}

/// A piece of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The bytes, from where they were asked for.
    pub bytes: Vec<u8>,
    /// How many bytes there are in all.
    pub total: u64,
}

impl Outputs {
    /// Outputs in this directory.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Where a run's stdout and stderr go.
    pub(super) fn paths(&self, run: RunId) -> [PathBuf; 2] {
        [Stream::Stdout, Stream::Stderr].map(|stream| self.path(run, stream))
    }

    fn path(&self, run: RunId, stream: Stream) -> PathBuf {
        self.dir.join(format!("{run}.{}", stream.as_str()))
    }

    /// Whether this stream of the run was too long to be kept inline, and is still here.
    pub fn has(&self, run: RunId, stream: Stream) -> bool {
        self.path(run, stream).is_file()
    }

    /// A piece of the stream, of at most `limit` bytes; `None` when it isn't here.
    ///
    /// # Errors
    /// As the file system says.
    pub async fn read(&self, run: RunId, stream: Stream, offset: u64, limit: u64) -> io::Result<Option<Piece>> {
        let mut file = match File::open(self.path(run, stream)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let total = file.metadata().await?.len();
        file.seek(SeekFrom::Start(offset)).await?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).await?;
        Ok(Some(Piece { bytes, total }))
    }

    /// Removes what is older than `keep`, and then the oldest until no more than `bytes` are left; says how many.
    ///
    /// # Errors
    /// As the file system says.
    pub async fn sweep(&self, keep: Duration, bytes: u64) -> io::Result<usize> {
        let dir = self.dir.clone();
        let swept = tokio::task::spawn_blocking(move || sweep(&dir, SystemTime::now(), keep, bytes));
        swept.await.map_err(io::Error::other)?
    }
}

fn sweep(dir: &Path, now: SystemTime, keep: Duration, bytes: u64) -> io::Result<usize> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(about) if about.is_file() => files.push((about.modified()?, about.len(), entry.path())),
            Ok(_) => {}
            // Another process swept it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // The newest first: they are kept for as long as there is room.
    files.sort_by_key(|(modified, ..)| std::cmp::Reverse(*modified));
    let (mut kept, mut removed) = (0_u64, 0);
    for (modified, length, path) in files {
        let old = now.duration_since(modified).is_ok_and(|age| age > keep);
        kept = kept.saturating_add(length);
        if !old && kept <= bytes {
            continue;
        }
        kept -= length;
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => removed += 1,
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn a_piece_is_read_from_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(dir.path().to_owned());
        std::fs::write(&outputs.paths(run(1))[1], b"0123456789").unwrap();
        assert!(outputs.has(run(1), Stream::Stderr) && !outputs.has(run(1), Stream::Stdout));
        let read = |offset, limit| outputs.read(run(1), Stream::Stderr, offset, limit);
        for (offset, limit, expected) in [(0, 4, "0123"), (8, 4, "89"), (10, 4, ""), (99, 4, "")] {
            let piece = read(offset, limit).await.unwrap().unwrap();
            assert_eq!((piece.bytes.as_slice(), piece.total), (expected.as_bytes(), 10));
        }
        assert_eq!(outputs.read(run(1), Stream::Stdout, 0, 4).await.unwrap(), None);
    }

    #[test]
    fn the_old_go_first_and_then_the_oldest() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (name, age, length) in [("a", 100, 1), ("b", 50, 10), ("c", 40, 10), ("d", 30, 10)] {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            file.set_len(length).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
        }
        let left = || {
            let mut names: Vec<_> =
                std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names.iter().map(|name| name.to_string_lossy().into_owned()).collect::<String>()
        };
        assert_eq!((sweep(dir.path(), now, Duration::from_secs(60), 30).unwrap(), left().as_str()), (1, "bcd"));
        assert_eq!((sweep(dir.path(), now, Duration::from_secs(60), 25).unwrap(), left().as_str()), (1, "cd"));
        assert_eq!((sweep(dir.path(), now, Duration::from_secs(60), 0).unwrap(), left().as_str()), (2, ""));
    }
}
