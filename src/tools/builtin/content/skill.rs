//! What an author gave for a skill, checked and put together.

use serde::Deserialize;

use super::resource::{base64, check_mime_type};
use super::{Wanted, about, new_file, wrong};
use crate::model::{ContentDefinition, SkillDefinition};
use crate::store::NewFile;
use crate::tools::Tools;
use crate::tools::authoring::Draft;
use crate::tools::builtin::Failed;
use crate::tools::content::{check_path, mime_type, read_skill};

/// The most files of a skill (`SKILL.md` among them), and the most bytes of all: what the extension asks of servers.
const LIMITS: (usize, usize) = (512, 16 << 20);

/// The fields of `omniforge_save_skill`.
#[derive(Deserialize)]
pub(super) struct SkillDraft {
    pub(super) name: Option<String>,
    pub(super) markdown: Option<String>,
    files: Option<Vec<FileDraft>>,
    #[serde(flatten)]
    draft: Draft,
}

#[derive(Deserialize)]
struct FileDraft {
    path: String,
    text: Option<String>,
    blob: Option<String>,
    mime_type: Option<String>,
}

impl Tools {
    pub(super) fn skill_from(&self, given: SkillDraft, markdown: String) -> Result<Wanted, Failed> {
        let draft = given.draft.checked(&self.options.ceilings)?;
        let (frontmatter, name, description) = read_skill(&markdown).or_else(|problem| wrong("markdown", problem))?;
        if given.name.as_ref().is_some_and(|given| *given != name) {
            return wrong("name", format!("the front matter of `markdown` says `{name}`; leave this one out"));
        }
        let mut files = vec![new_file("SKILL.md", Some("text/markdown".to_owned()), markdown.into_bytes())];
        for (index, file) in given.files.unwrap_or_default().into_iter().enumerate() {
            files.push(read_file(&format!("files/{index}"), file)?);
        }
        check_files(&mut files)?;
        let understood = vec![format!("Files: {}.", files.len())];
        let mut about = about(&draft);
        about.description = Some(description);
        Ok(Wanted {
            name,
            definition: ContentDefinition::Skill(SkillDefinition { about, frontmatter }),
            files,
            enabled: draft.enabled,
            understood,
            warnings: Vec::new(),
        })
    }
}

fn read_file(field: &str, file: FileDraft) -> Result<NewFile, Failed> {
    check_path(&file.path).or_else(|problem| wrong(&format!("{field}/path"), problem))?;
    check_mime_type(file.mime_type.as_deref())?;
    let bytes = match (file.text, file.blob) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(blob)) => base64(&format!("{field}/blob"), &blob)?,
        _ => return wrong(field, "give either `text` or `blob` (base64)"),
    };
    let mime_type = file.mime_type.unwrap_or_else(|| mime_type(&file.path, &bytes));
    Ok(new_file(&file.path, Some(mime_type), bytes))
}

/// Puts the files in the order of their paths and holds them against each other.
fn check_files(files: &mut [NewFile]) -> Result<(), Failed> {
    files.sort_by(|a, b| a.file.path.cmp(&b.file.path));
    let bytes: u64 = files.iter().map(|new| new.file.size).sum();
    if files.len() > LIMITS.0 || bytes > LIMITS.1 as u64 {
        let most = format!("at most {} files and {} bytes are allowed", LIMITS.0, LIMITS.1);
        return wrong(
            "files",
            format!("there are {} files with {bytes} bytes, SKILL.md among them; {most}", files.len()),
        );
    }
    for new in files.iter() {
        let path = &new.file.path;
        let same = files.iter().filter(|other| other.file.path == *path).count();
        let below = files.iter().find(|other| other.file.path.starts_with(&format!("{path}/")));
        match below {
            _ if same > 1 => return wrong("files", format!("`{path}` is there twice")),
            Some(below) => {
                return wrong("files", format!("`{path}` is a file and the folder of `{}`", below.file.path));
            }
            None => {}
        }
    }
    Ok(())
}
