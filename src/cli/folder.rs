//! Tool folders: a manifest `tool.toml` and its files. Format: `docs/tool-folders.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// The manifest's file name.
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
        bail!("there is no `{MANIFEST}` in {} or below it", dir.display());
    }
    found.sort();
    Ok(found)
}

fn search(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if dir.join(MANIFEST).is_file() {
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

/// The arguments of `omniforge_create_tool` that a folder stands for.
///
/// # Errors
/// Which file, which key, and what would be right.
pub fn read(dir: &Path) -> anyhow::Result<Map<String, Value>> {
    let manifest = dir.join(MANIFEST);
    let text = std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let mut tool: Map<String, Value> =
        toml::from_str(&text).with_context(|| format!("{} is wrong", manifest.display()))?;
    for (key, file_key) in [("input_schema", "input_schema_file"), ("output_schema", "output_schema_file")] {
        if let Some(file) = take_file(&mut tool, file_key, &manifest)? {
            let path = dir.join(file);
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let schema = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
            tool.insert(key.to_owned(), schema);
        }
    }
    if !tool.contains_key("name") {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tool.insert("name".to_owned(), Value::from(name));
    }
    let language = tool.get("language").and_then(Value::as_str).unwrap_or("python").to_owned();
    let default = CODE_FILES.iter().find(|(name, _)| *name == language).map(|(_, file)| (*file).to_owned());
    let file = take_file(&mut tool, "code_file", &manifest)?.or(default);
    if !tool.contains_key("code") {
        let Some(file) = file else { bail!("{}: `language = \"{language}\"` is unknown", manifest.display()) };
        let path = dir.join(file);
        let code = std::fs::read_to_string(&path).with_context(|| format!("cannot read the code {}", path.display()))?;
        tool.insert("code".to_owned(), Value::from(code));
    }
    Ok(tool)
}

fn take_file(tool: &mut Map<String, Value>, key: &str, manifest: &Path) -> anyhow::Result<Option<String>> {
    match tool.shift_remove(key) {
        None => Ok(None),
        Some(Value::String(file)) if Path::new(&file).components().all(is_inside) => Ok(Some(file)),
        Some(other) => bail!("{}: `{key} = {other}` must be a file inside the tool's folder", manifest.display()),
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
        let tool = read(dir.path()).unwrap();
        assert_eq!(
            Value::Object(tool),
            serde_json::json!({"name": "t", "language": "bash", "input_schema": {"type": "object"}, "code": "echo hi"})
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
