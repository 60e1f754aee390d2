//! Built-ins that show and delete saved content.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::model::{CallReply, ContentKind, VersionNumber};
use crate::store::{AuditEntry, ContentSearch, Store};
use crate::tools::Tools;
use crate::tools::builtin::written::deed;
use crate::tools::builtin::{BuiltinCall, Failed, Handled, parse};

#[derive(Deserialize)]
struct List {
    kind: Option<ContentKind>,
    name: Option<String>,
    version: Option<VersionNumber>,
    #[serde(default)]
    query: String,
    limit: Option<u32>,
    #[serde(default)]
    offset: u32,
}

#[derive(Deserialize)]
struct Delete {
    kind: ContentKind,
    name: String,
}

impl Tools {
    pub(in crate::tools::builtin) async fn builtin_list_content(&self, call: BuiltinCall) -> Handled {
        let list: List = parse(&call.arguments)?;
        match (list.kind, &list.name) {
            (Some(kind), Some(name)) => return self.show_content(&call, kind, name, list.version).await,
            (None, Some(_)) => return Err(Failed::Refused("`kind`: with a `name`, say of what kind it is".into())),
            (_, None) => {}
        }
        let search = ContentSearch {
            kind: list.kind,
            text: list.query,
            owner: call.caller.sees_only().cloned(),
            toolset: call.caller.toolset.clone(),
            limit: list.limit.unwrap_or(50),
            offset: list.offset,
        };
        let found = self.store.search_contents(&search).await?;
        let items = found.items.iter().map(|found| {
            json!({"kind": found.item.kind, "name": found.item.name, "title": found.latest.title,
                "description": found.latest.description, "enabled": found.item.enabled,
                "versions": {"serving": found.item.serving_version, "latest": found.item.latest_version},
                "updated_at": rfc3339(found.item.updated_at)})
        });
        let items: Vec<Value> = items.collect();
        Ok(CallReply::value(json!({"total": found.total, "offset": search.offset, "content": items})))
    }

    /// One item: a version's definition, its files and the history.
    async fn show_content(
        &self,
        call: &BuiltinCall,
        kind: ContentKind,
        name: &str,
        number: Option<VersionNumber>,
    ) -> Handled {
        let item = self.owned_content(&call.caller, kind, name).await?;
        let version = self.content_version(&item, number.unwrap_or(item.latest_version)).await?;
        let waits = self.approvals.content_waits(&version).await?;
        let mut definition = serde_json::to_value(&version.definition).unwrap_or_default();
        for script in ["/script", "/completions/script"] {
            if let Some(script) = definition.pointer_mut(script).and_then(Value::as_object_mut) {
                script.remove("lock");
            }
        }
        let history = self.store.list_content_versions(&item.id).await?;
        let history: Vec<Value> = history
            .iter()
            .map(|version| {
                json!({"version": version.number, "note": version.note, "saved_at": rfc3339(version.created_at),
                    "fingerprint": version.fingerprint})
            })
            .collect();
        Ok(CallReply::value(json!({"kind": kind, "name": item.name, "version": version.number,
            "versions": {"serving": item.serving_version, "latest": item.latest_version}, "enabled": item.enabled,
            "status": if waits.is_empty() { "ready".to_owned() } else { format!("needs approval: {}", waits.join("; ")) },
            "definition": definition, "files": version.files, "fingerprint": version.fingerprint,
            "saved_at": rfc3339(version.created_at), "history": history})))
    }

    pub(in crate::tools::builtin) async fn builtin_delete_content(&self, call: BuiltinCall) -> Handled {
        let Delete { kind, name } = parse(&call.arguments)?;
        let item = self.owned_content(&call.caller, kind, &name).await?;
        call.expects(Some((item.latest_version, item.enabled)))?;
        let latest = self.store.get_content_version(&item.id, item.latest_version).await?;
        let (id, kind) = (item.id, kind.as_str());
        let detail = json!({"latest_version": item.latest_version});
        let entry = deed(&call.caller, format!("{kind}.delete"), &name, detail);
        let entry = AuditEntry { before: latest.map(|version| version.fingerprint), ..entry };
        let write = move |store: Store| async move { store.delete_content(&id).await };
        let deleted = self.write_content(entry, write, |entry, deleted| deleted.then_some(entry)).await?;
        if !deleted {
            return Err(Failed::Refused(format!("there is no {kind} `{name}` any more")));
        }
        Ok(CallReply::text(format!("Deleted {kind} `{name}` with its {} version(s).", item.latest_version)))
    }
}
