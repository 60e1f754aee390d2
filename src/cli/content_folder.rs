//! The folders of resources, prompts and skills.

use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::folder::{folder_name, table, take_code, take_file, text};

/// How deep a skill's folders go.
const DEPTH: usize = 8;

/// The arguments of `omniforge_save_resource`: with the bytes of `file`, or with the code.
pub(super) fn resource(dir: &Path) -> anyhow::Result<Map<String, Value>> {
    let manifest = dir.join("resource.toml");
    let mut resource = table(&manifest)?;
    let code = take_code(&mut resource, dir, &manifest)?;
    if let Some(file) = take_file(&mut resource, "file", &manifest)? {
        let (key, value) = bytes(&dir.join(file))?;
        resource.insert(key.to_owned(), value);
    }
    if !["text", "blob", "code"].iter().any(|key| resource.contains_key(*key)) {
        let path = code.filter(|path| path.is_file()).with_context(|| {
            format!("{}: give `text` or `file`, or put the code beside it (main.py, main.js, …)", manifest.display())
        })?;
        resource.insert("code".to_owned(), text(&path)?.into());
    }
    completion_code(&mut resource, dir, &manifest)?;
    Ok(resource)
}

/// The arguments of `omniforge_save_prompt`: with a template, or with the code.
pub(super) fn prompt(dir: &Path) -> anyhow::Result<Map<String, Value>> {
    let manifest = dir.join("prompt.toml");
    let mut prompt = table(&manifest)?;
    let code = take_code(&mut prompt, dir, &manifest)?;
    if let Some(file) = take_file(&mut prompt, "template_file", &manifest)? {
        prompt.insert("template".to_owned(), text(&dir.join(file))?.into());
    }
    if !["template", "messages", "code"].iter().any(|key| prompt.contains_key(*key)) {
        let path = code.filter(|path| path.is_file()).with_context(|| {
            let expected =
                "give `template`, `template_file` or `messages`, or put the code beside it (main.py, main.js, …)";
            format!("{}: {expected}", manifest.display())
        })?;
        prompt.insert("code".to_owned(), text(&path)?.into());
    }
    if !prompt.contains_key("name") {
        prompt.insert("name".to_owned(), folder_name(dir).into());
    }
    completion_code(&mut prompt, dir, &manifest)?;
    Ok(prompt)
}

fn completion_code(table: &mut Map<String, Value>, dir: &Path, manifest: &Path) -> anyhow::Result<()> {
    if let Some(file) = take_file(table, "completion_code_file", manifest)? {
        table.insert("completion_code".to_owned(), text(&dir.join(file))?.into());
    }
    Ok(())
}

/// The arguments of `omniforge_save_skill`: `SKILL.md` and every file beside and below it.
pub(super) fn skill(dir: &Path) -> anyhow::Result<Map<String, Value>> {
    let manifest = dir.join("skill.toml");
    let mut skill = if manifest.is_file() { table(&manifest)? } else { Map::new() };
    skill.insert("markdown".to_owned(), text(&dir.join("SKILL.md"))?.into());
    let mut files = Vec::new();
    collect(dir, "", 0, &mut files)?;
    if !files.is_empty() {
        skill.insert("files".to_owned(), files.into());
    }
    Ok(skill)
}

/// The files of a folder, in order; hidden ones and links are left out.
fn collect(dir: &Path, prefix: &str, depth: usize, files: &mut Vec<Value>) -> anyhow::Result<()> {
    if depth > DEPTH {
        bail!("{} is more than {DEPTH} folders deep in its skill", dir.display());
    }
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    for path in paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            bail!("the name of {} is not UTF-8", path.display());
        };
        let own = depth == 0 && ["SKILL.md", "skill.toml"].contains(&name);
        if own || name.starts_with('.') || path.is_symlink() {
            continue;
        }
        let inside = format!("{prefix}{name}");
        if path.is_dir() {
            collect(&path, &format!("{inside}/"), depth + 1, files)?;
        } else {
            let (key, value) = bytes(&path)?;
            files.push(json!({"path": inside, key: value}));
        }
    }
    Ok(())
}

/// A file's contents as the argument that takes them: `text` where they are that, else `blob`.
fn bytes(path: &Path) -> anyhow::Result<(&'static str, Value)> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => ("text", text.into()),
        Err(error) => ("blob", STANDARD.encode(error.as_bytes()).into()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::folder::{Kind, find, read};
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        dir
    }

    fn arguments(files: &[(&str, &[u8])]) -> (Kind, Value) {
        let dir = folder(files);
        assert_eq!(find(dir.path()).unwrap(), [dir.path()]);
        let read = read(dir.path()).unwrap();
        (read.kind, read.arguments.into())
    }

    #[test]
    fn a_resource_is_a_file_a_text_or_code() {
        let toml = |more: &str| format!("uri = \"a://b\"\n{more}").into_bytes();
        for (more, file, bytes, expected) in [
            ("file = \"x.png\"", "x.png", &b"\xff"[..], json!({"uri": "a://b", "blob": "/w=="})),
            ("file = \"x.txt\"", "x.txt", b"hi", json!({"uri": "a://b", "text": "hi"})),
            ("text = \"t\"", "main.py", b"ignored", json!({"uri": "a://b", "text": "t"})),
            ("", "main.py", b"code", json!({"uri": "a://b", "code": "code"})),
            ("code_file = \"m.py\"", "m.py", b"code", json!({"uri": "a://b", "code": "code"})),
        ] {
            let found = arguments(&[("resource.toml", &toml(more)), (file, bytes)]);
            assert_eq!(found, (Kind::Resource, expected), "{more}");
        }
        let nothing = folder(&[("resource.toml", &toml(""))]);
        assert!(read(nothing.path()).unwrap_err().to_string().contains("main.py"));
    }

    #[test]
    fn a_prompt_is_a_template_messages_or_code() {
        let found = arguments(&[
            ("prompt.toml", b"name = \"p\"\ntemplate_file = \"t.md\"\ncompletion_code_file = \"c.py\""),
            ("t.md", b"Hi {a}"),
            ("c.py", b"x"),
        ]);
        assert_eq!(found, (Kind::Prompt, json!({"name": "p", "template": "Hi {a}", "completion_code": "x"})));
        let (_, found) = arguments(&[("prompt.toml", b"name = \"p\""), ("main.py", b"code")]);
        assert_eq!(found, json!({"name": "p", "code": "code"}));
    }

    #[test]
    fn a_skill_is_its_document_and_every_file_below() {
        let found = arguments(&[
            ("SKILL.md", b"---\nname: s\n---\n"),
            ("skill.toml", b"tags = [\"x\"]"),
            ("scripts/a.py", b"1"),
            ("tool.md", b"2"),
            (".git/config", b"3"),
        ]);
        let files = json!([{"path": "scripts/a.py", "text": "1"}, {"path": "tool.md", "text": "2"}]);
        let expected = json!({"tags": ["x"], "markdown": "---\nname: s\n---\n", "files": files});
        assert_eq!(found, (Kind::Skill, expected));
    }
}
