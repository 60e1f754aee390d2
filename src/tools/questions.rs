//! What a script may ask the client for, and what the client may answer.

use serde_json::{Map, Value, json};

use url::Url;

use super::schema;
use crate::model::{ClientFacts, Network};

/// Words in a form's fields that ask for what must not be typed into a form.
const SECRET_WORDS: [&str; 9] =
    ["password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "access_key", "private_key"];

/// Why a request can't be put to the client.
#[derive(Debug, PartialEq)]
pub enum Unaskable {
    /// The client lacks a capability, in the shape of `ClientCapabilities`.
    Missing {
        /// What it would have to declare.
        required: Value,
        /// In words.
        text: String,
    },
    /// The request is wrong.
    Wrong(String),
}

/// Who asks, and whom.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What the run may reach: only pages there may be shown.
    pub network: &'a Network,
    /// The client.
    pub client: &'a ClientFacts,
}

/// Checks one request of a script, and names the tool in it.
///
/// # Errors
/// [`Unaskable`].
pub fn prepare(request: &mut Value, asker: Asker<'_>) -> Result<(), Unaskable> {
    let Asker { tool, network, client } = asker;
    let wrong = |text: &str| Unaskable::Wrong(text.to_owned());
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let params = request.get_mut("params").and_then(Value::as_object_mut);
    let params = params.ok_or_else(|| wrong("a request needs `params`, an object"))?;
    let has = |pointer: &str| client.capabilities.pointer(pointer).is_some_and(|value| !value.is_null());
    match method.as_str() {
        "elicitation/create" => prepare_elicitation(params, tool, network, &has),
        "sampling/createMessage" => {
            let tools = params.contains_key("tools");
            if !has("/sampling") || (tools && !has("/sampling/tools")) {
                let required = if tools { json!({"sampling": {"tools": {}}}) } else { json!({"sampling": {}}) };
                return Err(missing(required, tool, "sampling (it must let tools ask its model)"));
            }
            check_messages(params)
        }
        "roots/list" if has("/roots") => Ok(()),
        "roots/list" => Err(missing(json!({"roots": {}}), tool, "roots")),
        other => Err(Unaskable::Wrong(format!(
            "`{other}` can't be asked; use elicitation/create, sampling/createMessage or roots/list"
        ))),
    }
}

fn missing(required: Value, tool: &str, what: &str) -> Unaskable {
    Unaskable::Missing { required, text: format!("`{tool}` needs a client with {what}; this one did not declare it") }
}

fn prepare_elicitation(
    params: &mut Map<String, Value>,
    tool: &str,
    network: &Network,
    has: &dyn Fn(&str) -> bool,
) -> Result<(), Unaskable> {
    let wrong = |text: String| Err(Unaskable::Wrong(text));
    let Some(message) = params.get("message").and_then(Value::as_str).filter(|message| !message.trim().is_empty())
    else {
        return wrong("an elicitation needs a `message`, a text that says what is wanted".to_owned());
    };
    let asks = wants_secret(message);
    let message = format!("{message}\n(asked by the tool {tool})");
    let url = params.get("mode").and_then(Value::as_str) == Some("url");
    // `elicitation: {}` means forms alone.
    let able = if url {
        has("/elicitation/url")
    } else {
        has("/elicitation") && (has("/elicitation/form") || !has("/elicitation/url"))
    };
    if !able {
        let required = if url { json!({"elicitation": {"url": {}}}) } else { json!({"elicitation": {}}) };
        return Err(missing(required, tool, if url { "URL elicitation" } else { "elicitation (forms)" }));
    }
    params.insert("message".to_owned(), message.into());
    if url {
        let shown = check_url(params.get("url").and_then(Value::as_str).unwrap_or_default(), network);
        params.insert("url".to_owned(), shown.map_err(Unaskable::Wrong)?.into());
        params.insert("elicitationId".to_owned(), uuid::Uuid::now_v7().to_string().into());
        return Ok(());
    }
    let schema = params.get("requestedSchema").cloned().unwrap_or_default();
    check_form(&schema, asks).map_err(Unaskable::Wrong)
}

