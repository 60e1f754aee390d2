//! What every backend of the store must do, through real files. `auth` is here too: it is the store's first user.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod auth;
mod catalog;
mod environments;
mod opening;
mod runs;
mod search;

use omniforge::clock::Clock;
use omniforge::model::{
    Grants, Json, Language, Mode, PrincipalId, RunId, RunRow, SandboxLevel, Style, Timestamp, ToolDefinition, ToolName,
};
use omniforge::store::{NewTool, NewVersion, PrincipalKind, Serving, Store};
use serde_json::json;
use tempfile::TempDir;

/// The time at which these tests play.
const NOW: Timestamp = Timestamp(1_790_000_000_000);

/// A fresh store with one principal.
struct Bench {
    dir: TempDir,
    clock: Clock,
    store: Store,
    owner: PrincipalId,
}

impl Bench {
    async fn new() -> Self {
        let (dir, clock) = (TempDir::new().unwrap(), Clock::manual(NOW));
        let store = Store::open(dir.path(), clock.clone()).await.unwrap();
        store.use_audit_key([7; 32]).await.unwrap();
        let (owner, made) = store.ensure_principal("owner", PrincipalKind::Person).await.unwrap();
        assert!(made);
        Self { dir, clock, store, owner: owner.id }
    }

    fn tool(&self, name: &str) -> NewTool {
        NewTool {
            name: ToolName::parse(name).unwrap(),
            owner: self.owner.clone(),
            enabled: true,
            toolset: None,
            version: self.version("create", true),
        }
    }

    fn version(&self, note: &str, serve: bool) -> NewVersion {
        NewVersion {
            definition: definition(note),
            fingerprint: format!("fingerprint of {note}"),
            created_by: self.owner.clone(),
            note: note.to_owned(),
            serving: if serve { Serving::Now } else { Serving::NotYet },
        }
    }

    fn run(&self, tool_name: &str) -> RunRow {
        RunRow {
            id: self.clock.new_run_id(),
            tool: None,
            tool_name: tool_name.to_owned(),
            version: Some(1),
            principal: self.owner.clone(),
            client: Some("claude-code 2.1".to_owned()),
            door: "mcp".to_owned(),
            instance: "instance-1".to_owned(),
            arguments: Json::parse(r#"{"a":1}"#.to_owned()).unwrap(),
            coerced: vec!["/a".to_owned()],
            queued_at: self.clock.now(),
            started_at: None,
            ended_at: None,
            ending: None,
            is_error: false,
            result: None,
            error: None,
            stdout: String::new(),
            stderr: String::new(),
            log: String::new(),
            cpu_ms: 0,
            peak_memory_bytes: 0,
            sandbox: SandboxLevel::Full,
            idempotency: None,
            tries: 1,
            parent: None,
            network: None,
            toolset: None,
        }
    }

    /// A connection of the tests' own, past the store.
    async fn raw(&self) -> sqlx::SqliteConnection {
        raw(self.dir.path()).await
    }
}

async fn raw(dir: &std::path::Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(dir.join("omniforge.db"));
    options.foreign_keys(true).create_if_missing(true).connect().await.unwrap()
}

fn definition(description: &str) -> ToolDefinition {
    ToolDefinition {
        title: Some("A title".to_owned()),
        description: description.to_owned(),
        language: Language::Python,
        style: Style::Function,
        code: "def main(z, a): return '\u{0}é😀'".to_owned(),
        code_dependencies: Vec::new(),
        inferred: omniforge::model::Inferred::default(),
        dependencies: vec!["httpx>=0.27".to_owned()],
        requires_python: None,
        input_schema: json!({"type": "object", "properties": {"z": {"type": "number"}, "a": {"maximum": 1.5}}}),
        output_schema: None,
        annotations: serde_json::Map::new(),
        icons: vec![],
        tags: vec!["Money".to_owned(), "two words".to_owned()],
        meta: None,
        timeout_seconds: Some(2.5),
        memory_mb: None,
        grants: Grants::default(),
        mode: Mode::Auto,
        task_required: false,
        retry: false,
        strict_arguments: false,
        lock: None,
    }
}

fn absent_run() -> RunId {
    RunId(uuid::Uuid::nil())
}
