//! From a run's outcome to the answer of a call: the text, the structured value, the error flag.

use serde_json::Value;

use super::schema;
use crate::model::{
    Block, CallReply, Capture, Content, Ending, Json, Limit, Limits, NetworkUse, Outcome, ReturnValue, RunId, Style,
    ToolException,
};

/// How many things that a run did not reach are named in its text.
const UNREACHED_SHOWN: usize = 12;

/// What a reply is made from.
pub struct Finished<'a> {
    /// The run's id.
    pub run: RunId,
    /// How the script was called.
    pub style: Style,
    /// What happened.
    pub outcome: &'a Outcome,
    /// The limits it ran under, to name the one that was hit.
    pub limits: &'a Limits,
    /// The checked output schema, where the tool has one.
    pub output: Option<&'a jsonschema::Validator>,
}

impl Finished<'_> {
    /// The answer. A [`ReturnValue::ProtocolError`] is the caller's to map; here it reads as an error text.
    pub fn reply(&self) -> CallReply {
        let mut reply = match (&self.outcome.returned, &self.outcome.ending) {
            (Some(returned), Ending::Ok | Ending::Error) => self.returned(returned),
            _ => self.printed(),
        };
        reply.run = Some(self.run);
        self.name_unreached(&mut reply);
        reply
    }

    /// Says what the run did not reach: in the text of what was printed or went wrong, else in a text of its own.
    fn name_unreached(&self, reply: &mut CallReply) {
        let Some(NetworkUse { unreached, notice, .. }) = &self.outcome.network else { return };
        let mut lines: Vec<String> = unreached.iter().take(UNREACHED_SHOWN).map(ToString::to_string).collect();
        if unreached.len() > lines.len() {
            lines.push(format!("[network] and {} more", unreached.len() - lines.len()));
        }
        lines.extend(notice.iter().filter(|_| reply.is_error).map(|notice| format!("[network] {notice}")));
        if lines.is_empty() {
            return;
        }
        let lines = lines.join("\n");
        let is_value = !reply.is_error && self.outcome.returned.is_some();
        match reply.content.as_mut_slice() {
            [Block { content: Content::Text { text }, .. }] if !is_value => *text = format!("{text}\n{lines}"),
            _ => reply.content.push(Block::text(lines)),
        }
    }

    fn returned(&self, returned: &ReturnValue) -> CallReply {
        match returned {
            ReturnValue::Nothing => self.checked(CallReply::text(self.stdout_text()), None),
            ReturnValue::Text(text) => {
                let json = self.output.map(|_| Json::from(&Value::from(text.as_str())));
                self.checked(CallReply::text(text.clone()), json)
            }
            ReturnValue::Value(value) => self.checked(CallReply::json(value.clone()), Some(value.clone())),
            ReturnValue::Content(content) => {
                self.checked(CallReply { content: with_text(content), ..CallReply::default() }, None)
            }
            ReturnValue::Result { content, structured, meta } => {
                let reply = match (content, structured) {
                    (Some(content), _) => CallReply { content: with_text(content), ..CallReply::default() },
                    (None, Some(json)) => CallReply::json(json.clone()),
                    (None, None) => CallReply::text(self.stdout_text()),
                };
                let reply = CallReply { structured: structured.clone(), meta: meta.clone(), ..reply };
                self.checked(reply, structured.clone())
            }
            ReturnValue::ToolError { text, data } => CallReply { structured: data.clone(), ..CallReply::error(text) },
            ReturnValue::ProtocolError { code, text } => CallReply::error(format!("{text} (code {code})")),
            ReturnValue::Exception(exception) => CallReply::error(exception_text(exception)),
        }
    }

    /// Script style, and every run that ended before `main` did.
    fn printed(&self) -> CallReply {
        let mut reply = CallReply::text(self.whole_text());
        reply.is_error = self.outcome.ending != Ending::Ok;
        if reply.is_error || self.style == Style::Function || self.output.is_none() {
            return reply;
        }
        match Json::parse(self.outcome.stdout.text.clone()) {
            Ok(json) if !self.outcome.stdout.truncated => self.checked(reply, Some(json)),
            Ok(_) | Err(_) => CallReply::error(format!(
                "The tool has an output schema, so its standard output must be one JSON value; it was:\n{}",
                reply_text(&reply)
            )),
        }
    }

    /// Holds the value against the output schema, where there is one.
    fn checked(&self, reply: CallReply, structured: Option<Json>) -> CallReply {
        let Some(validator) = self.output else { return reply };
        let Some(json) = structured else {
            let text = "Result does not match outputSchema: the tool returned no structured value; a function returns it \
                        by itself, or as Result(content, structured=…) beside content";
            return CallReply::error(text);
        };
        let problems = match json.to_value() {
            Ok(value) => schema::problems(validator, &value),
            Err(error) => Some(error.to_string()),
        };
        match problems {
            None => CallReply { structured: Some(json), ..reply },
            Some(problems) => CallReply::error(format!(
                "Result does not match outputSchema: {}",
                problems.replace("the arguments", "the result")
            )),
        }
    }

    fn stdout_text(&self) -> String {
        let text = self.stream(&self.outcome.stdout);
        if text.is_empty() { "(no output)".to_owned() } else { text }
    }

    fn whole_text(&self) -> String {
        let mut parts = vec![self.stdout_text()];
        let stderr = self.stream(&self.outcome.stderr);
        if !stderr.is_empty() {
            parts.push(format!("[stderr] {stderr}"));
        }
        if let Some(problem) = &self.outcome.problem {
            parts.push(format!("[error] {problem}"));
        }
        match &self.outcome.ending {
            Ending::Ok | Ending::Error => {}
            Ending::Exit(status) => parts.push(format!("[exit {status}]")),
            Ending::Signal(signal) => parts.push(format!("[exit -{signal}]")),
            Ending::Timeout => parts.push("[timeout]".to_owned()),
            Ending::Cancelled => parts.push("[cancelled]".to_owned()),
            Ending::Interrupted => parts.push("[interrupted] the server stopped".to_owned()),
            Ending::Limit(limit) => parts.push(format!("[limit] {}", limit_text(*limit, self.limits))),
        }
        parts.join("\n")
    }

    fn stream(&self, capture: &Capture) -> String {
        let text = capture.text.strip_suffix('\n').unwrap_or(&capture.text);
        if !capture.truncated {
            return text.to_owned();
        }
        format!("{text}\n[truncated: {} bytes, run {}]", capture.total_bytes, self.run)
    }
}