/// A page that a person may be sent to, in its normal form. A script could lead people anywhere, so that the host must be
/// one that the tool was granted.
fn check_url(url: &str, network: &Network) -> Result<String, String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{url}` is no URL: {error}; write https://host/path"))?;
    let host = parsed.host_str().unwrap_or_default();
    let port = parsed.port_or_known_default().unwrap_or_default();
    if !matches!(parsed.scheme(), "https" | "http") {
        return Err(format!("a page that is shown has an http(s) URL, not `{}:`", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("a URL that is shown must not hold a name or a password".to_owned());
    }
    if !network.covers(host, port) {
        return Err(format!(
            "a page can only be shown when its host is in the tool's approved `network` grant; `{host}:{port}` is not in it"
        ));
    }
    Ok(parsed.into())
}

/// Whether these words ask for something that must not be typed into a form.
fn wants_secret(text: &str) -> bool {
    let text = text.to_lowercase().replace([' ', '-'], "_");
    SECRET_WORDS.iter().any(|word| text.contains(word))
}

fn secret_refused(what: &str) -> String {
    format!(
        "{what} asks for a secret: passwords, tokens and keys must not be typed into a form; let the tool use a granted \
         secret"
    )
}

/// A form: a flat object of primitives, enumerations and lists of enumerations. Where its message asks for a secret, no
/// text may be typed into it.
/// Source: the specification's `ElicitRequestFormParams`.
fn check_form(schema: &Value, message_asks: bool) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let (Some("object"), Some(properties)) = (schema.get("type").and_then(Value::as_str), properties) else {
        return Err("an elicitation's schema must be an object schema with `properties`".to_owned());
    };
    for (name, property) in properties {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        let flat = match kind {
            "string" | "number" | "integer" | "boolean" => true,
            "array" => {
                property.get("items").is_some_and(|items| items.get("enum").is_some() || items.get("anyOf").is_some())
            }
            _ => false,
        };
        if !flat {
            return Err(format!(
                "the field `{name}` of an elicitation must be a string, number, integer, boolean or a list of choices"
            ));
        }
        let said = |key: &str| property.get(key).and_then(Value::as_str).unwrap_or_default();
        let asks = wants_secret(name) || wants_secret(said("title")) || wants_secret(said("description"));
        // What is chosen from a list was not typed.
        let typed = kind == "string" && property.get("enum").is_none() && property.get("oneOf").is_none();
        if typed && (asks || said("format") == "password") {
            return Err(secret_refused(&format!("the field `{name}`")));
        }
        if typed && message_asks {
            return Err(secret_refused("the message"));
        }
    }
    schema::compile("requestedSchema", schema).map(drop).map_err(|error| error.to_string())
}

fn check_messages(params: &Map<String, Value>) -> Result<(), Unaskable> {
    let wrong = |text: &str| Err(Unaskable::Wrong(text.to_owned()));
    let messages = params.get("messages").and_then(Value::as_array).filter(|messages| !messages.is_empty());
    let Some(messages) = messages else { return wrong("a sampling needs `messages`, a list of at least one") };
    let fine = |message: &Value| {
        matches!(message.get("role").and_then(Value::as_str), Some("user" | "assistant"))
            && message.get("content").is_some_and(|content| content.is_object() || content.is_array())
    };
    if !messages.iter().all(fine) {
        return wrong(
            "each message of a sampling is {role: user | assistant, content: a content block or a list of them}",
        );
    }
    if !params.get("maxTokens").and_then(Value::as_u64).is_some_and(|count| (1..=u64::from(u32::MAX)).contains(&count))
    {
        return wrong("`maxTokens` of a sampling must be a whole number from 1");
    }
    Ok(())
}

/// Checks a client's answer against what was asked.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_answer(request: &Value, answer: &Value) -> Result<(), String> {
    let Some(object) = answer.as_object() else {
        return Err("an answer is the result object of its request".to_owned());
    };
    match request.get("method").and_then(Value::as_str).unwrap_or_default() {
        "elicitation/create" => check_elicited(request, object),
        "sampling/createMessage" => {
            let content = object.get("content").is_some_and(|content| content.is_object() || content.is_array());
            let role = object.get("role").is_some_and(Value::is_string);
            if content && role {
                Ok(())
            } else {
                Err("an answer to a sampling has `role`, `content` and `model`".to_owned())
            }
        }
        _ => {
            let roots = object.get("roots").and_then(Value::as_array);
            let fine =
                roots.is_some_and(|roots| roots.iter().all(|root| root.get("uri").is_some_and(Value::is_string)));
            if fine { Ok(()) } else { Err("an answer to roots/list has `roots`, a list of {uri, name?}".to_owned()) }
        }
    }
}

fn check_elicited(request: &Value, answer: &Map<String, Value>) -> Result<(), String> {
    match answer.get("action").and_then(Value::as_str) {
        Some("decline" | "cancel") => return Ok(()),
        Some("accept") => {}
        _ => return Err("an answer to an elicitation has `action`: accept, decline or cancel".to_owned()),
    }
    let Some(schema) = request.pointer("/params/requestedSchema") else { return Ok(()) };
    let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
    let validator = schema::compile("requestedSchema", schema).map_err(|error| error.to_string())?;
    match schema::problems(&validator, &content) {
        None => Ok(()),
        Some(problems) => {
            Err(format!("`content` does not fit the form:{}", problems.replace("the arguments", "the content")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &mut Value, network: &[&str], capabilities: Value) -> Result<(), Unaskable> {
        let client = ClientFacts { capabilities, ..ClientFacts::default() };
        let network = Network::parse(network).unwrap();
        prepare(request, Asker { tool: "greet", network: &network, client: &client })
    }

    fn form(properties: Value) -> Value {
        json!({"method": "elicitation/create",
            "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}}})
    }

    fn refused(mut request: Value, capabilities: Value) -> Unaskable {
        ask(&mut request, &[], capabilities).unwrap_err()
    }

    #[test]
    fn a_form_names_its_tool_and_stays_as_it_was() {
        let fields = json!({"who": {"type": "string", "enum": ["a"], "enumNames": ["A"]}, "age": {"type": "integer"},
            "many": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}});
        let mut request = form(fields.clone());
        ask(&mut request, &[], json!({"elicitation": {}})).unwrap();
        assert_eq!(request["params"]["message"], "Who?\n(asked by the tool greet)");
        assert_eq!(request["params"]["requestedSchema"]["properties"], fields);
    }

    #[test]
    fn a_page_is_shown_where_the_tool_may_go_alone() {
        let shown = |url: &str| {
            let params = json!({"mode": "url", "message": "Sign in", "url": url});
            let mut request = json!({"method": "elicitation/create", "params": params});
            let network = ["id.example.org", "xn--bcher-kva.example.org:8443"];
            ask(&mut request, &network, json!({"elicitation": {"url": {}}})).map(|()| request["params"].clone())
        };
        let params = shown("https://id.example.org/sign?in=1").unwrap();
        assert_eq!((&params["url"], &params["mode"]), (&json!("https://id.example.org/sign?in=1"), &json!("url")));
        assert!(params["elicitationId"].as_str().is_some_and(|id| !id.is_empty()));
        assert_eq!(
            shown("https://B\u{fc}cher.example.org:8443").unwrap()["url"],
            "https://xn--bcher-kva.example.org:8443/"
        );
        for (url, expected) in [
            ("https://evil.example.org/", "`evil.example.org:443` is not in it"),
            ("https://id.example.org:8443/", "`id.example.org:8443` is not in it"),
            ("https://id.example.org@evil.example.org/", "name or a password"),
            ("javascript://id.example.org/%0Aalert(1)", "not `javascript:`"),
            ("id.example.org", "is no URL"),
            ("", "is no URL"),
        ] {
            let Unaskable::Wrong(text) = shown(url).unwrap_err() else { panic!("{url}") };
            assert!(text.contains(expected), "{url}: {text}");
        }
    }

    #[test]
    fn what_the_client_lacks_is_named_in_its_shape() {
        let required = |request, capabilities| match refused(request, capabilities) {
            Unaskable::Missing { required, .. } => required,
            Unaskable::Wrong(text) => panic!("{text}"),
        };
        let sampling = json!({"method": "sampling/createMessage", "params": {"messages": []}});
        assert_eq!(required(sampling, json!({})), json!({"sampling": {}}));
        assert_eq!(required(form(json!({})), json!({"sampling": {}})), json!({"elicitation": {}}));
        assert_eq!(required(form(json!({})), json!({"elicitation": {"url": {}}})), json!({"elicitation": {}}));
        assert_eq!(required(json!({"method": "roots/list", "params": {}}), json!({})), json!({"roots": {}}));
    }

    #[test]
    fn a_form_can_ask_neither_for_secrets_nor_for_nested_values() {
        for (fields, expected) in [
            (json!({"api_key": {"type": "string"}}), "asks for a secret"),
            (json!({"value": {"type": "string", "title": "Your password"}}), "asks for a secret"),
            (json!({"inner": {"type": "object"}}), "must be a string"),
            (json!({"list": {"type": "array", "items": {"type": "string"}}}), "must be a string"),
        ] {
            let Unaskable::Wrong(text) = refused(form(fields), json!({"elicitation": {}})) else { panic!() };
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn answers_are_held_against_what_was_asked() {
        let request = form(json!({"age": {"type": "integer"}}));
        let check = |answer| check_answer(&request, &answer);
        assert_eq!(check(json!({"action": "accept", "content": {"age": 3}})), Ok(()));
        assert_eq!(check(json!({"action": "decline"})), Ok(()));
        assert!(check(json!({"action": "accept", "content": {"age": "x"}})).unwrap_err().contains("/age"));
        assert!(check(json!(12345)).is_err() && check(json!({})).is_err() && check(json!(null)).is_err());
        let roots = json!({"method": "roots/list", "params": {}});
        assert_eq!(check_answer(&roots, &json!({"roots": [{"uri": "file:///a"}]})), Ok(()));
        assert!(check_answer(&roots, &json!({"roots": [1]})).is_err());
    }
}
