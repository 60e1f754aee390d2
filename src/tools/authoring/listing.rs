//! What `tools/list` shows besides name, description and schemas: annotations, icons and `_meta`, as MCP defines them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::FieldError;
use super::draft::{clean, wrong};

/// The most bytes of `meta` and of `icons`.
const EXTRA_BYTES: usize = 64 << 10;
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// Checks the hints and cleans the title.
///
/// # Errors
/// [`FieldError`] names the member and those that are known.
pub fn check_annotations(annotations: &mut Map<String, Value>) -> Result<(), FieldError> {
    for (key, value) in annotations {
        match value {
            Value::String(title) if key == "title" && title.chars().count() <= 200 => *title = clean(title),
            Value::Bool(_) if HINTS.contains(&key.as_str()) => {}
            _ => {
                let known = format!("title (a text of at most 200 characters), {} (true or false)", HINTS.join(", "));
                return wrong("annotations", format!("`{key}`: {value} is not usable; known are {known}"));
            }
        }
    }
    Ok(())
}

/// Checks icons.
/// Source: <https://modelcontextprotocol.io/specification/2025-11-25/schema#icon>.
///
/// # Errors
/// [`FieldError`] names the place.
pub fn check_icons(icons: &[Value]) -> Result<(), FieldError> {
    for (index, icon) in icons.iter().enumerate() {
        let Some(icon) = icon.as_object() else {
            return wrong("icons", format!("/{index} must be an object with `src`"));
        };
        let source = icon.get("src").and_then(Value::as_str).unwrap_or_default();
        if let Err(problem) = check_source(source) {
            return wrong("icons", format!("/{index}/src {problem}"));
        }
        for (key, value) in icon {
            let problem = match key.as_str() {
                "src" => None,
                "mimeType" => (!value.as_str().is_some_and(is_image)).then_some("a text such as \"image/png\""),
                "sizes" => (!value.as_array().is_some_and(|sizes| sizes.iter().all(is_size)))
                    .then_some("a list such as [\"48x48\"] or [\"any\"]"),
                "theme" => (value != "light" && value != "dark").then_some("\"light\" or \"dark\""),
                _ => {
                    return wrong("icons", format!("/{index}/{key} is unknown; known are src, mimeType, sizes, theme"));
                }
            };
            if let Some(right) = problem {
                return wrong("icons", format!("/{index}/{key} must be {right}"));
            }
        }
    }
    if Value::from(icons).to_string().len() > EXTRA_BYTES {
        return wrong("icons", format!("they are more than {EXTRA_BYTES} bytes"));
    }
    Ok(())
}

fn check_source(source: &str) -> Result<(), &'static str> {
    const RIGHT: &str = "must be an https: URL or a `data:image/…;base64,…` URI";
    if let Some(rest) = source.strip_prefix("data:") {
        let (kind, data) = rest.split_once(";base64,").ok_or(RIGHT)?;
        if !kind.split(';').next().is_some_and(is_image) {
            return Err(RIGHT);
        }
        return STANDARD.decode(data).map(drop).map_err(|_| "holds no base64 after `;base64,`");
    }
    let uri: http::Uri = source.parse().map_err(|_| RIGHT)?;
    let is_https = uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty());
    if is_https { Ok(()) } else { Err(RIGHT) }
}

fn is_image(kind: &str) -> bool {
    let subtype = kind.strip_prefix("image/").unwrap_or_default();
    !subtype.is_empty() && subtype.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-'))
}

fn is_size(size: &Value) -> bool {
    let number = |text: &str| !text.is_empty() && text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
    size.as_str().is_some_and(|size| {
        size == "any" || size.split_once('x').is_some_and(|(width, height)| number(width) && number(height))
    })
}

/// Checks the keys of `_meta`.
/// Source: <https://modelcontextprotocol.io/specification/2026-07-28/basic#meta>.
///
/// # Errors
/// [`FieldError`] names the key.
pub fn check_meta(meta: &Map<String, Value>) -> Result<(), FieldError> {
    for key in meta.keys() {
        let (prefix, name) = key.rsplit_once('/').map_or((None, key.as_str()), |(prefix, name)| (Some(prefix), name));
        if let Some(prefix) = prefix {
            check_prefix(key, prefix)?;
        }
        let ends = |c: char| c.is_ascii_alphanumeric();
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let empty_is_fine = name.is_empty() && prefix.is_some();
        let well_formed = name.starts_with(ends) && name.ends_with(ends) && name.chars().all(inside);
        if !(empty_is_fine || well_formed) {
            let rule = "a name begins and ends with a letter or digit, with letters, digits, `-`, `_` and `.` between";
            return wrong("meta", format!("the key `{key}` has no valid name: {rule}"));
        }
    }
    if serde_json::to_string(meta).map_or(0, |text| text.len()) > EXTRA_BYTES {
        return wrong("meta", format!("it is more than {EXTRA_BYTES} bytes"));
    }
    Ok(())
}

