//! A domain in memory, for tests of the protocol doors alone: tools whose behaviour is fixed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use omniforge::http::{Identify, IdentifyError};
use omniforge::lifecycle::Lifecycle;
use omniforge::model::{Block, CallReply, Caller, Content, LogLevel, PrincipalId, RunEvent, Scope, Scopes};
use omniforge::tools::{Answer, CallError, CallRequest, Change, Contents, Domain, ListedTool, TaskView, ToolList};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

/// The domain.
pub struct Fixture {
    changes: broadcast::Sender<Change>,
    generation: AtomicU64,
    /// How many tools besides the fixed ones.
    pub extra: AtomicUsize,
    /// Told when `wait` has begun.
    pub began: Notify,
    /// Told when `wait` was cancelled.
    pub cancelled: Notify,
    /// Lets `wait` end.
    pub release: Notify,
    lifecycle: Lifecycle,
}

impl Fixture {
    /// The domain of a server with this life.
    pub fn of(lifecycle: Lifecycle) -> Self {
        Self {
            lifecycle,
            changes: broadcast::channel(16).0,
            generation: AtomicU64::new(1),
            extra: AtomicUsize::new(0),
            began: Notify::new(),
            cancelled: Notify::new(),
            release: Notify::new(),
        }
    }

    /// Changes the catalogue.
    pub fn change(&self) {
        let generation = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let _ = self.changes.send(Change { generation });
    }
}

fn tool(name: &str, input: Value, output: Option<Value>) -> ListedTool {
    ListedTool {
        name: name.to_owned(),
        title: Some(format!("The tool {name}")),
        description: format!("What {name} does"),
        input_schema: input,
        output_schema: output,
        annotations: serde_json::Map::from_iter([("readOnlyHint".to_owned(), json!(true))]),
        icons: Vec::new(),
        meta: None,
    }
}

fn schema_2020_12() -> Value {
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
     "$defs": {"address": {"$anchor": "addressDef", "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
     "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"}, "email": {"type": "string"}},
     "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
     "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
     "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false})
}

fn tools(extra: usize) -> Vec<ListedTool> {
    let nothing = || json!({"type": "object", "additionalProperties": false});
    let header = json!({"type": "object", "properties": {"value": {"type": "string", "x-mcp-header": "Value"}}});
    let mut tools = vec![
        tool(
            "omniforge_instructions",
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            None,
        ),
        tool("echo", json!({"type": "object"}), None),
        tool("number", nothing(), Some(json!({"type": "number"}))),
        tool("object", nothing(), Some(json!({"type": "object"}))),
        tool("wait", nothing(), None),
        tool("wait_and_tell", nothing(), None),
        tool("blocks", nothing(), None),
        tool("json_schema_2020_12_tool", schema_2020_12(), None),
        tool("test_custom_header", header, None),
    ];
    let plain = [
        "test_simple_text",
        "test_error_handling",
        "test_tool_with_logging",
        "test_tool_with_progress",
        "test_logging_tool",
        "test_trigger_tool_change",
        "mixed",
        "flood",
        "big_after_a_log",
        "protocol_error",
        "internal_error",
    ];
    tools.extend(plain.map(|name| tool(name, nothing(), None)));
    tools.extend((0..extra).map(|number| tool(&format!("extra_{number}"), nothing(), None)));
    tools
}

fn log(text: &str) -> RunEvent {
    RunEvent::Log { level: LogLevel::Info, data: json!(text), logger: None }
}

fn progress(progress: f64) -> RunEvent {
    RunEvent::Progress { progress, total: Some(100.0), message: Some(format!("{progress} of 100")) }
}

