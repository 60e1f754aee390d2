//! Prompts: a template filled in, or what a script makes.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::catalog::Entry;
use super::domain::{Asked, ContentError, PromptReply, Step};
use super::script::{Made, Purpose, ScriptCall};
use super::{fill, nearest};
use crate::model::{Caller, Content, ContentDefinition, PromptDefinition, PromptMessage, Role};
use crate::tools::Tools;
use crate::tools::attend::Lines;

/// What a script returns for a prompt.
#[derive(Debug, Deserialize)]
struct Returned {
    description: Option<String>,
    messages: Vec<PromptMessage>,
}

impl Tools {
    pub(super) async fn prompt(
        &self,
        caller: &Caller,
        (name, arguments, asked): (String, Map<String, Value>, Asked),
        lines: Lines,
    ) -> Result<Step<PromptReply>, ContentError> {
        let seen = self.seen_content(caller).await?;
        let found = seen.prompts.get(&name);
        let Some((entry, prompt)) = found.and_then(|entry| definition(entry).map(|prompt| (entry, prompt))) else {
            let nearest = nearest(&name, seen.prompts.keys().map(String::as_str));
            return Err(ContentError::NoPrompt { name, nearest });
        };
        check_arguments(prompt, &arguments)?;
        let Some(script) = &prompt.script else { return Ok(Step::Done(filled(prompt, &arguments))) };
        let call = ScriptCall { entry, script, purpose: Purpose::Prompt, arguments, asked };
        let (reply, run) = match self.run_script::<Returned>(caller, call, lines).await? {
            Step::Asking(asking) => return Ok(Step::Asking(asking)),
            Step::Done(Made::Returned(Returned { description, messages }, run)) => {
                (PromptReply { description, messages }, run)
            }
            Step::Done(Made::Printed(text, run)) => (printed(&text), run),
        };
        if reply.messages.is_empty() {
            let text = format!("the script made no message (run {run})");
            return Err(ContentError::Failed { text, run: Some(run) });
        }
        let description = reply.description.or(prompt.about.description.clone());
        Ok(Step::Done(PromptReply { description, ..reply }))
    }
}

/// The definition of a prompt's entry.
pub fn definition(entry: &Entry) -> Option<&PromptDefinition> {
    match &entry.version.definition {
        ContentDefinition::Prompt(prompt) => Some(prompt),
        ContentDefinition::Resource(_) | ContentDefinition::Skill(_) => None,
    }
}

fn check_arguments(prompt: &PromptDefinition, given: &Map<String, Value>) -> Result<(), ContentError> {
    let refuse = |text: String| Err(ContentError::InvalidParams(text));
    let known: Vec<&str> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    for (name, value) in given {
        if !known.contains(&name.as_str()) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return refuse(format!("the prompt has no argument `{name}`; it takes {known}"));
        }
        if !value.is_string() {
            return refuse(format!("the argument `{name}` must be a string"));
        }
    }
    let missing = prompt.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name));
    missing.map_or(Ok(()), |argument| refuse(format!("the argument `{}` is missing", argument.name)))
}

fn filled(prompt: &PromptDefinition, arguments: &Map<String, Value>) -> PromptReply {
    let value = |name: &str| {
        let known = prompt.arguments.iter().any(|argument| argument.name == name);
        known.then(|| arguments.get(name).map(fill::text_of).unwrap_or_default())
    };
    let messages = prompt.messages.iter().map(|message| PromptMessage {
        role: message.role,
        content: fill_block(&message.content, &|text| fill::fill(text, &value)),
    });
    PromptReply { description: prompt.about.description.clone(), messages: messages.collect() }
}

/// A block with its texts and URIs filled in.
fn fill_block(block: &Content, fill: &dyn Fn(&str) -> String) -> Content {
    let mut block = block.clone();
    match &mut block {
        Content::Text { text } => *text = fill(text),
        Content::ResourceLink { uri, .. } => *uri = fill(uri),
        Content::Resource { resource } => {
            resource.uri = fill(&resource.uri);
            resource.text = resource.text.as_deref().map(fill);
        }
        Content::Image { .. } | Content::Audio { .. } => {}
    }
    block
}

/// What a program printed: messages as JSON, else one text of the user's.
fn printed(text: &str) -> PromptReply {
    if let Ok(Returned { description, messages }) = serde_json::from_str(text) {
        return PromptReply { description, messages };
    }
    if let Ok(messages) = serde_json::from_str::<Vec<PromptMessage>>(text) {
        return PromptReply { description: None, messages };
    }
    let text = text.strip_suffix('\n').unwrap_or(text);
    PromptReply { description: None, messages: vec![PromptMessage { role: Role::User, content: Content::text(text) }] }
}
