//! What the built-ins for saved content take, and the texts that go with them.

use serde_json::{Value, json};

use crate::model::{ContentItem, ContentKind};
use crate::tools::builtin::descriptors::closed;

/// The fields that a save of every kind has.
fn common(properties: Value, required: &[&str]) -> Value {
    let mut properties = properties;
    let rest = json!({
        "tags": texts(), "enabled": {"type": "boolean", "description": "Alone: switches it"},
        "from_version": {"type": "integer", "description": "Alone: returns to it"},
    });
    extend(&mut properties, rest);
    closed(properties, required)
}

/// The fields of content that a script can make.
fn scripted(mut properties: Value, required: &[&str]) -> Value {
    let rest = json!({
        "language": {"enum": ["python", "javascript", "typescript", "bash"]},
        "completions": {"type": "object", "description": "Suggested values: {argument: [text]}"},
        "completion_code": {"type": "string", "description": "main(argument, value, arguments) returns suggestions"},
        "title": text(), "description": text(),
        "options": {"type": "object", "description": "icons, meta; for code dependencies, timeout_seconds, memory_mb, network, secrets, calls"},
    });
    extend(&mut properties, rest);
    common(properties, required)
}

fn extend(properties: &mut Value, rest: Value) {
    if let (Value::Object(properties), Value::Object(rest)) = (properties, rest) {
        properties.extend(rest);
    }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// The input schema of `omniforge_save_resource`.
pub(in crate::tools::builtin) fn save_resource() -> Value {
    scripted(
        json!({
            "uri": {"type": "string", "description": "URI, or URI template such as notes://{day}"},
            "name": text(), "mime_type": text(), "text": text(),
            "blob": {"type": "string", "description": "Base64"},
            "code": {"type": "string", "description": "main(day) returns str, bytes, Image or EmbeddedResource"},
            "annotations": {"type": "object", "description": "audience, priority, lastModified"},
        }),
        &["uri"],
    )
}

/// The input schema of `omniforge_save_prompt`.
pub(in crate::tools::builtin) fn save_prompt() -> Value {
    scripted(
        json!({
            "name": text(),
            "template": {"type": "string", "description": "One user message, with {argument} where values go"},
            "messages": {"type": "array", "items": {"type": "object", "properties": {"role": {"enum": ["user", "assistant"]},
                "content": {"type": ["string", "object"]}}, "required": ["content"], "additionalProperties": false}},
            "code": {"type": "string", "description": "main(argument) returns a text or a list of {role, content}"},
            "arguments": {"type": "array", "items": {"type": "object", "properties": {"name": text(), "title": text(),
                "description": text(), "required": {"type": "boolean"}}, "required": ["name"],
                "additionalProperties": false}},
            "input_schema": {"type": "object"},
        }),
        &["name"],
    )
}

/// The input schema of `omniforge_save_skill`.
pub(in crate::tools::builtin) fn save_skill() -> Value {
    common(
        json!({
            "markdown": {"type": "string", "description": "SKILL.md: front matter with name and description, then the text"},
            "files": {"type": "array", "items": {"type": "object", "properties": {"path": text(), "text": text(),
                "blob": text(), "mime_type": text()}, "required": ["path"], "additionalProperties": false}},
            "name": {"type": "string", "description": "With enabled or from_version"},
        }),
        &[],
    )
}

/// The input schema of `omniforge_list_content`.
pub(in crate::tools::builtin) fn list_content() -> Value {
    closed(
        json!({"kind": kind(), "name": {"type": "string", "description": "Shows this one, with its versions"},
            "version": {"type": "integer", "minimum": 1}, "query": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
            "offset": {"type": "integer", "minimum": 0, "default": 0}}),
        &[],
    )
}

/// The input schema of `omniforge_delete_content`.
pub(in crate::tools::builtin) fn delete_content() -> Value {
    closed(
        json!({"kind": kind(), "name": {"type": "string", "description": "A resource's is its URI"}}),
        &["kind", "name"],
    )
}

fn kind() -> Value {
    json!({"enum": ["resource", "prompt", "skill"]})
}

/// What is missing from a save that has nothing to save.
pub(super) fn nothing_given(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Resource => {
            "`text`: give `text`, `blob` (base64) or `code`; or of what is saved already `enabled` or `from_version`"
        }
        ContentKind::Prompt => {
            "`template`: give `template`, `messages` or `code`; or of what is saved already `enabled` or `from_version`"
        }
        ContentKind::Skill => {
            "`markdown`: give the text of SKILL.md; or the `name` of what is saved already with `enabled` or `from_version`"
        }
    }
}

/// How clients get at what was saved.
pub(super) fn how_to_use(item: &ContentItem) -> String {
    match (item.kind, item.uri()) {
        (ContentKind::Prompt, _) => format!("Clients offer it as the prompt `{}`.", item.name),
        (_, Some(uri)) => format!("Clients read it as `{uri}`."),
        (_, None) => format!("Clients read what matches `{}`.", item.name),
    }
}
