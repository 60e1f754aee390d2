//! What is kept of old runs: their rows for long, their results for a day.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;

use crate::server::Server;

async fn database(data_dir: &Path) -> sqlx::SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(data_dir.join("omniforge.db")).connect().await.unwrap()
}

/// Waits until the end of the run, which the server has told of already, is in the file.
async fn written(data_dir: &Path, tool: &str) {
    let mut database = database(data_dir).await;
    let statement = "SELECT count(*) FROM runs WHERE tool_name = $1 AND ended_at IS NOT NULL";
    while sqlx::query_scalar::<_, i64>(statement).bind(tool).fetch_one(&mut database).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Makes all runs that many hours older.
async fn age(data_dir: &Path, hours: u32) {
    let mut database = database(data_dir).await;
    let statement =
        "UPDATE runs SET queued_at = queued_at - $1, started_at = started_at - $1, ended_at = ended_at - $1";
    sqlx::query(statement).bind(i64::from(hours) * 3_600_000).execute(&mut database).await.unwrap();
}

async fn structured(server: &Server, tool: &str, arguments: Value) -> Value {
    server.rpc("tools/call", json!({"name": tool, "arguments": arguments})).await["result"]["structuredContent"].clone()
}

/// The run's row, once the upkeep of a start has left that of it.
async fn run_when(server: &Server, id: &str, is_as_wanted: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let run = structured(server, "omniforge_get_run", json!({"run_id": id})).await;
            if is_as_wanted(&run) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking).await.expect("the upkeep at the start left it as it was")
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_forgotten_before_their_runs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    server.create(json!({"name": "later", "code": "def main():\n    return {'n': 7}\n", "mode": "async"})).await;
    let id = structured(&server, "later", json!({})).await["job_id"].as_str().unwrap().to_owned();
    let job = json!({"job_id": id.clone()});
    let kept = run_when(&server, &id, |run| run["status"] != "running").await;
    assert_eq!(structured(&server, "get_job_result", job.clone()).await["result"], json!({"n": 7}), "{kept}");
    written(dir.path(), "later").await;
    drop(server);

    age(dir.path(), 23).await;
    let server = Server::start_on(dir.path(), &["--result-keep-hours", "48"]);
    assert_eq!(structured(&server, "get_job_result", job.clone()).await["result"], json!({"n": 7}));
    drop(server);

    age(dir.path(), 2).await;
    let server = Server::start_on(dir.path(), &[]);
    let run = run_when(&server, &id, |run| run["result"].is_null()).await;
    assert_eq!((&run["status"], &run["tool"]), (&json!("ok"), &json!("later")), "{run}");
    let gone = json!({"status": "error", "error": "the result is not kept any more"});
    assert_eq!(structured(&server, "get_job_result", job.clone()).await, gone);
    drop(server);

    age(dir.path(), 30 * 24).await;
    let server = Server::start_on(dir.path(), &[]);
    run_when(&server, &id, Value::is_null).await;
}
