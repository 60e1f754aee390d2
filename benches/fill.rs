//! Fills a data directory with tools, as saves would have left it, in seconds instead of minutes.
//!
//! usage: fill DATA_DIR COUNT. The owner's tools are named `tool_00000` on.

use std::path::PathBuf;

use anyhow::Context as _;
use omniforge::auth::OWNER;
use omniforge::clock::Clock;
use omniforge::model::{ToolDefinition, ToolName};
use omniforge::store::{NewTool, NewVersion, PrincipalKind, Serving, Store};
use omniforge::trust::fingerprint;
use serde_json::json;

/// What the tools are about, so that searches find some and not others.
const SUBJECTS: [&str; 8] = ["weather", "invoice", "matrix", "calendar", "picture", "genome", "ledger", "translation"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(count)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: fill DATA_DIR COUNT")
    };
    let store = Store::open(&PathBuf::from(dir), Clock::system()).await?;
    let (owner, _) = store.ensure_principal(OWNER, PrincipalKind::Person).await?;
    for number in 0..count.parse::<usize>().context("COUNT is a number")? {
        let definition = definition(number)?;
        let version = NewVersion {
            fingerprint: fingerprint(&definition)?,
            definition,
            created_by: owner.id.clone(),
            note: "create".to_owned(),
            serving: Serving::Now,
        };
        let name = ToolName::parse(&format!("tool_{number:05}"))?;
        store.create_tool(&NewTool { name, owner: owner.id.clone(), enabled: true, version, toolset: None }).await?;
    }
    store.close().await?;
    Ok(())
}

fn definition(number: usize) -> anyhow::Result<ToolDefinition> {
    let subject = SUBJECTS[number % SUBJECTS.len()];
    Ok(serde_json::from_value(json!({
        "title": format!("The {subject} number {number}"),
        "description": format!("Works on a {subject} and gives back what became of it, as text. One of many, number {number}."),
        "language": "python", "style": "function",
        "code": format!("def main(text: str, count: int = {number}) -> str:\n    return text * count\n"),
        "dependencies": [], "code_dependencies": [],
        "input_schema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": format!("What the {subject} is made of.")},
                "count": {"type": "integer", "default": number, "description": "How often."},
            },
            "required": ["text"], "additionalProperties": false,
        },
        "output_schema": null, "annotations": {}, "icons": [], "tags": [subject, "bench"], "meta": null,
        "timeout_seconds": null, "memory_mb": null, "grants": {}, "mode": "auto", "strict_arguments": false, "lock": null,
        "requires_python": null,
    }))?)
}
