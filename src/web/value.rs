//! Values as they are: JSON in colours, lists of objects as tables, texts, images; never as HTML.

use serde_json::Value;

use super::text::{Markup, count, cut};

/// The most characters of a text that a page shows.
const SHOWN: usize = 60_000;
/// The most rows and columns of a table.
const TABLE: (usize, usize) = (200, 12);
/// The kinds of images that a page shows; `img` runs no script.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"];

/// JSON in colours, indented; its end is cut off when it is very long.
pub(super) fn json(value: &Value) -> Markup {
    let mut html = Markup::default();
    let mut left = SHOWN;
    write(&mut html, value, 0, &mut left);
    if left == 0 {
        html.raw("\n… (cut: it is too long for this page)");
    }
    html
}

/// JSON text in colours; as it stands where it is no JSON.
pub(super) fn json_text(text: &str) -> Markup {
    match serde_json::from_str(text) {
        Ok(value) => json(&value),
        Err(_) => {
            let mut html = Markup::default();
            html.text(&cut(text, SHOWN));
            html
        }
    }
}

fn token(html: &mut Markup, class: &str, text: &str, left: &mut usize) {
    *left = left.saturating_sub(text.len());
    html.raw("<span class=\"").raw(class).raw("\">").text(&cut(text, SHOWN)).raw("</span>");
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn write(html: &mut Markup, value: &Value, depth: usize, left: &mut usize) {
    if *left == 0 {
        return;
    }
    let line = |html: &mut Markup, depth: usize| {
        html.raw("\n").raw(&"  ".repeat(depth.min(40)));
    };
    match value {
        Value::String(text) => token(html, "s", &quoted(text), left),
        Value::Null | Value::Bool(_) | Value::Number(_) => token(html, "n", &value.to_string(), left),
        Value::Array(items) if items.is_empty() => drop(html.raw("[]")),
        Value::Object(members) if members.is_empty() => drop(html.raw("{}")),
        Value::Array(items) => {
            html.raw("[");
            for (index, item) in items.iter().enumerate().take_while(|_| *left > 0).collect::<Vec<_>>() {
                html.raw(if index == 0 { "" } else { "," });
                line(html, depth + 1);
                write(html, item, depth + 1, left);
            }
            line(html, depth);
            html.raw("]");
        }
        Value::Object(members) => {
            html.raw("{");
            for (index, (name, member)) in members.iter().enumerate() {
                if *left == 0 {
                    break;
                }
                html.raw(if index == 0 { "" } else { "," });
                line(html, depth + 1);
                token(html, "d", &quoted(name), left);
                html.raw(": ");
                write(html, member, depth + 1, left);
            }
            line(html, depth);
            html.raw("}");
        }
    }
}

/// A framed text.
pub(super) fn text_box(label: &str, text: &str) -> Markup {
    let mut html = Markup::default();
    html.raw("<pre class=\"json framed wrap-lines\" tabindex=\"0\"").attribute("aria-label", label).raw("><bdi>");
    html.text(&cut(text, SHOWN)).raw("</bdi></pre>");
    html
}

fn json_box(label: &str, value: &Value) -> Markup {
    let mut html = Markup::default();
    html.raw("<pre class=\"json framed wrap-lines\" tabindex=\"0\"").attribute("aria-label", label).raw(">");
    html.push(&json(value)).raw("</pre>");
    html
}

/// The list of objects that a value is, or holds as its only member.
fn rows(value: &Value) -> Option<&Vec<Value>> {
    let list = match value {
        Value::Array(items) => items,
        Value::Object(members) if members.len() == 1 => members.values().next()?.as_array()?,
        _ => return None,
    };
    (!list.is_empty() && list.iter().all(Value::is_object)).then_some(list)
}

fn table(list: &[Value]) -> Option<Markup> {
    let mut columns: Vec<&String> = Vec::new();
    for name in list.iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    if columns.is_empty() || columns.len() > TABLE.1 {
        return None;
    }
    let mut html = Markup::default();
    html.raw(
        "<div class=\"scroll-x\" tabindex=\"0\" role=\"region\" aria-label=\"Result\"><table class=\"table bare\">",
    );
    html.raw(&format!("<caption class=\"vh\">Result: {} rows</caption><thead><tr>", list.len()));
    for name in &columns {
        let numbers =
            list.iter().all(|row| row.get(name.as_str()).is_none_or(|value| value.is_number() || value.is_null()));
        html.raw(if numbers { "<th scope=\"col\" class=\"r\"><bdi>" } else { "<th scope=\"col\"><bdi>" })
            .text(name)
            .raw("</bdi></th>");
    }
    html.raw("</tr></thead><tbody>");
    for row in list.iter().take(TABLE.0) {
        html.raw("<tr>");
        for name in &columns {
            let (class, text) = match row.get(name.as_str()) {
                None | Some(Value::Null) => ("dim", "–".to_owned()),
                Some(Value::String(text)) => ("", cut(text, 400)),
                Some(value @ Value::Number(_)) => ("r", value.to_string()),
                Some(other) => ("mono", cut(&other.to_string(), 400)),
            };
            html.raw(&format!("<td class=\"{class}\"><bdi>")).text(&text).raw("</bdi></td>");
        }
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
    if list.len() > TABLE.0 {
        html.raw("<p class=\"tiny dim\">The first ").shown(TABLE.0).raw(" of ").shown(list.len()).raw(" rows.</p>");
    }
    Some(html)
}

/// A call's result (MCP's `CallToolResult`) as what it is.
pub(super) fn result(stored: &str) -> Markup {
    let mut html = Markup::default();
    let Ok(result) = serde_json::from_str::<Value>(stored) else { return text_box("Result", stored) };
    let structured = result.get("structuredContent");
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(value) = structured {
        match rows(value).and_then(|list| table(list)) {
            Some(table) => drop(html.push(&table)),
            None => drop(html.push(&json_box("Result", value))),
        }
    }
    for block in blocks {
        let text = block["text"].as_str();
        match block["type"].as_str().unwrap_or_default() {
            // The text beside a structured value repeats it.
            "text" if structured.is_some() && text.is_some_and(|text| text.starts_with(['{', '['])) => {}
            "text" => html_of_text(&mut html, text.unwrap_or_default()),
            "image" => image(&mut html, block),
            "audio" => bytes(&mut html, "Sound", block),
            "resource_link" => drop(html.push(&text_box("Link", block["uri"].as_str().unwrap_or_default()))),
            _ => drop(html.push(&json_box("Block", block))),
        }
    }
    if html.is_empty() {
        html.raw("<p class=\"soft\">(no output)</p>");
    }
    if structured.is_some() {
        html.raw("<details class=\"fold\"><summary>As JSON, as the client gets it</summary>");
        html.push(&json_box("Result as JSON", &result)).raw("</details>");
    }
    html
}

fn html_of_text(html: &mut Markup, text: &str) {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.is_object() || value.is_array() => match rows(&value).and_then(|list| table(list)) {
            Some(table) => drop(html.push(&table)),
            None => drop(html.push(&json_box("Result", &value))),
        },
        _ => drop(html.push(&text_box("Result", text))),
    }
}

fn image(html: &mut Markup, block: &Value) {
    let (kind, data) = (block["mimeType"].as_str().unwrap_or_default(), block["data"].as_str().unwrap_or_default());
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    if !IMAGES.contains(&kind) || !is_base64 {
        return bytes(html, "Image", block);
    }
    html.raw("<p><img class=\"shown\" alt=\"The image that the tool made\"");
    html.attribute("src", &format!("data:{kind};base64,{data}")).raw("></p>");
}

fn bytes(html: &mut Markup, what: &str, block: &Value) {
    let size = block["data"].as_str().map_or(0, |data| data.len() / 4 * 3);
    html.raw("<p class=\"small\">")
        .text(what)
        .raw(" (<bdi>")
        .text(block["mimeType"].as_str().unwrap_or("unknown kind"));
    html.raw("</bdi>), about ").shown(count(i64::try_from(size).unwrap_or(0))).raw(" bytes.</p>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_as_what_they_are() {
        let table =
            result(r#"{"content":[{"type":"text","text":"[]"}],"structuredContent":{"rows":[{"a":1,"b":"<x>"}]}}"#);
        assert!(
            table.to_string().contains("<td class=\"r\"><bdi>1</bdi></td><td class=\"\"><bdi>&lt;x&gt;</bdi></td>"),
            "{table}"
        );
        let text = result(r#"{"content":[{"type":"text","text":"<script>"}]}"#).to_string();
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
        let image =
            result(r#"{"content":[{"type":"image","mimeType":"image/png","data":"iVBO\" onload=\"x"}]}"#).to_string();
        assert!(!image.contains("<img"), "{image}");
        let long = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(1 << 20));
        assert!(result(&long).to_string().len() < 70_000);
    }
}
