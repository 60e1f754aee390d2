//! Which locks tools need, and which versions wait to serve.

use omniforge::model::{EnvironmentLock, ToolId};
use omniforge::store::{NewTool, NewVersion, Serving, StoreError};

use super::Bench;

fn lock(name: &str) -> EnvironmentLock {
    EnvironmentLock { hash: format!("hash of {name}"), lock: format!("{name}==1 \\\n    --hash=sha256:00\n") }
}

fn with_lock(version: NewVersion, name: &str) -> NewVersion {
    let mut version = version;
    version.definition.lock = Some(lock(name));
    version
}

#[tokio::test]
async fn needed_are_the_locks_of_serving_and_latest_versions_alone() {
    let bench = Bench::new().await;
    let store = &bench.store;
    let tool = |name: &str, lock: &str| {
        let new = bench.tool(name);
        NewTool { version: with_lock(new.version.clone(), lock), ..new }
    };
    let (changed, _) = store.create_tool(&tool("changed", "old")).await.unwrap();
    store.add_version(&changed.id, 1, &with_lock(bench.version("update", true), "serving")).await.unwrap();
    store.add_version(&changed.id, 2, &with_lock(bench.version("update", false), "latest")).await.unwrap();
    store.create_tool(&tool("same", "serving")).await.unwrap();
    store.create_tool(&bench.tool("without")).await.unwrap();
    let (deleted, _) = store.create_tool(&tool("deleted", "deleted")).await.unwrap();
    store.delete_tool(&deleted.id).await.unwrap();
    let mut needed = store.needed_locks().await.unwrap();
    needed.sort_by(|a, b| a.hash.cmp(&b.hash));
    assert_eq!(needed, [lock("latest"), lock("serving")]);
}

#[tokio::test]
async fn latest_versions_come_at_once_by_tool() {
    let bench = Bench::new().await;
    let (a, _) = bench.store.create_tool(&bench.tool("a")).await.unwrap();
    let (b, first) = bench.store.create_tool(&bench.tool("b")).await.unwrap();
    bench.store.create_tool(&bench.tool("unasked")).await.unwrap();
    let (_, second) = bench.store.add_version(&a.id, 1, &bench.version("update", false)).await.unwrap();
    let asked = [a.id.clone(), b.id.clone(), ToolId("absent".to_owned())];
    let found = bench.store.latest_versions(&asked).await.unwrap();
    assert_eq!(found, [(a.id, second), (b.id, first)].into());
    assert!(bench.store.latest_versions(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_version_serves_once_its_environment_is_installed() {
    let bench = Bench::new().await;
    let store = &bench.store;
    let installing =
        |name: &str| NewVersion { serving: Serving::OnceInstalled, ..with_lock(bench.version(name, false), name) };
    let (tool, _) = store.create_tool(&bench.tool("tool")).await.unwrap();
    let (waiting, version) = store.add_version(&tool.id, 1, &installing("update")).await.unwrap();
    assert_eq!((waiting.serving_version, waiting.updated_at), (Some(1), tool.updated_at));
    // One that needs approval changes nothing about it.
    store.add_version(&tool.id, 2, &with_lock(bench.version("reach", false), "reach")).await.unwrap();
    assert_eq!(store.installing_versions().await.unwrap(), [version]);
    assert_eq!(store.needed_locks().await.unwrap().len(), 2);
    let generation = store.catalog_generation().await.unwrap();
    for (tool, number) in [(&tool.id, 1), (&tool.id, 3), (&ToolId("absent".to_owned()), 2)] {
        assert!(!store.serve_installed(tool, number).await.unwrap());
    }
    assert_eq!(store.catalog_generation().await.unwrap(), generation);
    assert!(store.serve_installed(&tool.id, 2).await.unwrap());
    let served = store.get_tool(&tool.id).await.unwrap().unwrap();
    assert!(served.serving_version == Some(2) && served.updated_at > tool.updated_at);
    assert!(store.catalog_generation().await.unwrap() > generation);
    assert!(!store.serve_installed(&tool.id, 2).await.unwrap());
    assert_eq!(store.get_tool(&tool.id).await.unwrap().unwrap(), served, "it serves already");
    assert_eq!(store.installing_versions().await.unwrap(), []);
}

#[tokio::test]
async fn a_version_that_was_overtaken_will_not_serve() {
    let bench = Bench::new().await;
    let store = &bench.store;
    let (tool, _) = store.create_tool(&bench.tool("tool")).await.unwrap();
    let (id, installing) = (&tool.id, NewVersion { serving: Serving::OnceInstalled, ..bench.version("update", false) });
    store.add_version(id, 1, &installing).await.unwrap();
    store.add_version(id, 2, &installing).await.unwrap();
    assert!(!store.serve_installed(id, 2).await.unwrap(), "a newer one is being installed");
    store.add_version(id, 3, &bench.version("update", true)).await.unwrap();
    assert!(!store.serve_installed(id, 3).await.unwrap(), "a newer one serves");
    let conflict = store.serve_once_installed(id, 3).await.unwrap_err();
    assert!(matches!(conflict, StoreError::VersionConflict { expected: 3, latest: 4 }));
    for serving in [4, 1] {
        store.serve_once_installed(id, 4).await.unwrap();
        store.set_serving(id, Some(serving)).await.unwrap();
        assert!(!store.serve_installed(id, 4).await.unwrap(), "somebody chose another");
    }
    store.serve_once_installed(id, 4).await.unwrap();
    assert!(store.serve_installed(id, 4).await.unwrap());
}
