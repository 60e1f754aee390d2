//! The outputs of runs that did not fit into their answers, read as resources.

use serde_json::{Value, json};

use super::{read, refused};
use crate::server::Server;

#[tokio::test]
async fn a_cut_output_is_read_whole_in_pieces() {
    let server = Server::start(&[]);
    // 5 MiB of characters of three bytes: no piece of 4 MiB ends between two of them.
    let code = "import sys\nprint('€' * (5 << 20) + 'end')\nprint('short', file=sys.stderr)\n";
    server.create(json!({"name": "long", "code": code})).await;
    let (text, is_error) = server.call("long", json!({})).await;
    let mark = text.lines().find(|line| line.starts_with("[truncated: 15728644 bytes, run ")).unwrap();
    assert!(!is_error);
    let run = mark.trim_end_matches(']').rsplit(' ').next().unwrap();
    let (shown, _) = server.call("omniforge_get_run", json!({"run_id": run})).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let uri = format!("omniforge://runs/{run}/stdout");
    assert_eq!(shown["whole_outputs"], json!({"stdout": uri}));

    let (mut whole, mut next) = (String::new(), Some(uri.clone()));
    while let Some(uri) = next {
        let part = read(&server, &uri).await[0].clone();
        assert_eq!((&part["uri"], &part["_meta"]["omniforge/total_bytes"]), (&json!(uri), &json!(15_728_644)));
        whole.push_str(part["text"].as_str().unwrap_or_else(|| panic!("no text in {uri}")));
        next = part["_meta"]["omniforge/next"].as_str().map(str::to_owned);
    }
    assert_eq!(whole.len(), 15_728_644);
    assert!(whole.trim_start_matches('€') == "end\n");
    // What fitted inline is read there, too.
    assert_eq!(read(&server, &format!("omniforge://runs/{run}/stderr")).await[0]["text"], "short\n");
    for bad in [format!("{uri}?offset=x"), format!("{uri}x"), uri.replace(run, "00000000-0000-0000-0000-000000000000")]
    {
        assert_eq!(refused(&server, "resources/read", json!({"uri": bad})).await.0, -32002, "{bad}");
    }
}

#[tokio::test]
async fn it_outlives_the_process_that_ran_it() {
    let dir = tempfile::tempdir().unwrap();
    let (text, _) = {
        let server = Server::start_on(dir.path(), &[]);
        server.create(json!({"name": "long", "code": "print('x' * (2 << 20))"})).await;
        server.call("long", json!({})).await
    };
    let run = text.trim_end_matches(']').rsplit(' ').next().unwrap();
    let server = Server::start_on(dir.path(), &[]);
    let part = read(&server, &format!("omniforge://runs/{run}/stdout")).await[0].clone();
    assert_eq!(part["text"].as_str().unwrap().len(), (2 << 20) + 1);
}
