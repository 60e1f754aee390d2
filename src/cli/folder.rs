//! Folders that are pushed: a manifest that says what it is, and its files. Format: `docs/tool-folders.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::content_folder;

/// What a folder is, by the file that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `tool.toml`.
    Tool,
    /// `resource.toml`.
    Resource,
    /// `prompt.toml`.
    Prompt,
    /// `SKILL.md`, perhaps with a `skill.toml`.
    Skill,
}

impl Kind {
    /// Every kind; of two in one folder the first holds.
    const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::Prompt, Self::Skill];

    /// The file whose presence makes a folder one of this kind.
    fn file(self) -> &'static str {
        match self {
            Self::Tool => MANIFEST,
            Self::Resource => "resource.toml",
            Self::Prompt => "prompt.toml",
            Self::Skill => "SKILL.md",
        }
    }

    /// The built-in tool that saves it.
    pub fn saved_by(self) -> &'static str {
        match self {
            Self::Tool => "omniforge_create_tool",
            Self::Resource => "omniforge_save_resource",
            Self::Prompt => "omniforge_save_prompt",
            Self::Skill => "omniforge_save_skill",
        }
    }

    fn of(dir: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| dir.join(kind.file()).is_file())
    }
}

/// What a folder saves.
#[derive(Debug)]
pub struct Folder {
    /// What it is.
    pub kind: Kind,
    /// Its name, for messages.
    pub name: String,
    /// The arguments of the built-in tool that saves it.
    pub arguments: Map<String, Value>,
}

/// A tool's manifest.
const MANIFEST: &str = "tool.toml";
/// How deep folders are searched.
const DEPTH: usize = 8;
/// The file of the code, by language, where the manifest names none.
const CODE_FILES: [(&str, &str); 4] =
    [("python", "main.py"), ("javascript", "main.js"), ("typescript", "main.ts"), ("bash", "main.sh")];

/// The folders with a manifest in this one and below it, in order of their paths.
///
/// # Errors
/// When there is none, or a folder can't be read.
pub fn find(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    search(dir, 0, &mut found)?;
    if found.is_empty() {
        let files = Kind::ALL.map(Kind::file).join("`, `");
        bail!("there is none of `{files}` in {} or below it", dir.display());
    }
    found.sort();
    Ok(found)
}

fn search(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if Kind::of(dir).is_some() {
        found.push(dir.to_owned());
        return Ok(());
    }
    if depth == DEPTH {
        return Ok(());
    }
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", dir.display()))?.path();
        if path.is_dir() && !path.is_symlink() {
            search(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// What a folder stands for.
///
/// # Errors
/// Which file, which key, and what would be right.
pub fn read(dir: &Path) -> anyhow::Result<Folder> {
    let kind = Kind::of(dir).with_context(|| format!("{} is no folder of ours", dir.display()))?;
    let mut arguments = match kind {
        Kind::Tool => tool(dir)?,
        Kind::Resource => content_folder::resource(dir)?,
        Kind::Prompt => content_folder::prompt(dir)?,
        Kind::Skill => content_folder::skill(dir)?,
    };
    if kind == Kind::Tool {
        arguments.insert("replace".to_owned(), Value::Bool(true));
    }
    let named = arguments.get("name").or(arguments.get("uri")).and_then(Value::as_str);
    let name = named.map_or_else(|| folder_name(dir), str::to_owned);
    Ok(Folder { kind, name, arguments })
}

/// The folder's own name.
pub(super) fn folder_name(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The table in a manifest.
pub(super) fn table(manifest: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = text(manifest)?;
    toml::from_str(&text).with_context(|| format!("{} is wrong", manifest.display()))
}

pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn tool(dir: &Path) -> anyhow::Result<Map<String, Value>> {
    let manifest = dir.join(MANIFEST);
    let mut tool = table(&manifest)?;
    for (key, file_key) in [("input_schema", "input_schema_file"), ("output_schema", "output_schema_file")] {
        if let Some(file) = take_file(&mut tool, file_key, &manifest)? {
            let path = dir.join(file);
            let schema =
                serde_json::from_str(&text(&path)?).with_context(|| format!("{} is no JSON", path.display()))?;
            tool.insert(key.to_owned(), schema);
        }
    }
    if !tool.contains_key("name") {
        tool.insert("name".to_owned(), folder_name(dir).into());
    }
    let code = take_code(&mut tool, dir, &manifest)?;
    if !tool.contains_key("code") {
        let language = tool.get("language").cloned().unwrap_or_default();
        let path = code.with_context(|| format!("{}: `language = {language}` is unknown", manifest.display()))?;
        let code =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read the code {}", path.display()))?;
        tool.insert("code".to_owned(), Value::from(code));
    }
    Ok(tool)
}

/// The file of the code: the one that the manifest names, else the one that the language is known by.
pub(super) fn take_code(
    table: &mut Map<String, Value>,
    dir: &Path,
    manifest: &Path,
) -> anyhow::Result<Option<PathBuf>> {
    let language = table.get("language").and_then(Value::as_str).unwrap_or("python");
    let default = CODE_FILES.iter().find(|(name, _)| *name == language).map(|(_, file)| (*file).to_owned());
    let file = take_file(table, "code_file", manifest)?.or(default);
    Ok(file.map(|file| dir.join(file)))
}

/// The file that a key names.
pub(super) fn take_file(table: &mut Map<String, Value>, key: &str, manifest: &Path) -> anyhow::Result<Option<String>> {
    match table.shift_remove(key) {
        None => Ok(None),
        Some(Value::String(file)) if Path::new(&file).components().all(is_inside) => Ok(Some(file)),
        Some(other) => bail!("{}: `{key} = {other}` must be a file inside its folder", manifest.display()),
    }
}

fn is_inside(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::Normal(_) | std::path::Component::CurDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(manifest: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(MANIFEST), manifest).unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn a_folder_is_the_arguments_of_create() {
        let dir = folder(
            "name = \"t\"\nlanguage = \"bash\"\ninput_schema_file = \"s.json\"\n",
            &[("main.sh", "echo hi"), ("s.json", "{\"type\": \"object\"}")],
        );
        let tool = read(dir.path()).unwrap().arguments;
        assert_eq!(
            Value::Object(tool),
            serde_json::json!({"name": "t", "language": "bash", "input_schema": {"type": "object"}, "code": "echo hi",
                "replace": true})
        );
        assert_eq!(find(dir.path()).unwrap(), [dir.path()]);
    }

    #[test]
    fn a_wrong_folder_says_which_file_and_key() {
        let outside = folder("code_file = \"../x.py\"\n", &[]);
        assert!(read(outside.path()).unwrap_err().to_string().contains("code_file"));
        let none = folder("name = \"t\"\n", &[]);
        assert!(read(none.path()).unwrap_err().to_string().contains("main.py"));
        let empty = tempfile::tempdir().unwrap();
        assert!(find(empty.path()).unwrap_err().to_string().contains("tool.toml"));
    }
}
