//! The skills extension: `skills/list`, `skills/get` and `resources/directory/read`. The files themselves are read as
//! resources.

use std::collections::BTreeMap;

use rmcp::model::{
    DIRECTORY_MIME_TYPE, ErrorData, ExtensionCapabilities, GetSkillResult, ListResourcesResult, ListSkillsResult,
    PaginatedRequestParams, ReadResourceDirectoryRequestParams, Resource, SKILLS_EXTENSION_ID, Skill, SkillFrontmatter,
    SkillResource, SkillResources, SkillsCapability,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::handler::{Handler, era_of};
use super::resources::stamp;
use super::{error, paging};
use crate::tools::ListedSkill;

/// The extension as `capabilities.extensions` declares it.
pub(super) fn extension() -> ExtensionCapabilities {
    let settings = serde_json::to_value(SkillsCapability::new().with_directory_read());
    let settings = settings.ok().and_then(|settings| settings.as_object().cloned()).unwrap_or_default();
    ExtensionCapabilities::from([(SKILLS_EXTENSION_ID.to_owned(), settings)])
}

impl Handler {
    pub(super) async fn skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let list = self.contents(context).await?;
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) =
            paging::page("skills", &list.skills, |item| &item.name, cursor.as_deref()).map_err(error::bad_cursor)?;
        let mut result = ListSkillsResult::with_all_items(page.iter().map(skill).collect());
        result.next_cursor = next;
        result.meta = stamp(era_of(context));
        Ok(result)
    }

    pub(super) async fn skill(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let list = self.contents(context).await?;
        let found = list.skills.iter().find(|item| item.uri("SKILL.md") == uri);
        let found = found.ok_or_else(|| unknown("skill", uri))?;
        let mut result = GetSkillResult::new(skill(found));
        result.meta = stamp(era_of(context));
        Ok(result)
    }

    pub(super) async fn directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list = self.contents(context).await?;
        let uri = request.uri.trim_end_matches('/');
        let children = list.skills.iter().find_map(|item| children(item, uri));
        let children: Vec<Resource> = children.ok_or_else(|| unknown("directory", &request.uri))?;
        let (page, next) = paging::page("directory", &children, |item| &item.uri, request.cursor.as_deref())
            .map_err(error::bad_cursor)?;
        let mut result = ListResourcesResult::with_all_items(page.to_vec());
        result.next_cursor = next;
        result.meta = stamp(era_of(context));
        Ok(result)
    }
}

fn unknown(what: &str, uri: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no {what} `{uri}`"), Some(json!({"uri": uri})))
}

fn skill(item: &ListedSkill) -> Skill {
    let text = |key: &str| item.frontmatter.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut frontmatter = SkillFrontmatter::new(text("name"), text("description"));
    frontmatter.extra = item.frontmatter.clone();
    frontmatter.extra.retain(|key, _| key != "name" && key != "description");
    let files = item.files.iter().map(|file| SkillResource::new(item.uri(&file.path), &file.digest, file.size));
    Skill::new(item.uri("SKILL.md"), frontmatter, SkillResources::Files(files.collect()))
}

/// The direct children of the directory with this URI, by URI; `None` when the skill has none such.
fn children(item: &ListedSkill, uri: &str) -> Option<Vec<Resource>> {
    let root = item.uri("");
    let inside = format!("{uri}/");
    if !inside.starts_with(&root) {
        return None;
    }
    let mut found: BTreeMap<String, Resource> = BTreeMap::new();
    for file in &item.files {
        let file_uri = item.uri(&file.path);
        let Some(rest) = file_uri.strip_prefix(&inside) else { continue };
        let depth = rest.matches('/').count();
        // The path's own part of that depth: a URI's is encoded.
        let part = file.path.rsplit('/').nth(depth).unwrap_or_default();
        let child_uri = format!("{inside}{}", rest.split('/').next().unwrap_or_default());
        let mut child = Resource::new(&child_uri, part);
        if depth == 0 {
            child.mime_type.clone_from(&file.mime_type);
            child.size = Some(file.size);
        } else {
            child.mime_type = Some(DIRECTORY_MIME_TYPE.to_owned());
        }
        found.entry(child_uri).or_insert(child);
    }
    (!found.is_empty()).then(|| found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ContentFile;

    fn item() -> ListedSkill {
        let file = |path: &str| ContentFile {
            path: path.to_owned(),
            mime_type: Some("text/plain".to_owned()),
            size: 3,
            digest: String::new(),
        };
        let files = ["SKILL.md", "a b/c.txt", "a b/d/e.txt", "z.txt"].map(file).into();
        ListedSkill { name: "s".to_owned(), frontmatter: serde_json::Map::new(), files }
    }

    #[test]
    fn directories_have_their_direct_children() {
        let shown = |uri: &str| {
            let children = children(&item(), uri)?;
            let shown = children.iter().map(|it| format!("{} {} {}", it.uri, it.name, it.is_directory()));
            Some(shown.collect::<Vec<_>>())
        };
        let root = ["skill://s/SKILL.md SKILL.md false", "skill://s/a%20b a b true", "skill://s/z.txt z.txt false"];
        assert_eq!(shown("skill://s").unwrap(), root);
        assert_eq!(
            shown("skill://s/a%20b").unwrap(),
            ["skill://s/a%20b/c.txt c.txt false", "skill://s/a%20b/d d true"]
        );
        for uri in ["skill://s/SKILL.md", "skill://s/none", "skill://other", "skill:/", "x://s"] {
            assert_eq!(shown(uri), None, "{uri}");
        }
    }
}