fn check_prefix(key: &str, prefix: &str) -> Result<(), FieldError> {
    let labels: Vec<&str> = prefix.split('.').collect();
    let valid = |label: &&str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if !labels.iter().all(valid) {
        let rule = "labels parted by dots, each a letter, then letters, digits and `-`, as in `com.example/key`";
        return wrong("meta", format!("the key `{key}` has no valid prefix: a prefix is {rule}"));
    }
    // Since 2025-11-25 the second label counts; before, every one but the last did.
    let is_ours = |label: &&str| ["modelcontextprotocol", "mcp"].contains(&label.to_ascii_lowercase().as_str());
    let reserved = labels.get(1).is_some_and(is_ours) || labels[..labels.len() - 1].iter().any(is_ours);
    if reserved || prefix == "omniforge" {
        return wrong(
            "meta",
            format!("the key `{key}` is reserved; use a prefix of your own, as in `com.example/key`"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn hints_are_booleans_and_the_title_is_a_clean_text() {
        let mut good = of(&json!({"title": " A\u{202e}b ", "readOnlyHint": true, "openWorldHint": false}));
        check_annotations(&mut good).unwrap();
        assert_eq!(good["title"], "Ab");
        for bad in [
            json!({"title": 1}),
            json!({"readOnlyHint": "yes"}),
            json!({"colour": true}),
            json!({"title": "x".repeat(201)}),
        ] {
            let text = check_annotations(&mut of(&bad)).unwrap_err().to_string();
            assert!(text.contains("readOnlyHint") && text.contains("true or false"), "{text}");
        }
    }

    #[test]
    fn icons_are_images_of_a_known_shape() {
        let source = "data:image/png;base64,iVBORw0KGgo=";
        check_icons(&[
            json!({"src": source, "mimeType": "image/png", "sizes": ["48x48", "any"], "theme": "dark"}),
            json!({"src": "https://example.org/icon.svg"}),
            json!({"src": "data:image/svg+xml;charset=utf-8;base64,PHN2Zy8+"}),
        ])
        .unwrap();
        for (icon, words) in [
            (json!("x"), "/0 must be an object"),
            (json!({}), "/0/src"),
            (json!({"src": 1}), "/0/src"),
            (json!({"src": "http://example.org/a.png"}), "/0/src"),
            (json!({"src": "https:///a.png"}), "/0/src"),
            (json!({"src": "javascript:alert(1)"}), "/0/src"),
            (json!({"src": "data:text/html;base64,PHNjcmlwdD4="}), "/0/src"),
            (json!({"src": "data:image/svg+xml,<svg/>"}), ";base64,"),
            (json!({"src": "data:image/png;base64,§"}), "no base64"),
            (json!({"src": source, "mimeType": "png"}), "/0/mimeType"),
            (json!({"src": source, "sizes": "48x48"}), "/0/sizes"),
            (json!({"src": source, "sizes": ["48"]}), "/0/sizes"),
            (json!({"src": source, "theme": "blue"}), "/0/theme"),
            (json!({"src": source, "size": "any"}), "known are src"),
        ] {
            let text = check_icons(std::slice::from_ref(&icon)).unwrap_err().to_string();
            assert!(text.contains(words), "{icon}: {text}");
        }
        assert!(check_icons(&[json!({"src": format!("https://example.org/{}", "a".repeat(60_000))})]).is_ok());
        assert!(check_icons(&vec![json!({"src": "https://example.org/a.png"}); 2000]).is_err());
    }

    #[test]
    fn keys_of_meta_follow_the_rules_and_are_not_reserved() {
        for key in ["a", "a.b-c_d", "com.example/key", "com.example/", "example/a", "com.example.mcp/a", "mcp/a", "9"] {
            assert_eq!(check_meta(&of(&json!({key: 1}))), Ok(()), "{key}");
        }
        for key in ["", "-a", "a-", "a b", "é", "a/b/c", "/a", "9a/b", "a-/b", "a..b/c", "a_b/c"] {
            let text = check_meta(&of(&json!({key: 1}))).unwrap_err().to_string();
            assert!(text.contains("no valid"), "{text}");
        }
        for key in [
            "io.modelcontextprotocol/x",
            "dev.mcp/x",
            "modelcontextprotocol.io/x",
            "api.MCP.org/x",
            "com.mcp.tools/x",
            "omniforge/tags",
        ] {
            let text = check_meta(&of(&json!({key: 1}))).unwrap_err().to_string();
            assert!(text.contains("reserved"), "{text}");
        }
        assert!(check_meta(&of(&json!({"a": "x".repeat(EXTRA_BYTES)}))).is_err());
    }
}
