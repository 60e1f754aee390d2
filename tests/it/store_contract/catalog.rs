//! Tools and versions: what is saved is what is read, and order, generation and immutability hold.

use std::time::Duration;

use omniforge::model::{ToolId, ToolName};
use omniforge::store::{AuditEntry, AuditFilter, Instance, NewTool, Store, StoreError};

use super::{Bench, NOW};

#[tokio::test]
async fn a_tool_is_read_as_it_was_saved() {
    let bench = Bench::new().await;
    let (tool, version) = bench.store.create_tool(&bench.tool("Add-VAT")).await.unwrap();
    assert_eq!(bench.store.get_tool(&tool.id).await.unwrap().unwrap(), tool);
    assert_eq!(bench.store.get_tool_by_name("Add-VAT").await.unwrap().unwrap(), tool);
    assert_eq!(bench.store.get_tool_by_name("add-vat").await.unwrap(), None);
    assert_eq!(bench.store.get_version(&tool.id, 1).await.unwrap().unwrap(), version);
    assert_eq!(bench.store.get_version(&tool.id, 2).await.unwrap(), None);
    let keys: Vec<_> = version.definition.input_schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["z", "a"], "the schema keeps its order");
    let folded = bench.store.folded_names(&bench.owner).await.unwrap();
    assert_eq!(folded, [(ToolName::parse("Add-VAT").unwrap(), "add_vat".to_owned())]);
}

#[tokio::test]
async fn a_taken_name_names_its_owner() {
    let bench = Bench::new().await;
    bench.store.create_tool(&bench.tool("add")).await.unwrap();
    let error = bench.store.create_tool(&bench.tool("add")).await.unwrap_err();
    assert!(matches!(error, StoreError::NameTaken { owner } if owner == bench.owner));
}

#[tokio::test]
async fn versions_are_numbered_and_conflicts_are_seen() {
    let bench = Bench::new().await;
    let (tool, _) = bench.store.create_tool(&bench.tool("add")).await.unwrap();
    let (tool2, version) = bench.store.add_version(&tool.id, 1, &bench.version("update", false)).await.unwrap();
    assert_eq!((version.number, tool2.latest_version, tool2.serving_version), (2, 2, Some(1)));
    assert_eq!(tool2.updated_at, tool.updated_at, "what does not serve is no update");
    let error = bench.store.add_version(&tool.id, 1, &bench.version("late", true)).await.unwrap_err();
    assert!(matches!(error, StoreError::VersionConflict { expected: 1, latest: 2 }));
    let absent = ToolId("absent".to_owned());
    let error = bench.store.add_version(&absent, 1, &bench.version("x", true)).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchTool));

    let served = bench.store.set_serving(&tool.id, Some(2)).await.unwrap();
    assert!(served.serving_version == Some(2) && served.updated_at > tool.updated_at);
    let error = bench.store.set_serving(&tool.id, Some(3)).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchVersion { number: 3 }));
    let versions = bench.store.list_versions(&tool.id).await.unwrap();
    assert_eq!(versions.iter().map(|version| version.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(versions[0].tags, ["Money", "two words"]);
}

#[tokio::test]
async fn the_last_updated_tool_stands_first_even_within_a_millisecond() {
    let bench = Bench::new().await;
    let mut ids = vec![];
    for name in ["a", "b", "c"] {
        ids.push(bench.store.create_tool(&bench.tool(name)).await.unwrap().0.id);
    }
    let names = async || {
        let visible = bench.store.visible_tools(&bench.owner, None).await.unwrap();
        visible.into_iter().map(|(tool, _)| tool.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["c", "b", "a"]);
    bench.store.set_enabled(&ids[1], false).await.unwrap();
    assert_eq!(names().await, ["c", "a"]);
    bench.store.set_enabled(&ids[0], true).await.unwrap();
    assert_eq!(names().await, ["c", "a"], "no change, no update");
    let tool = bench.store.set_enabled(&ids[1], true).await.unwrap();
    assert_eq!(names().await, ["b", "c", "a"]);
    assert!(tool.updated_at > NOW, "the clock stands still, the order does not");
    bench.store.set_serving(&ids[2], None).await.unwrap();
    assert_eq!(names().await, ["b", "a"], "nothing serves, nothing is listed");
    bench.store.delete_tool(&ids[1]).await.unwrap();
    let (late, _) = bench.store.create_tool(&bench.tool("d")).await.unwrap();
    assert!(late.updated_at > tool.updated_at, "also after the last updated one is gone");
    bench.clock.advance(Duration::from_secs(1));
    let tool = bench.store.set_serving(&ids[2], Some(1)).await.unwrap();
    assert_eq!(tool.updated_at, bench.clock.now());
}

#[tokio::test]
async fn each_change_raises_the_generation_once_and_nothing_else_does() {
    let bench = Bench::new().await;
    let generation = async || bench.store.catalog_generation().await.unwrap();
    let start = generation().await;
    let (tool, _) = bench.store.create_tool(&bench.tool("a")).await.unwrap();
    bench.store.add_version(&tool.id, 1, &bench.version("update", true)).await.unwrap();
    bench.store.set_serving(&tool.id, Some(1)).await.unwrap();
    bench.store.set_enabled(&tool.id, false).await.unwrap();
    assert_eq!(generation().await, start + 4);
    bench.store.set_enabled(&tool.id, false).await.unwrap();
    assert!(bench.store.create_tool(&bench.tool("a")).await.is_err());
    let stranger = NewTool { owner: omniforge::model::PrincipalId("nobody".to_owned()), ..bench.tool("b") };
    assert!(matches!(bench.store.create_tool(&stranger).await, Err(StoreError::Database { .. })));
    assert!(!bench.store.delete_tool(&ToolId("absent".to_owned())).await.unwrap());
    assert_eq!(generation().await, start + 4);
    assert!(bench.store.delete_tool(&tool.id).await.unwrap());
    assert_eq!(generation().await, start + 5);
}

#[tokio::test]
async fn versions_and_the_audit_log_never_change_whoever_asks() {
    let bench = Bench::new().await;
    let (tool, _) = bench.store.create_tool(&bench.tool("a")).await.unwrap();
    bench.store.append_audit(&AuditEntry::default()).await.unwrap();
    let mut raw = bench.raw().await;
    for sql in [
        "UPDATE tool_versions SET note = 'x'",
        "DELETE FROM tool_versions",
        "INSERT OR REPLACE INTO tool_versions SELECT * FROM tool_versions",
        "UPDATE audit SET outcome = 'x'",
        "DELETE FROM audit",
    ] {
        let error = sqlx::query(sql).execute(&mut raw).await.unwrap_err().to_string();
        assert!(error.contains("never") || error.contains("together with its tool"), "{sql}: {error}");
    }
    assert!(bench.store.delete_tool(&tool.id).await.unwrap());
    assert_eq!(bench.store.list_versions(&tool.id).await.unwrap(), []);
}

#[tokio::test]
async fn two_stores_on_one_directory_interleave_their_writes() {
    let bench = Bench::new().await;
    let other = Store::open(bench.dir.path(), bench.clock.clone()).await.unwrap();
    let (before, start) = (other.data_version().await.unwrap(), other.catalog_generation().await.unwrap());
    assert_eq!(other.data_version().await.unwrap(), before, "reading moves nothing");
    let mut writers = tokio::task::JoinSet::new();
    for (store, letter) in [(bench.store.clone(), 'a'), (other.clone(), 'b')] {
        for number in 0..20 {
            let (store, tool) = (store.clone(), bench.tool(&format!("{letter}{number}")));
            writers.spawn(async move { store.create_tool(&tool).await.unwrap().0.updated_at });
        }
    }
    let mut times = writers.join_all().await;
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), 40, "no two updates are equal");
    assert_eq!(other.catalog_generation().await.unwrap(), start + 40);
    assert_ne!(other.data_version().await.unwrap(), before);
    let mine = bench.store.visible_tools(&bench.owner, None).await.unwrap();
    assert_eq!(mine, other.visible_tools(&bench.owner, None).await.unwrap());
}

