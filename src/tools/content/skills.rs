//! Skills: what their names, paths and types may be.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::frontmatter;

/// What a path keeps as it is in a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/');

/// Types by the end of a file's name.
const TYPES: [(&str, &str); 26] = [
    ("md", "text/markdown"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("css", "text/css"),
    ("py", "text/x-python"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    ("ts", "application/typescript"),
    ("sh", "application/x-sh"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("xml", "application/xml"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
];

/// A path as its URI writes it.
pub fn encoded(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// The type of a file of this path with these bytes.
pub fn mime_type(path: &str, bytes: &[u8]) -> String {
    let end = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end.to_ascii_lowercase());
    let known = end.and_then(|end| TYPES.iter().find(|(known, _)| *known == end));
    let default = if std::str::from_utf8(bytes).is_ok() { "text/plain" } else { "application/octet-stream" };
    known.map_or(default, |(_, mime_type)| mime_type).to_owned()
}

/// Reads a `SKILL.md`: its front matter, and the name and description in it.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn read(markdown: &str) -> Result<(Map<String, Value>, String, String), String> {
    let frontmatter = frontmatter::read(markdown).map_err(|error| error.to_string())?;
    let text = |key: &str| match frontmatter.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) | None => Err(format!("its front matter has no `{key}`")),
        Some(other) => Err(format!("its front matter's `{key}` is {other}; it must be a text (put it in quotes)")),
    };
    let (name, description) = (text("name")?, text("description")?);
    if !is_name(&name) {
        let right = "1 to 64 lower-case letters, digits and single hyphens between them";
        return Err(format!("its front matter's name `{name}` must be {right}"));
    }
    if description.chars().count() > 1_024 {
        return Err("its front matter's description is longer than 1024 characters".to_owned());
    }
    let metadata = frontmatter.get("metadata").and_then(Value::as_object);
    let reserved =
        metadata.and_then(|metadata| metadata.keys().find(|key| key.starts_with("io.modelcontextprotocol/")));
    match reserved {
        Some(key) => Err(format!("its front matter's metadata has the reserved key `{key}`")),
        None => Ok((frontmatter, name, description)),
    }
}

fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    letters && (1..=64).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-') && !name.contains("--")
}

/// Checks the path of a file beside `SKILL.md`.
///
/// # Errors
/// What is wrong with it.
pub fn check_path(path: &str) -> Result<(), String> {
    let refuse = |problem: &str| Err(format!("`{path}` {problem}"));
    if path == "SKILL.md" {
        return refuse("is the document itself; give its text as `markdown`");
    }
    if path.is_empty() || path.len() > 512 {
        return refuse("must be 1 to 512 bytes");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return refuse("holds a backslash or a control character");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("must be a path inside the skill, such as scripts/check.py");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_skill_says_what_is_wrong() {
        let skill = |front: &str| read(&format!("---\n{front}\n---\n# Body\n"));
        let (frontmatter, name, description) = skill("name: git-review\ndescription: Reviews.\nlicense: MIT").unwrap();
        assert_eq!((name.as_str(), description.as_str(), frontmatter.len()), ("git-review", "Reviews.", 3));
        for (front, expected) in [
            ("name: a", "no `description`"),
            ("description: a", "no `name`"),
            ("name: 1\ndescription: a", "must be a text"),
            ("name: Git\ndescription: a", "lower-case"),
            ("name: a--b\ndescription: a", "lower-case"),
            ("name: -a\ndescription: a", "lower-case"),
            ("name: a\ndescription: '  '", "no `description`"),
            ("name: a\ndescription: b\nmetadata: {io.modelcontextprotocol/x: 1}", "reserved"),
        ] {
            let error = skill(front).unwrap_err();
            assert!(error.contains(expected), "{front}: {error}");
        }
        assert!(skill(&format!("name: a\ndescription: {}", "x".repeat(1_025))).is_err());
    }

    #[test]
    fn paths_stay_inside_and_are_encoded() {
        for path in ["a.md", "scripts/a b.py", "é/ü.txt", "..a"] {
            assert_eq!(check_path(path), Ok(()));
        }
        for path in ["", "/a", "a/", "a//b", "../a", "a/./b", "a\\b", "a\nb", "SKILL.md"] {
            assert!(check_path(path).is_err(), "{path:?}");
        }
        assert_eq!(encoded("scripts/a b#é.py"), "scripts/a%20b%23%C3%A9.py");
        assert_eq!(mime_type("x/A.MD", b""), "text/markdown");
        assert_eq!(mime_type("x.d/a", b"\xff"), "application/octet-stream");
    }
}
