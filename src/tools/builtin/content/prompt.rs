//! What an author gave for a prompt, checked and put together.

use serde::Deserialize;
use serde_json::{Value, json};

use super::resource::base64;
use super::scripts::{CompletionsDraft, Options, suggester};
use super::{Wanted, about, wrong};
use crate::model::{
    Completions, Content, ContentDefinition, PromptArgument, PromptDefinition, PromptMessage, Role, ToolDefinition,
};
use crate::tools::Tools;
use crate::tools::authoring::{self, Draft};
use crate::tools::builtin::Failed;
use crate::tools::content::{is_name, places};

/// The most bytes of a prompt's messages.
const BYTES: usize = 4 << 20;

/// The fields of `omniforge_save_prompt`.
#[derive(Deserialize)]
pub(super) struct PromptDraft {
    pub(super) name: String,
    template: Option<String>,
    messages: Option<Vec<MessageDraft>>,
    arguments: Option<Vec<PromptArgument>>,
    #[serde(default)]
    options: Options,
    #[serde(flatten)]
    completions: CompletionsDraft,
    #[serde(flatten)]
    draft: Draft,
}

#[derive(Deserialize)]
struct MessageDraft {
    #[serde(default)]
    role: Role,
    content: ContentDraft,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ContentDraft {
    Text(String),
    Block(Content),
}

impl PromptDraft {
    /// Whether it says what its messages are.
    pub(super) fn has_contents(&self) -> bool {
        self.template.is_some() || self.messages.is_some() || self.draft.code.is_some()
    }
}

impl Tools {
    pub(super) async fn prompt_from(
        &self,
        given: PromptDraft,
        before: Option<&ContentDefinition>,
    ) -> Result<Wanted, Failed> {
        let PromptDraft { name, template, messages, arguments, completions, options, draft } = given;
        authoring::tool_name(&name)?;
        if let Some(arguments) = &arguments {
            check_arguments(arguments)?;
        }
        if draft.code.is_none() {
            options.check_unscripted(&draft)?;
        }
        let draft = options.complete(draft).checked(&self.options.ceilings)?;
        let language = draft.language.clone();
        let mut wanted = match (template, messages, draft.code.is_some()) {
            (None, None, true) => self.scripted_prompt(&name, draft, arguments, before).await?,
            (Some(template), None, false) => {
                let message = PromptMessage { role: Role::User, content: Content::text(template) };
                fixed(name, &draft, vec![message], arguments)?
            }
            (None, Some(messages), false) => fixed(name, &draft, checked(messages)?, arguments)?,
            _ => return wrong("template", "give exactly one of `template`, `messages` and `code`"),
        };
        if let ContentDefinition::Prompt(prompt) = &mut wanted.definition {
            let names: Vec<String> = prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
            prompt.completions = self.content_completions(completions, &names, (language, suggester(before))).await?;
            wanted.understood.push(format!("Arguments: {}.", told(&prompt.arguments)));
        }
        Ok(wanted)
    }

