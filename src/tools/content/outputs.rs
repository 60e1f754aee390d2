//! Outputs of runs as resources: what of a run's streams did not fit into its answer.

use serde_json::{Map, Value, json};

use super::domain::{ContentError, ListedResource};
use crate::model::{Caller, Resource, RunId, Stream};
use crate::tools::{Tools, internal};

use super::read::part;

/// The URI template of runs' outputs.
const TEMPLATE: &str = "omniforge://runs/{run_id}/{stream}{?offset}";
/// What it begins with.
const PREFIX: &str = "omniforge://runs/";
/// The most bytes of one read.
const BYTES: u64 = 4 << 20;

/// The templates that are built in.
pub fn listed() -> Vec<ListedResource> {
    vec![ListedResource {
        uri: TEMPLATE.to_owned(),
        name: "run-output".to_owned(),
        title: Some("Output of a run".to_owned()),
        description: Some(
            "The whole stdout or stderr of a run of yours whose answer says `[truncated: …]`, 4 MiB at a time; kept 7 days"
                .to_owned(),
        ),
        mime_type: Some("text/plain".to_owned()),
        ..ListedResource::default()
    }]
}

/// The URI of a run's output.
pub fn uri(run: RunId, stream: Stream) -> String {
    format!("{PREFIX}{run}/{}", stream.as_str())
}

/// The run, the stream and the offset that a URI names.
fn parse(uri: &str) -> Option<(RunId, Stream, u64)> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let (run, stream) = path.split_once('/')?;
    let offset = match query {
        None => 0,
        Some(query) => query.strip_prefix("offset=")?.parse().ok()?,
    };
    Some((RunId(run.parse().ok()?), Stream::parse(stream)?, offset))
}

impl Tools {
    /// Reads the output of a run of the caller's; `None` when the URI is no such one.
    pub(in crate::tools) async fn read_output(
        &self,
        caller: &Caller,
        uri: &str,
    ) -> Result<Option<Resource>, ContentError> {
        let Some((run, stream, offset)) = parse(uri) else { return Ok(None) };
        let row = self.store.get_run(run).await.map_err(|error| internal("a run can't be read", &error))?;
        let Some(row) = row.filter(|row| caller.sees_run(&row.principal, row.toolset.as_ref())) else {
            return Ok(None);
        };
        let piece = self.runner.outputs().read(run, stream, offset, BYTES).await;
        let piece = piece.map_err(|error| internal("a run's output can't be read", &error))?;
        let (mut bytes, total) = match piece {
            Some(piece) => (piece.bytes, piece.total),
            // It fitted inline, or its file is gone.
            None if offset == 0 => {
                let kept = if stream == Stream::Stdout { row.stdout } else { row.stderr };
                let total = kept.len() as u64;
                (kept.into_bytes(), total)
            }
            None => return Ok(None),
        };
        let more = offset + (bytes.len() as u64) < total;
        if more {
            bytes.truncate(whole_characters(&bytes));
        }
        let next = offset + bytes.len() as u64;
        let next = more.then(|| format!("{}?offset={next}", self::uri(run, stream)));
        let mut part = part(uri.to_owned(), Some("text/plain".to_owned()), bytes);
        let meta = json!({"omniforge/total_bytes": total, "omniforge/next": next});
        part.meta = meta.as_object().map(|meta| meta.clone().into_iter().filter(|(_, fact)| !fact.is_null()).collect());
        Ok(Some(part))
    }

    /// Where the outputs of a run can be read that did not fit inline.
    pub(in crate::tools) fn output_uris(&self, run: RunId) -> Map<String, Value> {
        let kept = [Stream::Stdout, Stream::Stderr].into_iter().filter(|it| self.runner.outputs().has(run, *it));
        kept.map(|stream| (stream.as_str().to_owned(), uri(run, stream).into())).collect()
    }
}

/// How many of these bytes are left without a character that is cut at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_run_stream_and_offset() {
        let run = RunId(uuid::Uuid::nil());
        assert_eq!(parse(&uri(run, Stream::Stderr)), Some((run, Stream::Stderr, 0)));
        assert_eq!(parse(&format!("{}?offset=7", uri(run, Stream::Stdout))), Some((run, Stream::Stdout, 7)));
        for bad in [
            "",
            "/stdout",
            "x/stdout",
            "00000000-0000-0000-0000-000000000000/log",
            "00000000-0000-0000-0000-000000000000/stdout?offset=-1",
        ] {
            assert_eq!(parse(&format!("{PREFIX}{bad}")), None, "{bad}");
        }
    }

    #[test]
    fn a_cut_character_waits_for_the_next_piece() {
        assert_eq!(whole_characters("ab€".as_bytes()), 5);
        assert_eq!(whole_characters(&"ab€".as_bytes()[..4]), 2);
        assert_eq!(whole_characters(b"ab\xff"), 3);
    }
}
