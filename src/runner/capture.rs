//! Captures an output stream: the first bytes inline, everything in a file once it no longer fits, all of it under a cap.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::mask::{Masker, StreamMask};
use crate::model::Capture;

/// One stream while it is captured. Keeps what it has when reading is cut short.
pub(super) struct StreamCapture {
    inline: Vec<u8>,
    inline_limit: usize,
    spool_limit: u64,
    path: PathBuf,
    spool: Option<File>,
    total: u64,
    mask: Option<StreamMask>,
}

/// Why reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// Nobody can write to it any more.
    Closed,
    /// More came than may be kept.
    Flooded,
}

impl StreamCapture {
    /// An empty capture. `path` is where the whole stream goes when it doesn't fit inline; the limits are those of what is
    /// kept inline and of all. What the masker knows is kept nowhere.
    pub(super) fn new((inline_limit, spool_limit): (u64, u64), path: PathBuf, masker: Option<Arc<Masker>>) -> Self {
        Self {
            inline: Vec::new(),
            inline_limit: usize::try_from(inline_limit).unwrap_or(usize::MAX),
            spool_limit,
            path,
            spool: None,
            total: 0,
            mask: masker.map(StreamMask::new),
        }
    }

    /// Reads until the end of the stream or of what may be kept.
    ///
    /// # Errors
    /// When the stream can't be read or the file not written.
    ///
    /// # Cancellation
    /// What was read so far is kept; at most one buffer that was being written to the file is lost there.
    pub(super) async fn read_all(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<StreamEnd> {
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            let read = stream.read(&mut buffer).await?;
            if read == 0 {
                return Ok(StreamEnd::Closed);
            }
            let fits = match self.mask.as_mut().map(|mask| mask.push(&buffer[..read])) {
                Some(masked) => self.keep(&masked).await?,
                None => self.keep(&buffer[..read]).await?,
            };
            if !fits {
                return Ok(StreamEnd::Flooded);
            }
        }
    }

    /// Keeps some bytes; false when they are more than may be kept.
    async fn keep(&mut self, bytes: &[u8]) -> std::io::Result<bool> {
        let room = usize::try_from(self.spool_limit.saturating_sub(self.total)).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.total += bytes.len() as u64;
        let inline = kept.len().min(self.inline_limit - self.inline.len());
        if inline < kept.len() {
            let file = match &mut self.spool {
                Some(file) => file,
                None => {
                    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&self.path).await?;
                    file.write_all(&self.inline).await?;
                    self.spool.insert(file)
                }
            };
            file.write_all(kept).await?;
        }
        self.inline.extend_from_slice(&kept[..inline]);
        Ok(kept.len() == bytes.len())
    }

    /// What was captured.
    ///
    /// # Errors
    /// When the file can't be written.
    pub(super) async fn finish(mut self) -> std::io::Result<Capture> {
        if let Some(rest) = self.mask.as_mut().map(StreamMask::finish) {
            self.keep(&rest).await?;
        }
        if let Some(file) = &mut self.spool {
            file.flush().await?;
        }
        let truncated = self.total > self.inline.len() as u64;
        if truncated {
            self.inline.truncate(whole_characters(&self.inline));
        }
        Ok(Capture {
            text: String::from_utf8_lossy(&self.inline).into_owned(),
            total_bytes: self.total,
            truncated,
            spool: self.spool.map(|_| self.path),
        })
    }
}

/// How many of these bytes are left without a character that was cut at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(chunk)
            if !chunk.invalid().is_empty()
                && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none()) =>
        {
            bytes.len() - chunk.invalid().len()
        }
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn capture(inline: u64, spool: u64, chunks: &[&[u8]]) -> (StreamEnd, Capture, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let mut capture = StreamCapture::new((inline, spool), directory.path().join("stdout"), None);
        let (mut reader, mut writer) = tokio::io::duplex(1 << 20);
        for chunk in chunks {
            writer.write_all(chunk).await.unwrap();
        }
        drop(writer);
        let end = capture.read_all(&mut reader).await.unwrap();
        (end, capture.finish().await.unwrap(), directory)
    }

    #[tokio::test]
    async fn a_short_stream_stays_inline() {
        let (end, capture, _directory) = capture(10, 100, &[b"h\xc3", b"\xa9\xff"]).await;
        assert_eq!(end, StreamEnd::Closed);
        assert_eq!(capture.text, "hé\u{fffd}");
        assert_eq!((capture.total_bytes, capture.truncated, capture.spool), (4, false, None));
    }

    #[tokio::test]
    async fn a_long_one_is_spooled_whole_and_cut_between_characters() {
        let (end, capture, _directory) = capture(4, 100, &[b"abc\xe2\x82\xac", b"more"]).await;
        assert_eq!(end, StreamEnd::Closed);
        assert_eq!((capture.text.as_str(), capture.total_bytes, capture.truncated), ("abc", 10, true));
        assert_eq!(std::fs::read(capture.spool.unwrap()).unwrap(), "abc€more".as_bytes());
    }

    #[tokio::test]
    async fn a_flood_ends_at_the_cap() {
        let (end, capture, _directory) = capture(4, 8, &[b"0123456789"]).await;
        assert_eq!(end, StreamEnd::Flooded);
        assert_eq!((capture.text.as_str(), capture.total_bytes), ("0123", 10));
        assert_eq!(std::fs::read(capture.spool.unwrap()).unwrap(), b"01234567");
    }

    #[test]
    fn only_a_cut_character_is_dropped() {
        assert_eq!(whole_characters("ab€".as_bytes()), 5);
        assert_eq!(whole_characters(&"ab€".as_bytes()[..4]), 2);
        assert_eq!(whole_characters(b"ab\xff"), 3);
        assert_eq!(whole_characters(b""), 0);
    }
}