/// Names a limit with its value.
pub fn limit_text(limit: Limit, limits: &Limits) -> String {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    match limit {
        Limit::Cpu => format!("cpu: more than {} s of CPU time", limits.cpu.as_secs_f64()),
        Limit::Memory => format!("memory: more than {} over all processes", mib(limits.memory_bytes)),
        Limit::Output => format!("output: more than {} on one stream", mib(limits.output_spool_bytes)),
        Limit::Result => format!("result: more than {}", mib(limits.result_bytes)),
    }
}

fn exception_text(exception: &ToolException) -> String {
    let head = match exception.message.as_str() {
        "" => exception.kind.clone(),
        message => format!("{}: {message}", exception.kind),
    };
    match exception.traceback.trim_end() {
        "" => head,
        traceback => format!("{head}\n{traceback}"),
    }
}

/// Clients drop what they can't show; a text block always stands beside it.
fn with_text(content: &[Block]) -> Vec<Block> {
    let mut content = content.to_vec();
    if !content.iter().any(|block| matches!(block.content, Content::Text { .. })) {
        let kinds: Vec<&str> = content
            .iter()
            .map(|block| match &block.content {
                Content::Text { .. } => "text",
                Content::Image { .. } => "image",
                Content::Audio { .. } => "audio",
                Content::ResourceLink { uri, .. } => uri.as_str(),
                Content::Resource { resource } => resource.uri.as_str(),
            })
            .collect();
        let text = if kinds.is_empty() { "(no output)".to_owned() } else { format!("[{}]", kinds.join(", ")) };
        content.push(Block::text(text));
    }
    content
}