    async fn scripted_prompt(
        &self,
        name: &str,
        mut draft: Draft,
        arguments: Option<Vec<PromptArgument>>,
        before: Option<&ContentDefinition>,
    ) -> Result<Wanted, Failed> {
        let mut about = about(&draft);
        let enabled = draft.enabled;
        if let Some(arguments) = &arguments {
            if draft.input_schema.is_some() {
                return wrong("arguments", "give either `arguments` or `input_schema`");
            }
            draft.input_schema = Some(Some(schema_of(arguments)));
        }
        let script = self.content_script(name, draft, None, before.and_then(ContentDefinition::script)).await?;
        if script.definition.inferred.description {
            about.description = Some(script.definition.description.clone());
        }
        let arguments = arguments.unwrap_or_else(|| arguments_of(&script.definition));
        let definition = PromptDefinition {
            about,
            arguments,
            messages: Vec::new(),
            script: Some(script.definition),
            completions: Completions::default(),
        };
        Ok(Wanted {
            name: name.to_owned(),
            definition: ContentDefinition::Prompt(definition),
            files: Vec::new(),
            enabled,
            understood: script.understood,
            warnings: script.warnings,
        })
    }
}

/// A prompt whose messages are these.
fn fixed(
    name: String,
    draft: &Draft,
    messages: Vec<PromptMessage>,
    arguments: Option<Vec<PromptArgument>>,
) -> Result<Wanted, Failed> {
    if messages.is_empty() {
        return wrong("messages", "there must be at least one");
    }
    let text = serde_json::to_string(&messages).unwrap_or_default();
    if text.len() > BYTES {
        return wrong("messages", format!("they are {} bytes of JSON; at most {BYTES} are allowed", text.len()));
    }
    let found: Vec<String> = messages.iter().flat_map(|message| texts(&message.content)).flat_map(places).fold(
        Vec::new(),
        |mut found, name| {
            if !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
            found
        },
    );
    let mut warnings = Vec::new();
    let arguments = arguments.unwrap_or_else(|| {
        found.iter().map(|name| PromptArgument { name: name.clone(), required: true, ..Default::default() }).collect()
    });
    for name in found.iter().filter(|name| !arguments.iter().any(|argument| argument.name == **name)) {
        warnings.push(format!("the text has {{{name}}}, which is no argument and stays as it is"));
    }
    for argument in arguments.iter().filter(|argument| !found.contains(&argument.name)) {
        warnings.push(format!("the argument `{0}` is used nowhere; write {{{0}}} where its value goes", argument.name));
    }
    let completions = Completions::default();
    let definition = PromptDefinition { about: about(draft), arguments, messages, script: None, completions };
    Ok(Wanted {
        name,
        definition: ContentDefinition::Prompt(definition),
        files: Vec::new(),
        enabled: draft.enabled,
        understood: Vec::new(),
        warnings,
    })
}

/// The texts of a block that values go into.
fn texts(block: &Content) -> Vec<&str> {
    match block {
        Content::Text { text } => vec![text],
        Content::ResourceLink { uri, .. } => vec![uri],
        Content::Resource { resource } => {
            [Some(resource.uri.as_str()), resource.text.as_deref()].into_iter().flatten().collect()
        }
        Content::Image { .. } | Content::Audio { .. } => Vec::new(),
    }
}

fn checked(messages: Vec<MessageDraft>) -> Result<Vec<PromptMessage>, Failed> {
    let messages = messages.into_iter().enumerate().map(|(index, message)| {
        let content = match message.content {
            ContentDraft::Text(text) => Content::text(text),
            ContentDraft::Block(block) => block,
        };
        let field = format!("messages/{index}/content");
        match &content {
            Content::Image { data, .. } | Content::Audio { data, .. } => base64(&field, data).map(drop)?,
            Content::Resource { resource } if resource.text.is_some() == resource.blob.is_some() => {
                return wrong(&field, "a resource has either `text` or `blob` (base64)");
            }
            Content::Resource { resource } => {
                resource.blob.as_deref().map_or(Ok(()), |blob| base64(&field, blob).map(drop))?;
            }
            Content::Text { .. } | Content::ResourceLink { .. } => {}
        }
        Ok(PromptMessage { role: message.role, content })
    });
    messages.collect()
}

fn check_arguments(arguments: &[PromptArgument]) -> Result<(), Failed> {
    if arguments.len() > 64 {
        return wrong("arguments", "more than 64 are given");
    }
    for (index, argument) in arguments.iter().enumerate() {
        let name = &argument.name;
        if !is_name(name) {
            return wrong("arguments", format!("`{name}` must be a letter or `_`, then letters, digits and `_`"));
        }
        if arguments[..index].iter().any(|other| other.name == *name) {
            return wrong("arguments", format!("`{name}` is there twice"));
        }
    }
    Ok(())
}

/// The arguments of a script's parameters.
fn arguments_of(script: &ToolDefinition) -> Vec<PromptArgument> {
    let schema = &script.input_schema;
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let arguments = properties.into_iter().flatten().map(|(name, property)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
        PromptArgument {
            name: name.clone(),
            title: text("title"),
            description: text("description"),
            required: required(name),
        }
    });
    arguments.collect()
}

/// The schema of a script's arguments that were named one by one.
fn schema_of(arguments: &[PromptArgument]) -> Value {
    let properties: serde_json::Map<String, Value> = arguments
        .iter()
        .map(|argument| {
            let mut property = json!({"type": "string"});
            if let Some(description) = &argument.description {
                property["description"] = json!(description);
            }
            (argument.name.clone(), property)
        })
        .collect();
    let required: Vec<&str> = arguments.iter().filter(|it| it.required).map(|it| it.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn told(arguments: &[PromptArgument]) -> String {
    if arguments.is_empty() {
        return "none".to_owned();
    }
    let told = arguments.iter().map(|it| if it.required { it.name.clone() } else { format!("{} (optional)", it.name) });
    told.collect::<Vec<_>>().join(", ")
}
