//! Resources: saved, listed, read, changed, in both eras.

use serde_json::{Value, json};

use crate::server::Server;

/// Saves something that must be accepted; the reply's text.
async fn save(server: &Server, tool: &str, arguments: Value) -> String {
    let (text, is_error) = server.call(tool, arguments).await;
    assert!(!is_error, "{text}");
    text
}

#[tokio::test]
async fn a_static_text_is_read_in_both_eras() {
    let server = Server::start(&[]);
    let saved = save(
        &server,
        "omniforge_save_resource",
        json!({"uri": "test://static-text", "description": "A text", "text": "é, as it was saved\n"}),
    )
    .await;
    assert_eq!(saved, "Created resource `test://static-text`, version 1.\nClients read it as `test://static-text`.");
    let part = json!({"uri": "test://static-text", "mimeType": "text/plain", "text": "é, as it was saved\n"});
    let listed = json!({"uri": "test://static-text", "name": "static-text", "description": "A text",
        "mimeType": "text/plain", "size": 20});

    let legacy = server.rpc("resources/read", json!({"uri": "test://static-text"})).await;
    assert_eq!(legacy["result"], json!({"contents": [part]}));
    assert_eq!(server.rpc("resources/list", json!({})).await["result"], json!({"resources": [listed]}));

    let modern = server.modern("resources/read", json!({"uri": "test://static-text"})).await["result"].clone();
    assert_eq!((&modern["contents"], &modern["resultType"]), (&json!([part]), &json!("complete")), "{modern}");
    assert_eq!((&modern["ttlMs"], &modern["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(modern["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "omniforge-mcp");
    let modern = server.modern("resources/list", json!({})).await["result"].clone();
    assert_eq!((&modern["resources"], &modern["cacheScope"]), (&json!([listed]), &json!("private")));
}

#[tokio::test]
async fn what_is_not_there_is_told_in_the_words_of_the_era() {
    let server = Server::start(&[]);
    let uri = json!({"uri": "test://nonexistent"});
    let legacy = server.rpc("resources/read", uri.clone()).await["error"].clone();
    assert_eq!((&legacy["code"], &legacy["data"]), (&json!(-32002), &uri), "{legacy}");
    let modern = server.modern("resources/read", uri.clone()).await["error"].clone();
    assert_eq!((&modern["code"], &modern["data"]), (&json!(-32602), &uri), "{modern}");
    let bad = server.rpc("resources/read", json!({"uri": 1})).await["error"].clone();
    assert_eq!(bad["code"], -32602, "{bad}");
}