async fn tell(events: &mpsc::Sender<RunEvent>, told: &[RunEvent]) {
    for event in told {
        // A full or closed channel drops events, as the domain says.
        let _ = events.try_send(event.clone());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn reply(
    caller: &Caller,
    request: &CallRequest,
    events: &mpsc::Sender<RunEvent>,
) -> Result<CallReply, CallError> {
    let arguments = request.arguments.as_ref().map_or("none", |arguments| arguments.get());
    Ok(match &*request.name {
        "omniforge_instructions" => CallReply::text("Write a script."),
        "echo" => CallReply::value(json!({
            "arguments": arguments, "caller": caller.principal.0, "client": request.client.name,
            "version": request.client.protocol_version, "id": request.request_id,
            "key": request.meta.get("omniforge/idempotency-key"),
        })),
        "number" => CallReply::value(json!(7)),
        "object" => CallReply::value(json!({"a": 1})),
        "blocks" => {
            let (uri, name) = ("test://a".to_owned(), "a".to_owned());
            let audio = Content::Audio { data: "AA==".to_owned(), mime_type: "audio/wav".to_owned() };
            let link = Content::ResourceLink { uri, name, title: None, description: None, mime_type: None, size: None };
            let content = vec![Block::text("text"), audio.into(), link.into()];
            CallReply { content, ..CallReply::default() }
        }
        "test_simple_text" => CallReply::text("This is a simple text response for testing."),
        "test_error_handling" => CallReply::error("This tool fails on purpose"),
        "test_tool_with_logging" | "test_logging_tool" => {
            tell(events, &[log("started"), log("working"), log("ended")]).await;
            CallReply::text("logged")
        }
        "test_tool_with_progress" => {
            tell(events, &[progress(0.0), progress(50.0), progress(100.0)]).await;
            CallReply::text("done")
        }
        "mixed" => {
            tell(events, &[log("a"), progress(1.0), log("b"), progress(2.0), progress(2.0), log("c")]).await;
            CallReply::text("done")
        }
        "flood" => {
            for step in 1..=1000 {
                events.send(progress(f64::from(step))).await.unwrap();
                if step % 2 == 0 {
                    events.send(log(&step.to_string())).await.unwrap();
                }
            }
            CallReply::text("done")
        }
        "big_after_a_log" => {
            tell(events, &[log("working"), progress(1.0)]).await;
            CallReply::text("x".repeat(2 << 20))
        }
        "test_trigger_tool_change" => CallReply::text("changed"),
        "json_schema_2020_12_tool" | "test_custom_header" => CallReply::text(arguments),
        "protocol_error" => return Err(CallError::Protocol { code: -31999, text: "no".to_owned() }),
        "internal_error" => return Err(CallError::Internal { id: "e1".to_owned() }),
        name => {
            return Err(CallError::UnknownTool { name: name.to_owned(), nearest: vec!["echo".to_owned()] });
        }
    })
}

/// No content: the tests of the doors are about tools.
impl Contents for Fixture {}

#[async_trait]
impl Domain for Fixture {
    async fn list(&self, caller: &Caller) -> Result<Arc<ToolList>, CallError> {
        Ok(Arc::new(ToolList {
            generation: self.generation.load(Ordering::SeqCst),
            visible: caller.principal.0.clone(),
            tools: tools(self.extra.load(Ordering::SeqCst)),
        }))
    }

    async fn call(
        &self,
        caller: &Caller,
        request: CallRequest,
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<Answer, CallError> {
        if request.name == "wait" || request.name == "wait_and_tell" {
            self.began.notify_one();
            return tokio::select! {
                () = cancel.cancelled() => {
                    self.cancelled.notify_one();
                    Err(CallError::Cancelled)
                }
                () = self.lifecycle.killing.cancelled() => {
                    self.cancelled.notify_one();
                    Ok(Answer::Reply(CallReply::error("(no output)\n[cancelled]")))
                }
                () = self.release.notified() => {
                    if request.name == "wait_and_tell" {
                        tell(&events, &[log("released"), progress(1.0)]).await;
                    }
                    Ok(Answer::Reply(CallReply::text("released")))
                }
            };
        }
        if request.name == "test_trigger_tool_change" {
            self.change();
        }
        reply(caller, &request, &events).await.map(Answer::Reply)
    }

    async fn task(&self, _caller: &Caller, id: &str) -> Result<TaskView, CallError> {
        Err(CallError::InvalidParams(format!("there is no task `{id}`")))
    }

    async fn task_changed(&self, _: &Caller, view: &TaskView) -> Result<TaskView, CallError> {
        Err(CallError::InvalidParams(format!("there is no task `{}`", view.run)))
    }

    async fn answer_task(&self, _: &Caller, id: &str, _: Map<String, Value>) -> Result<(), CallError> {
        Err(CallError::InvalidParams(format!("there is no task `{id}`")))
    }

    async fn cancel_task(&self, _caller: &Caller, id: &str) -> Result<(), CallError> {
        Err(CallError::InvalidParams(format!("there is no task `{id}`")))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    async fn instructions(&self, _caller: &Caller) -> Result<String, CallError> {
        Ok("Read omniforge_instructions first.".to_owned())
    }

    async fn within(&self, _caller: &Caller, _toolset: &str) -> Result<Option<Caller>, CallError> {
        Ok(None)
    }
}

/// The tokens `anna` and `ben` name principals; with `open`, nobody needs one.
pub struct Names {
    /// Whether everybody is let in.
    pub open: bool,
}

#[async_trait]
impl Identify for Names {
    async fn identify(&self, authorization: Option<&http::HeaderValue>) -> Result<Caller, IdentifyError> {
        let token = authorization.and_then(|value| value.to_str().ok()).and_then(|text| text.strip_prefix("Bearer "));
        match token {
            Some(name @ ("anna" | "ben")) => Ok(caller(name, Some(name))),
            _ if self.open => Ok(caller("local", None)),
            _ => Err(IdentifyError::Refused { reason: "its token is unknown".to_owned(), token: None }),
        }
    }

    fn wants_credential(&self) -> bool {
        !self.open
    }
}

/// A caller of this name.
pub fn caller(name: &str, token: Option<&str>) -> Caller {
    Caller {
        principal: PrincipalId(name.to_owned()),
        principal_name: name.to_owned(),
        token_id: token.map(ToOwned::to_owned),
        scopes: Scopes::of(&[Scope::Call, Scope::Author]),
        source: None,
        toolset: None,
    }
}
