//! The run history: rows are seen at once, survive, and are kept as long as they should.

use std::time::Duration;

use omniforge::model::{Ending, Limit, NetworkUse, PrincipalId, RunRow, Unreached};
use omniforge::store::{RunFilter, RunState, Store};

use super::{Bench, absent_run};

fn ended(bench: &Bench, run: RunRow, ending: Ending) -> RunRow {
    RunRow {
        started_at: Some(bench.clock.now()),
        ended_at: Some(bench.clock.now()),
        is_error: ending != Ending::Ok,
        ending: Some(ending),
        result: Some(r#"{"content":[]}"#.to_owned()),
        stdout: "out\u{0}é".to_owned(),
        stderr: "err".to_owned(),
        log: "{}".to_owned(),
        cpu_ms: 7,
        peak_memory_bytes: 1 << 40,
        network: Some(NetworkUse {
            connections: 2,
            sent_bytes: 3,
            received_bytes: 4,
            notice: None,
            unreached: vec![Unreached {
                host: "a.example".to_owned(),
                port: Some(443),
                udp: false,
                refused: true,
                reason: "not granted".to_owned(),
            }],
        }),
        ..run
    }
}

#[tokio::test]
async fn a_run_is_seen_at_once_and_survives() {
    let bench = Bench::new().await;
    let run = bench.run("add");
    bench.store.start_run(run.clone()).unwrap();
    assert_eq!(bench.store.get_run(run.id).await.unwrap().as_ref(), Some(&run));
    assert_eq!(bench.store.list_runs(&RunFilter::default(), 10).await.unwrap().len(), 1);
    let done = ended(&bench, run, Ending::Exit(-1));
    bench.store.finish_run(done.clone());
    assert_eq!(bench.store.get_run(done.id).await.unwrap().as_ref(), Some(&done));
    bench.store.close().await.unwrap();

    let again = Store::open(bench.dir.path(), bench.clock.clone()).await.unwrap();
    assert_eq!(again.get_run(done.id).await.unwrap(), Some(done));
    assert_eq!(again.get_run(absent_run()).await.unwrap(), None);
}

#[tokio::test]
async fn a_run_reaches_other_processes_without_a_flush() {
    let bench = Bench::new().await;
    let other = Store::open(bench.dir.path(), bench.clock.clone()).await.unwrap();
    let run = bench.run("add");
    bench.store.start_run(run.clone()).unwrap();
    let seen = async {
        while other.get_run(run.id).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), seen).await.unwrap();
}

#[tokio::test]
async fn every_ending_is_read_as_it_was_written() {
    let bench = Bench::new().await;
    let endings = [
        Ending::Ok,
        Ending::Error,
        Ending::Exit(3),
        Ending::Signal(9),
        Ending::Timeout,
        Ending::Cancelled,
        Ending::Limit(Limit::Memory),
        Ending::Interrupted,
    ];
    let rows: Vec<_> = endings.into_iter().map(|ending| ended(&bench, bench.run("add"), ending)).collect();
    for row in &rows {
        bench.store.start_run(row.clone()).unwrap();
    }
    bench.store.flush_runs().await.unwrap();
    for row in rows {
        assert_eq!(bench.store.get_run(row.id).await.unwrap(), Some(row));
    }
}

