//! Built-ins that show tools.

use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{BuiltinCall, Failed, Handled, missing, parse};
use crate::clock::rfc3339;
use crate::model::{CallReply, Caller, Scope, Tool, ToolId, ToolVersion, VersionNumber};
use crate::store::{FoundTools, ToolSearch};
use crate::tools::toolsets::portable;
use crate::tools::{Tools, internal};

#[derive(Deserialize)]
struct Get {
    name: String,
    version: Option<VersionNumber>,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    query: String,
    tag: Option<String>,
    limit: Option<u32>,
    #[serde(default)]
    offset: u32,
}

#[derive(Deserialize)]
struct History {
    name: String,
    from: Option<VersionNumber>,
    to: Option<VersionNumber>,
}

impl Tools {
    pub(super) async fn builtin_get(&self, call: BuiltinCall) -> Handled {
        let Get { name, version } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        let version = self.version(&tool.id, version.unwrap_or(tool.latest_version)).await?;
        let definition = &version.definition;
        let mut shown = serde_json::to_value(definition).unwrap_or_default();
        if let Some(map) = shown.as_object_mut() {
            map.remove("lock");
            map.insert("name".into(), json!(tool.name));
            map.insert("version".into(), json!(version.number));
            map.insert("versions".into(), state(&tool));
            map.insert("status".into(), json!(self.status(&version).await?));
            map.insert("enabled".into(), json!(tool.enabled));
            map.insert("fingerprint".into(), json!(version.fingerprint));
            map.insert("saved_at".into(), json!(rfc3339(version.created_at)));
        }
        Ok(CallReply::value(shown))
    }

    /// `ready`, `installing`, `failed: …` or `needs approval: …`.
    pub(super) async fn status(&self, version: &ToolVersion) -> Result<String, Failed> {
        let waits = self.waits(version).await?;
        if !waits.is_empty() {
            let place = self.where_to_approve(&version.tool.0);
            return Ok(format!("needs approval: {}. {place}", waits.join("; ")));
        }
        Ok(match &version.definition.lock {
            None => "ready".to_owned(),
            Some(lock) => self.environment_status(lock),
        })
    }

    pub(super) async fn builtin_list(&self, call: BuiltinCall) -> Handled {
        let list: List = parse(&call.arguments)?;
        let searches = self.searches(&call.caller).await?;
        let search = ToolSearch {
            text: list.query,
            tags: list.tag.into_iter().collect(),
            owner: call.caller.sees_only().cloned(),
            toolset: call.caller.toolset.clone(),
            include_disabled: call.caller.scopes.has(Scope::Author) && !searches,
            limit: list.limit.unwrap_or(if searches { 10 } else { 50 }),
            offset: list.offset,
        };
        let found = self.store.search_tools(&search).await?;
        let total = found.total;
        if searches {
            return self.found(&call.caller, &found, search.offset).await;
        }
        let tools = self.with_states(found.tools).await?;
        let tools: Vec<Value> = tools
            .iter()
            .map(|(found, status)| {
                json!({"name": found.tool.name, "title": found.latest.title,
                    "description": first_line(&found.latest.description), "language": found.latest.language,
                    "tags": found.latest.tags, "enabled": found.tool.enabled, "status": status.as_str(),
                    "versions": state(&found.tool), "updated_at": rfc3339(found.tool.updated_at)})
            })
            .collect();
        Ok(CallReply::value(json!({"total": total, "offset": search.offset, "tools": tools})))
    }

    /// What a caller needs to call what was found, where that is not listed.
    async fn found(&self, caller: &Caller, found: &FoundTools, offset: u32) -> Handled {
        let seen = self.catalog.seen(caller).await;
        let seen = seen.map_err(|error| Failed::Broken(internal("the catalogue can't be read", &error)))?;
        let plain = seen.toolset.as_ref().is_some_and(|toolset| toolset.settings.portable);
        let entries = found.tools.iter().filter_map(|found| seen.entries.get(found.tool.name.as_str()));
        let tools: Vec<Value> = entries
            .map(|entry| {
                let schema = &entry.definition.input_schema;
                json!({"name": entry.tool.name, "title": entry.definition.title,
                    "description": entry.definition.description, "tags": entry.definition.tags,
                    "input_schema": if plain { portable(schema) } else { schema.clone() }})
            })
            .collect();
        Ok(CallReply::value(json!({"total": found.total, "offset": offset, "tools": tools})))
    }

    pub(super) async fn builtin_history(&self, call: BuiltinCall) -> Handled {
        let History { name, from, to } = parse(&call.arguments)?;
        let tool = self.owned(&call.caller, &name).await?;
        if from.is_some() || to.is_some() {
            let to = to.unwrap_or(tool.latest_version);
            let from = from.unwrap_or(to - 1);
            return Ok(CallReply::text(self.difference(&tool, from, to).await?));
        }
        let versions = self.store.list_versions(&tool.id).await?;
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                json!({"version": version.number, "note": version.note, "saved_at": rfc3339(version.created_at),
                    "description": first_line(&version.description), "fingerprint": version.fingerprint})
            })
            .collect();
        Ok(CallReply::value(json!({"name": tool.name, "versions": state(&tool), "history": versions})))
    }

    async fn difference(&self, tool: &Tool, from: VersionNumber, to: VersionNumber) -> Result<String, Failed> {
        if from < 1 {
            return Err(Failed::Refused(format!("version {to} is the first one; there is nothing before it")));
        }
        let (old, new) = (self.version(&tool.id, from).await?, self.version(&tool.id, to).await?);
        let heads = (format!("version {from}"), format!("version {to}"));
        let unified = |old: &str, new: &str, what: &str| {
            let diff = TextDiff::from_lines(old, new);
            let text = diff
                .unified_diff()
                .context_radius(3)
                .header(&format!("{what}, {}", heads.0), &format!("{what}, {}", heads.1))
                .to_string();
            (!text.is_empty()).then_some(text)
        };
        let about = |version: &ToolVersion| {
            let mut value = serde_json::to_value(&version.definition).unwrap_or_default();
            if let Some(map) = value.as_object_mut() {
                map.remove("code");
                map.remove("lock");
            }
            serde_json::to_string_pretty(&value).unwrap_or_default()
        };
        let code = unified(&old.definition.code, &new.definition.code, "code");
        let rest = unified(&about(&old), &about(&new), "definition");
        let text: Vec<String> = [code, rest].into_iter().flatten().collect();
        Ok(if text.is_empty() { format!("versions {from} and {to} say the same") } else { text.join("\n") })
    }

    /// One version, or an error that names those there are.
    pub(in crate::tools) async fn version(&self, tool: &ToolId, number: VersionNumber) -> Result<ToolVersion, Failed> {
        let found = self.store.get_version(tool, number).await?;
        found.ok_or_else(|| missing(format!("there is no version {number}; omniforge_tool_history lists them")))
    }
}

fn state(tool: &Tool) -> Value {
    json!({"serving": tool.serving_version, "latest": tool.latest_version})
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
