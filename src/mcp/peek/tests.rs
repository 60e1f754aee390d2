//! Looks into messages, well-formed and not.

use super::*;

fn code(body: &str) -> Option<i32> {
    let fault = match read(body.as_bytes()) {
        Ok(Body::One(Message::Request(request))) => request.fault,
        Ok(_) => None,
        Err(refused) => Some(refused),
    };
    fault.map(|refusal| refusal.code)
}

#[test]
fn what_is_malformed_gets_the_code_of_its_fault() {
    for (body, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"#, Some(-32700)),
        ("42", Some(-32600)),
        (r#"{"id":1,"method":"ping"}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":null}}"#, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":1}}"#, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#, Some(-32602)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":[{}]}}"#, Some(-32602)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[1]}}}"#,
            Some(-32602),
        ),
        (r#"{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":"","method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1e999}}}"#, None),
    ] {
        assert_eq!(code(body), expected, "{body}");
    }
}

#[test]
fn a_refusal_carries_the_id_where_it_could_be_read() {
    let refusal = read(br#"{"id":"a","method":"ping"}"#).err().unwrap();
    assert_eq!(refusal.id.unwrap().get(), "\"a\"");
}

#[test]
fn arguments_are_left_as_they_were_written() {
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u0061","arguments":{"n":123456789012345678901234567890}}}"#;
    let Ok(Body::One(Message::Request(request))) = read(body) else { panic!("not a request") };
    assert_eq!(request.name().as_deref(), Some("a"));
    assert_eq!(request.params.arguments.unwrap().get(), r#"{"n":123456789012345678901234567890}"#);
}

#[test]
fn a_filter_that_names_tasks_is_marked_for_whoever_can_read_it() {
    let body = Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["a"]}}}"#,
    );
    let Ok(Body::One(Message::Request(request))) = read(&body) else { panic!("not a request") };
    let (forwarded, _) = request.for_the_protocol_layer(&body);
    let expected =
        r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":[{"taskIds":["a"]}]}}"#;
    assert_eq!(forwarded, expected);
}
