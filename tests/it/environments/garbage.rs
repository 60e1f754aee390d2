//! What is removed, and what is not.

use omniforge::model::EnvironmentLock;
use omniforge::runner::environment::EnvironmentState;

use super::{age, entries, lock, open, until};

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_what_nobody_uses() {
    let dir = tempfile::tempdir().unwrap();
    let environments = open(dir.path(), |_| {}).await;
    let mut locks = Vec::new();
    for text in ["six==1.14.0", "six==1.15.0", "six==1.16.0", "six==1.17.0"] {
        let lock = lock(&environments, &[text]).await;
        age(&environments.ready(&lock).await.unwrap(), 40);
        locks.push(lock);
    }
    let [held, wanted, unused, recent] = locks.try_into().unwrap();
    let root = dir.path().join("environments");
    // In use by a run of another process, though no version has it any more.
    let (held_path, _held) = open(dir.path(), |_| {}).await.hold(&held, |_| {}).await.unwrap();
    age(&held_path, 40);
    // Each use is noted.
    environments.ready(&recent).await.unwrap();
    // Locked with the interpreter of another day; needed is the environment that a call would use today.
    let needed = [EnvironmentLock { hash: "0".repeat(64), ..wanted.clone() }];
    let collected = environments.collect_garbage(&needed).await.unwrap();
    assert_eq!(collected.removed, [unused.hash.as_str()]);
    assert!(collected.bytes > 0 && !collected.cache_emptied);
    assert_eq!(environments.state(&unused), EnvironmentState::Missing);
    assert!(!root.join("locks").join(&unused.hash).exists());
    for lock in [&held, &wanted, &recent] {
        assert_eq!(environments.state(lock), EnvironmentState::Ready);
    }
    // Over the limit for all, even what versions want goes, but never what runs use or used just now.
    let tight = open(dir.path(), |options| options.max_bytes_all = 1).await;
    let collected = tight.collect_garbage(&needed).await.unwrap();
    assert_eq!((collected.removed, collected.cache_emptied), (vec![wanted.hash.clone()], true));
    assert_eq!(environments.state(&held), EnvironmentState::Ready);
    assert_eq!(environments.state(&recent), EnvironmentState::Ready);
    environments.ready(&wanted).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_clears_away_what_another_process_builds() {
    let dir = tempfile::tempdir().unwrap();
    let (builder, other) =
        (open(dir.path(), |_| {}).await, open(dir.path(), |options| options.max_bytes_all = 1).await);
    let lock = lock(&builder, &["pygments==2.19.2"]).await;
    let build = tokio::spawn(async move { builder.ready(&lock).await });
    until(|| !entries(&dir.path().join("environments/work/builds")).is_empty()).await;
    assert_eq!(other.collect_garbage(&[]).await.unwrap().leftovers, 0);
    assert!(build.await.unwrap().unwrap().join("pygments").is_dir());
}