#[tokio::test]
async fn only_one_of_two_racing_versions_is_saved() {
    let bench = Bench::new().await;
    let (tool, _) = bench.store.create_tool(&bench.tool("a")).await.unwrap();
    let other = Store::open(bench.dir.path(), bench.clock.clone()).await.unwrap();
    let (one, two) = (bench.version("one", true), bench.version("two", true));
    let saved = tokio::join!(bench.store.add_version(&tool.id, 1, &one), other.add_version(&tool.id, 1, &two));
    assert!(saved.0.is_ok() != saved.1.is_ok());
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_paged() {
    let bench = Bench::new().await;
    for (action, subject) in
        [("tool.create", "a"), ("tool.update", "a"), ("toolset.create", "a"), ("token.revoke", "b")]
    {
        let entry = AuditEntry {
            principal: Some(bench.owner.clone()),
            action: action.to_owned(),
            subject: subject.to_owned(),
            detail: serde_json::json!({"n": 1}),
            outcome: "ok".to_owned(),
            ..AuditEntry::default()
        };
        assert_eq!(bench.store.append_audit(&entry).await.unwrap().entry, entry);
    }
    let list = async |filter: AuditFilter| bench.store.list_audit(&filter, 10).await.unwrap();
    let all = list(AuditFilter::default()).await;
    assert_eq!(all.len(), 4);
    assert_eq!(all[0].entry.action, "token.revoke");
    let tools = list(AuditFilter { action: Some("tool".to_owned()), ..AuditFilter::default() }).await;
    assert_eq!(tools.iter().map(|row| row.entry.action.as_str()).collect::<Vec<_>>(), ["tool.update", "tool.create"]);
    assert_eq!(list(AuditFilter { subject: Some("b".to_owned()), ..AuditFilter::default() }).await, all[..1]);
    assert_eq!(list(AuditFilter { before: Some(all[1].id.clone()), ..AuditFilter::default() }).await, all[2..]);
}

#[tokio::test]
async fn instances_come_and_go() {
    let bench = Bench::new().await;
    let instance = Instance {
        id: "i".to_owned(),
        pid: 42,
        host: "linux".to_owned(),
        lock_file: "i.lock".to_owned(),
        started_at: NOW,
    };
    bench.store.register_instance(&instance).await.unwrap();
    assert!(bench.store.register_instance(&instance).await.is_err());
    assert_eq!(bench.store.list_instances().await.unwrap(), [instance]);
    assert!(bench.store.remove_instance("i").await.unwrap());
    assert!(!bench.store.remove_instance("i").await.unwrap());
}
