//! Looks at code: it is parsed in the sandbox by its own interpreter, never executed, and never parsed in the server's
//! process.

use std::time::Duration;

use serde_json::json;

use super::inspection::{self, CodeError, Inspection};
use super::{RunNetwork, RunRequest, Runner, RunnerError};
use crate::model::{Ending, Json, Language, Limits, RunId, Style};

impl Runner {
    /// Looks at code without running it.
    ///
    /// # Errors
    /// [`RunnerError`] when the inspector can't be started or answers nonsense; code that can't be a tool is the inner
    /// error.
    pub async fn inspect(&self, language: Language, code: &str) -> Result<Result<Inspection, CodeError>, RunnerError> {
        let (answer, outcome) = self.look_at(&request(language, code)).await?;
        match (answer, &outcome.ending) {
            (Some(answer), _) => inspection::parse(answer).map_err(RunnerError::io("understand the inspector")),
            (None, Ending::Ok) if language == Language::Bash => Ok(Ok(inspection::of_bash(code))),
            (None, Ending::Exit(_)) if language == Language::Bash => {
                Ok(Err(inspection::bash_error(code, &outcome.stderr.text)))
            }
            (None, ending) => {
                let (ending, stderr) = (ending.as_str(), outcome.stderr.text.trim());
                tracing::warn!(ending, stderr, "The inspector gave no answer; it ended with `{ending}`");
                let message =
                    format!("it could not be parsed: the parser ended with `{ending}`; is it nested very deeply?");
                Ok(Err(CodeError { message, line: None, column: None, text: None }))
            }
        }
    }
}

fn request(language: Language, code: &str) -> RunRequest {
    let limits = Limits { wall: Duration::from_secs(20), cpu: Duration::from_secs(20), ..Limits::default() };
    RunRequest {
        id: RunId(uuid::Uuid::now_v7()),
        language,
        style: Style::Script,
        code: code.into(),
        arguments: Json::empty_object(),
        limits,
        environment: None,
        held: None,
        may_wait: false,
        context: json!({}),
        secrets: Vec::new(),
        network: RunNetwork::None,
    }
}