/// The reply's text blocks, joined by newlines.
pub fn reply_text(reply: &CallReply) -> String {
    let texts: Vec<&str> = reply
        .content
        .iter()
        .filter_map(|block| match &block.content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::model::{SandboxLevel, Usage};

    fn outcome(ending: Ending, returned: Option<ReturnValue>, stdout: &str, stderr: &str) -> Outcome {
        let capture = |text: &str| Capture { text: text.into(), total_bytes: text.len() as u64, ..Capture::default() };
        Outcome {
            ending,
            returned,
            problem: None,
            stdout: capture(stdout),
            stderr: capture(stderr),
            usage: Usage::default(),
            sandbox: SandboxLevel::Full,
            network: None,
        }
    }

    fn reply(style: Style, outcome: &Outcome, schema: Option<Value>) -> CallReply {
        let output = schema.map(|schema| schema::compile("output_schema", &schema).unwrap());
        let finished = Finished {
            run: RunId(uuid::Uuid::nil()),
            style,
            outcome,
            limits: &Limits::default(),
            output: output.as_ref(),
        };
        finished.reply()
    }

    fn text(style: Style, outcome: &Outcome) -> (String, bool) {
        let reply = reply(style, outcome, None);
        (reply_text(&reply), reply.is_error)
    }

    #[test]
    fn the_text_of_a_script_is_the_originals_contract() {
        let script = |ending, out, err| text(Style::Script, &outcome(ending, None, out, err));
        assert_eq!(script(Ending::Ok, "hi\n", ""), ("hi".into(), false));
        assert_eq!(script(Ending::Ok, "", ""), ("(no output)".into(), false));
        assert_eq!(script(Ending::Ok, "ok\n", "careful\n"), ("ok\n[stderr] careful".into(), false));
        assert_eq!(script(Ending::Exit(3), "out\n", "err\n"), ("out\n[stderr] err\n[exit 3]".into(), true));
        assert_eq!(script(Ending::Signal(9), "", ""), ("(no output)\n[exit -9]".into(), true));
        assert_eq!(script(Ending::Timeout, "begin\n", ""), ("begin\n[timeout]".into(), true));
        let (text, is_error) = script(Ending::Limit(Limit::Memory), "", "");
        assert!(text.ends_with("[limit] memory: more than 512 MiB over all processes") && is_error);
    }

    #[test]
    fn a_cut_stream_says_how_long_it_was() {
        let mut outcome = outcome(Ending::Ok, None, "abc", "");
        outcome.stdout.truncated = true;
        outcome.stdout.total_bytes = 5_000_000;
        assert_eq!(
            text(Style::Script, &outcome).0,
            "abc\n[truncated: 5000000 bytes, run 00000000-0000-0000-0000-000000000000]"
        );
    }

    #[test]
    fn what_main_returns_is_the_result_and_prints_are_not() {
        let value = Json::parse(r#"{"a":1.10}"#.to_owned()).unwrap();
        let outcome_ = outcome(Ending::Ok, Some(ReturnValue::Value(value.clone())), "printed\n", "");
        let answer = reply(Style::Function, &outcome_, None);
        assert_eq!((reply_text(&answer).as_str(), answer.structured), ("{\"a\":1.10}", Some(value)));
        let nothing = outcome(Ending::Ok, Some(ReturnValue::Nothing), "printed\n", "noise");
        assert_eq!(text(Style::Function, &nothing).0, "printed");
        let error = ReturnValue::Exception(ToolException {
            kind: "ValueError".into(),
            message: "bad".into(),
            traceback: "  line 2".into(),
        });
        assert_eq!(
            text(Style::Function, &outcome(Ending::Error, Some(error), "", "")),
            ("ValueError: bad\n  line 2".into(), true)
        );
    }

    #[test]
    fn results_are_held_against_the_output_schema() {
        let schema = json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        let good = reply(Style::Script, &outcome(Ending::Ok, None, "{\"sum\": 5}\n", ""), Some(schema.clone()));
        assert_eq!((good.structured, good.is_error), (Some(Json::parse("{\"sum\": 5}".to_owned()).unwrap()), false));
        let bad = reply(Style::Script, &outcome(Ending::Ok, None, "{\"sum\": \"five\"}", ""), Some(schema.clone()));
        assert!(bad.is_error && bad.structured.is_none() && reply_text(&bad).contains("`/sum`"), "{bad:?}");
        let none = reply(Style::Script, &outcome(Ending::Ok, None, "five", ""), Some(schema));
        assert!(none.is_error && reply_text(&none).contains("one JSON value"));
    }

    fn returned(value: ReturnValue, schema: Option<Value>) -> CallReply {
        reply(Style::Function, &outcome(Ending::Ok, Some(value), "printed\n", ""), schema)
    }

    fn audio() -> Vec<Block> {
        vec![Content::Audio { data: String::new(), mime_type: "audio/wav".into() }.into()]
    }

    #[test]
    fn a_text_block_always_stands_beside_others() {
        assert_eq!(returned(ReturnValue::Content(audio()), None).content.len(), 2);
    }

    #[test]
    fn a_whole_result_keeps_its_parts_and_makes_what_it_leaves_out() {
        let json = Json::parse(r#"{"n":1.0}"#.to_owned()).unwrap();
        let result = |content, structured: Option<&Json>| ReturnValue::Result {
            content,
            structured: structured.cloned(),
            meta: Some(Map::from_iter([("a".to_owned(), json!(1))])),
        };
        let both = returned(result(Some(audio()), Some(&json)), None);
        assert_eq!(
            (both.content.len(), both.structured.as_ref(), both.meta.unwrap()["a"].clone()),
            (2, Some(&json), json!(1))
        );
        assert_eq!(reply_text(&returned(result(None, Some(&json)), None)), r#"{"n":1.0}"#);
        assert_eq!(reply_text(&returned(result(None, None), None)), "printed");
    }

    #[test]
    fn content_needs_its_value_where_a_schema_is_listed() {
        let schema = json!({"type": "object", "required": ["n"]});
        let good = ReturnValue::Result {
            content: Some(audio()),
            structured: Some(Json::parse(r#"{"n":1}"#.to_owned()).unwrap()),
            meta: None,
        };
        assert!(!returned(good, Some(schema.clone())).is_error);
        let bad = returned(ReturnValue::Content(audio()), Some(schema));
        assert!(bad.is_error && reply_text(&bad).contains("Result(content, structured=…)"), "{bad:?}");
    }
}
