//! What the inspector tells of code that was never run: style, schemas, dependencies, or the fault in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Style;

/// What was understood of code by its syntax alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// How the code is called.
    pub style: Style,
    /// The arguments' schema, inferred from the signature; `None` where nothing can be inferred.
    pub input_schema: Option<Value>,
    /// The result's schema, where it is annotated as an object.
    pub output_schema: Option<Value>,
    /// The first paragraph of the docstring (or leading comment).
    pub description: Option<String>,
    /// The requirements of the code's own metadata block.
    pub dependencies: Vec<String>,
    /// The `requires-python` of that block.
    pub requires_python: Option<String>,
    /// The top-level names of the modules it imports anywhere.
    pub imports: Vec<String>,
    /// Those of them that the runtime doesn't bring along.
    #[serde(default)]
    pub third_party: Vec<String>,
    /// The imports at its top that nothing stands before: what can be imported ahead of a call.
    #[serde(default)]
    pub preload: Vec<Import>,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// A module that is imported, and the names that are taken from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Import(pub String, pub Vec<String>);

/// A fault in the code that keeps it from being saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct CodeError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The line's text.
    pub text: Option<String>,
}

impl CodeError {
    fn place(&self) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("line {line}, column {column}: "),
            (Some(line), None) => format!("line {line}: "),
            (None, _) => String::new(),
        }
    }
}

/// The inspector's frame.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answer {
    Inspected(Box<Inspection>),
    CodeError(CodeError),
}

/// Understands the inspector's frame.
///
/// # Errors
/// When the frame is no answer of the inspector's.
pub fn parse(frame: Value) -> Result<Result<Inspection, CodeError>, serde_json::Error> {
    Ok(match serde_json::from_value(frame)? {
        Answer::Inspected(inspection) => Ok(*inspection),
        Answer::CodeError(error) => Err(error),
    })
}

/// What there is to tell of Bash code that `bash -n` accepted.
pub fn of_bash(code: &str) -> Inspection {
    Inspection {
        style: Style::Script,
        input_schema: None,
        output_schema: None,
        description: leading_comment(code),
        dependencies: Vec::new(),
        requires_python: None,
        imports: Vec::new(),
        third_party: Vec::new(),
        preload: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The fault that `bash -n` names, such as `bash: line 3: syntax error near unexpected token`.
pub fn bash_error(code: &str, stderr: &str) -> CodeError {
    let complaint = stderr.lines().find(|line| line.contains(": line ")).or_else(|| stderr.lines().next());
    let (line, message) = complaint
        .and_then(|complaint| complaint.split_once(": line "))
        .and_then(|(_, rest)| rest.split_once(": "))
        .and_then(|(number, message)| Some((number.parse::<u32>().ok()?, message)))
        .map_or((None, complaint.unwrap_or("bash does not accept the code")), |(line, message)| (Some(line), message));
    let text = line
        .and_then(|line| code.lines().nth((line as usize).checked_sub(1)?))
        .map(|text| text.chars().take(500).collect());
    CodeError { message: message.to_owned(), line, column: None, text }
}

/// The first paragraph of the comment at the top, on one line.
fn leading_comment(code: &str) -> Option<String> {
    let lines = code.lines().skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
    let paragraph: Vec<&str> = lines
        .map_while(|line| line.strip_prefix('#'))
        .map(|line| line.trim_matches([' ', '#', '\t']))
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    (!paragraph.is_empty()).then(|| paragraph.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bash_complaint_becomes_a_place() {
        let code = "echo a\nif true; then\n";
        let error = bash_error(code, "bash: line 2: syntax error: unexpected end of file\n");
        assert_eq!(error.to_string(), "line 2: syntax error: unexpected end of file");
        assert_eq!(error.text.as_deref(), Some("if true; then"));
        let unplaced = bash_error(code, "something else");
        assert_eq!((unplaced.message.as_str(), unplaced.line), ("something else", None));
        assert_eq!(bash_error("", "bash: line 0: odd").text, None);
    }

    #[test]
    fn the_top_comment_of_bash_is_its_description() {
        let described = |code| of_bash(code).description;
        assert_eq!(described("#!/bin/bash\n\n# Counts\n# words.\n#\n# More.\nwc\n").as_deref(), Some("Counts words."));
        assert_eq!(described("echo a\n# later\n"), None);
        assert_eq!(described("#!/bin/bash\necho\n"), None);
    }

    #[test]
    fn a_frame_that_is_no_answer_is_an_error() {
        assert!(parse(serde_json::json!({"type": "return"})).is_err());
        assert!(parse(serde_json::json!({"type": "inspected", "style": "sonnet"})).is_err());
    }
}
