//! What code is, told from its syntax alone: it is parsed in the sandbox by its own interpreter, never executed, and never
//! parsed in the server's process.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{RunRequest, Runner, RunnerError};
use crate::model::{Ending, Language, Limits, RunId, Style};

/// What was understood of code that compiles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Inspection {
    /// How it is called.
    pub style: Style,
    /// JSON Schema of the arguments, from the signature.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// JSON Schema of the result, from the return annotation.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// The docstring's first paragraph.
    #[serde(default)]
    pub description: Option<String>,
    /// The requirements of the code's metadata block.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// Its `requires-python`.
    #[serde(default)]
    pub requires_python: Option<String>,
    /// The top-level modules that it imports.
    #[serde(default)]
    pub imports: Vec<String>,
    /// What the author should know.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Code that can't be a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CodeError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<u64>,
    /// The column, from 1.
    #[serde(default)]
    pub column: Option<u64>,
    /// The line's text.
    #[serde(default)]
    pub text: Option<String>,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None) => write!(f, "line {line}: ")?,
            _ => {}
        }
        f.write_str(&self.message)?;
        match self.text.as_deref().map(str::trim_end).filter(|text| !text.is_empty()) {
            Some(text) => write!(f, "\n    {text}"),
            None => Ok(()),
        }
    }
}

impl Runner {
    /// Looks at code without running it.
    ///
    /// # Errors
    /// [`RunnerError`] when the inspector can't be started or gives no answer; code that can't be a tool is the inner
    /// error.
    pub async fn inspect(&self, language: Language, code: &str) -> Result<Result<Inspection, CodeError>, RunnerError> {
        if language == Language::Bash {
            return self.inspect_bash(code).await;
        }
        let (answer, outcome) = self.look_at(&request(language, code)).await?;
        let Some(mut answer) = answer else {
            return Ok(Err(unanswered(&outcome.ending)));
        };
        let broken = |error: serde_json::Error| RunnerError::io("understand the inspector")(error);
        let is_error = answer.get("type").and_then(Value::as_str) == Some("code_error");
        if let Some(map) = answer.as_object_mut() {
            map.remove("type");
        }
        if is_error {
            return serde_json::from_value(answer).map(Err).map_err(broken);
        }
        serde_json::from_value(answer).map(Ok).map_err(broken)
    }

    /// Bash parses the script itself (`-n`: no command is executed).
    async fn inspect_bash(&self, code: &str) -> Result<Result<Inspection, CodeError>, RunnerError> {
        let (_, outcome) = self.look_at(&request(Language::Bash, code)).await?;
        match outcome.ending {
            Ending::Ok => Ok(Ok(Inspection {
                style: Style::Script,
                input_schema: None,
                output_schema: None,
                description: leading_comment(code),
                dependencies: Vec::new(),
                requires_python: None,
                imports: Vec::new(),
                warnings: Vec::new(),
            })),
            Ending::Exit(_) => Ok(Err(bash_error(&outcome.stderr.text, code))),
            ending => Ok(Err(unanswered(&ending))),
        }
    }
}

fn request(language: Language, code: &str) -> RunRequest {
    let limits = Limits { wall: Duration::from_secs(20), cpu: Duration::from_secs(20), ..Limits::default() };
    let arguments = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
    RunRequest {
        id: RunId(uuid::Uuid::now_v7()),
        language,
        style: Style::Script,
        code: code.into(),
        arguments,
        limits,
        environment: None,
        context: json!({}),
        secrets: Vec::new(),
    }
}

fn unanswered(ending: &Ending) -> CodeError {
    let message = format!(
        "it could not be parsed: the parser ended with `{}` (20 s and 512 MiB are allowed); is it nested very deeply?",
        ending.as_str()
    );
    CodeError { message, line: None, column: None, text: None }
}

/// `FILE: line N: message` as Bash writes it.
fn bash_error(stderr: &str, code: &str) -> CodeError {
    let first = stderr.lines().next().unwrap_or("it can't be parsed");
    let place = first.split_once("line ").and_then(|(_, rest)| rest.split_once(": "));
    let (line, message) = match place.and_then(|(number, message)| Some((number.parse::<u64>().ok()?, message))) {
        Some((line, message)) => (Some(line), message),
        None => (None, first),
    };
    let index = line.and_then(|line| usize::try_from(line).ok()).and_then(|line| line.checked_sub(1));
    let text = index.and_then(|index| code.lines().nth(index)).map(str::to_owned);
    CodeError { message: message.to_owned(), line, column: None, text }
}

/// The first paragraph of the comment at the top, below a `#!` line.
fn leading_comment(code: &str) -> Option<String> {
    let lines = code.lines().skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
    let comment: Vec<&str> =
        lines.map_while(|line| line.strip_prefix('#')).map(str::trim).take_while(|line| !line.is_empty()).collect();
    (!comment.is_empty()).then(|| comment.join(" "))
}