#[tokio::test]
async fn lists_are_filtered_the_same_before_and_after_the_flush() {
    let bench = Bench::new().await;
    let guest = PrincipalId("guest".to_owned());
    let mut ids = vec![];
    for number in 0..8 {
        let mut run = bench.run(if number % 2 == 0 { "even" } else { "odd" });
        if number >= 6 {
            run.principal = guest.clone();
        }
        ids.push(run.id);
        bench.store.start_run(run.clone()).unwrap();
        if number == 4 {
            bench.store.flush_runs().await.unwrap(); // so that some rows are on disk, and older there than in memory
        }
        if number < 4 {
            bench.store.finish_run(ended(&bench, run, if number < 2 { Ending::Ok } else { Ending::Timeout }));
        }
    }
    let all = RunFilter::default;
    for _ in 0..2 {
        let list = async |filter: RunFilter, limit| {
            let runs = bench.store.list_runs(&filter, limit).await.unwrap();
            runs.iter().map(|run| ids.iter().position(|id| *id == run.id).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(list(all(), 3).await, [7, 6, 5]);
        assert_eq!(list(RunFilter { before: Some(ids[5]), ..all() }, 3).await, [4, 3, 2]);
        assert_eq!(list(RunFilter { principal: Some(guest.clone()), ..all() }, 9).await, [7, 6]);
        assert_eq!(list(RunFilter { tool_name: Some("odd".to_owned()), ..all() }, 9).await, [7, 5, 3, 1]);
        let both = RunFilter { tool_name: Some("odd".to_owned()), principal: Some(guest.clone()), ..all() };
        assert_eq!(list(both, 9).await, [7]);
        assert_eq!(list(RunFilter { state: Some(RunState::Running), ..all() }, 9).await, [7, 6, 5, 4]);
        assert_eq!(list(RunFilter { state: Some(RunState::Ended("timeout")), ..all() }, 9).await, [3, 2]);
        let running = RunFilter { state: Some(RunState::Running), tool_name: Some("even".to_owned()), ..all() };
        assert_eq!(list(running, 9).await, [6, 4]);
        bench.store.flush_runs().await.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_tool_keeps_its_runs() {
    let bench = Bench::new().await;
    let (tool, _) = bench.store.create_tool(&bench.tool("add")).await.unwrap();
    let run = RunRow { tool: Some(tool.id.clone()), ..bench.run("add") };
    bench.store.start_run(run.clone()).unwrap();
    bench.store.flush_runs().await.unwrap();
    bench.store.delete_tool(&tool.id).await.unwrap();
    assert_eq!(bench.store.get_run(run.id).await.unwrap(), Some(run));
}

#[tokio::test]
async fn only_the_unended_runs_of_dead_instances_are_interrupted() {
    let bench = Bench::new().await;
    let (dead, done) = (bench.run("add"), ended(&bench, bench.run("add"), Ending::Ok));
    let alive = RunRow { instance: "instance-2".to_owned(), ..bench.run("add") };
    for run in [&dead, &done, &alive] {
        bench.store.start_run(run.clone()).unwrap();
    }
    bench.store.flush_runs().await.unwrap();
    let interrupted = bench.store.interrupt_runs(&["instance-1".to_owned(), "\"]".to_owned()]).await.unwrap();
    assert_eq!(interrupted.iter().map(|run| run.id).collect::<Vec<_>>(), [dead.id]);
    let row = bench.store.get_run(dead.id).await.unwrap().unwrap();
    assert_eq!((row.ending, row.ended_at), (Some(Ending::Interrupted), Some(bench.clock.now())));
    assert_eq!(bench.store.get_run(done.id).await.unwrap(), Some(done));
    assert_eq!(bench.store.get_run(alive.id).await.unwrap(), Some(alive));
}

#[tokio::test]
async fn old_results_and_rows_are_forgotten() {
    let bench = Bench::new().await;
    let mut ids = vec![];
    for _ in 0..5 {
        let run = ended(&bench, bench.run("add"), Ending::Ok);
        ids.push(run.id);
        bench.store.start_run(run).unwrap();
        bench.clock.advance(Duration::from_secs(60));
    }
    let running = bench.run("add");
    bench.store.start_run(running.clone()).unwrap();
    bench.store.flush_runs().await.unwrap();

    let long_ago = bench.clock.earlier(Duration::from_secs(150));
    assert_eq!(bench.store.forget_results_ended_before(long_ago).await.unwrap(), 3);
    assert_eq!(bench.store.get_run(ids[2]).await.unwrap().unwrap().result, None);
    assert!(bench.store.get_run(ids[3]).await.unwrap().unwrap().result.is_some());
    let longer_ago = bench.clock.earlier(Duration::from_secs(270));
    assert_eq!(bench.store.delete_runs_ended_before(longer_ago).await.unwrap(), 1);
    assert_eq!(bench.store.delete_runs_beyond(3).await.unwrap(), 2);
    let left = bench.store.list_runs(&RunFilter::default(), 10).await.unwrap();
    assert_eq!(left.iter().map(|run| run.id).collect::<Vec<_>>(), [running.id, ids[4], ids[3]]);
    assert_eq!(bench.store.delete_runs_beyond(0).await.unwrap(), 2, "a run that has not ended stays");
}

#[tokio::test]
async fn too_many_waiting_rows_refuse_a_new_run_but_lose_none() {
    let bench = Bench::new().await;
    let mut blocker = bench.raw().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut blocker).await.unwrap();
    let mut taken = 0;
    while bench.store.start_run(bench.run("add")).is_ok() {
        taken += 1;
    }
    let last = bench.run("last");
    bench.store.finish_run(last.clone());
    sqlx::query("ROLLBACK").execute(&mut blocker).await.unwrap();
    bench.store.flush_runs().await.unwrap();
    bench.store.start_run(bench.run("add")).unwrap();
    assert_eq!(bench.store.get_run(last.id).await.unwrap(), Some(last));
    let runs = bench.store.list_runs(&RunFilter::default(), 10_000).await.unwrap();
    assert_eq!(runs.len(), taken + 2);
}
