//! What a person sees before they approve: what a version asks for, and how it differs from what was approved before.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{ApprovalError, Approvals, Policy, content_fingerprint, fingerprint};
use crate::model::{
    Approval, ApprovalState, ContentDefinition, ContentFile, ContentId, ContentItem, ContentKind, ContentVersion,
    PrincipalId, Timestamp, Tool, ToolId, ToolVersion, VersionNumber, visible,
};
use crate::store::{Approved, Store};

/// How many are looked at at once for the list of what waits.
const PAGE: u32 = 200;
/// The most entries of saved content that are looked at.
const MOST: u32 = 10_000;

/// The newest version of something that can be approved.
#[derive(Clone, Debug)]
pub enum Reviewed {
    /// A tool.
    Tool(Tool, Box<ToolVersion>),
    /// A resource, prompt or skill.
    Content(ContentItem, Box<ContentVersion>),
}

/// One thing that a version asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// In words.
    pub what: String,
    /// Whether the version that was approved last did not ask for it.
    pub new: bool,
}

/// An entry of the list of what waits.
#[derive(Clone, Debug, Serialize)]
pub struct Waiting {
    /// The id of the tool or content.
    pub id: String,
    /// `tool`, `resource`, `prompt` or `skill`.
    pub kind: &'static str,
    /// Its name or URI.
    pub name: String,
    /// The version that waits.
    pub version: VersionNumber,
    /// The version that serves meanwhile.
    pub serving_version: Option<VersionNumber>,
    /// Who saved it.
    pub saved_by: PrincipalId,
    /// When.
    pub saved_at: Timestamp,
    /// What it asks for.
    pub asks: Vec<String>,
}

/// Everything that a person should see.
#[derive(Clone, Debug, Serialize)]
pub struct Review {
    /// What it is, and which version.
    #[serde(flatten)]
    pub entry: Waiting,
    /// Whether it waits; else nothing needs an approval, or it has one.
    pub waits: bool,
    /// Whether this server lets no code run unapproved, whatever it asks for.
    pub all_code: bool,
    /// What is approved.
    pub fingerprint: String,
    /// What it asks for.
    pub reach: Vec<Asked>,
    /// The version that the difference starts from: the one whose approval counts, else the one that serves.
    pub base_version: Option<VersionNumber>,
    /// The difference, as a unified diff; the whole where there is no base.
    pub diff: String,
    /// The approvals so far, newest first. Those that this server did not seal are left out.
    pub approvals: Vec<Approval>,
}

impl Reviewed {
    /// What an approval would be of.
    pub fn of(&self) -> Approved {
        match self {
            Self::Tool(tool, _) => Approved::Tool(tool.id.clone()),
            Self::Content(item, _) => Approved::Content(item.id.clone()),
        }
    }

    /// Its name or URI.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(tool, _) => tool.name.as_str(),
            Self::Content(item, _) => &item.name,
        }
    }

    /// The number of the newest version.
    pub fn version(&self) -> VersionNumber {
        match self {
            Self::Tool(_, version) => version.number,
            Self::Content(_, version) => version.number,
        }
    }

    /// Its fingerprint, taken anew.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn fingerprint(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Tool(_, version) => fingerprint(&version.definition),
            Self::Content(_, version) => content_version_fingerprint(version),
        }
    }

    fn entry(&self, asks: Vec<String>) -> Waiting {
        let (saved_by, saved_at) = match self {
            Self::Tool(_, version) => (&version.created_by, version.created_at),
            Self::Content(_, version) => (&version.created_by, version.created_at),
        };
        Waiting {
            id: self.of().id().to_owned(),
            kind: match self {
                Self::Tool(..) => "tool",
                Self::Content(item, _) => item.kind.as_str(),
            },
            name: self.name().to_owned(),
            version: self.version(),
            serving_version: match self {
                Self::Tool(tool, _) => tool.serving_version,
                Self::Content(item, _) => item.serving_version,
            },
            saved_by: saved_by.clone(),
            saved_at,
            asks,
        }
    }

    /// The reach it asks for, whatever the policy.
    fn reach(&self, policy: &Policy) -> Vec<String> {
        match self {
            Self::Tool(_, version) => policy.reach_by_name(&version.definition),
            Self::Content(_, version) => {
                version.definition.scripts().flat_map(|script| policy.reach_by_name(script)).collect()
            }
        }
    }

    /// Everything that stands on it, to be read and compared by a person. Code is shown by itself, and characters that
    /// hide or reorder text are shown by their numbers.
    fn text(&self) -> String {
        let mut text = String::new();
        let (about, scripts): (Value, Vec<(&str, &str)>) = match self {
            Self::Tool(_, version) => {
                let mut definition = version.definition.clone();
                definition.code.clear();
                (json!(definition), vec![("code", &version.definition.code)])
            }
            Self::Content(_, version) => {
                let mut definition = version.definition.clone();
                definition.scripts_mut().for_each(|script| script.code.clear());
                let scripts = version.definition.scripts().map(|script| ("script", script.code.as_str())).collect();
                (json!({"definition": definition, "files": version.files}), scripts)
            }
        };
        let _infallible = writeln!(text, "{}", serde_json::to_string_pretty(&about).unwrap_or_default());
        for (what, code) in scripts {
            let _infallible = writeln!(text, "\n--- {what} ---\n{code}");
        }
        visible(&text)
    }
}

/// What scripts of content wait for.
pub(super) fn content_asks(policy: &Policy, definition: &ContentDefinition) -> Vec<String> {
    definition.scripts().flat_map(|script| policy.waits_for(script)).collect()
}

pub(super) fn content_version_fingerprint(version: &ContentVersion) -> Result<String, serde_json::Error> {
    let files: Vec<&ContentFile> = version.files.iter().collect();
    content_fingerprint(&version.definition, &files)
}

impl Approvals {
    /// Finds what is meant: by its id, by a tool's name, or by `resource:URI`, `prompt:NAME`, `skill:NAME`.
    ///
    /// # Errors
    /// [`ApprovalError::NotFound`], [`ApprovalError::Store`].
    pub async fn find(&self, wanted: &str) -> Result<Reviewed, ApprovalError> {
        let store = self.store();
        let missing = || ApprovalError::NotFound(wanted.to_owned());
        let tool = match store.get_tool(&ToolId(wanted.to_owned())).await? {
            None => store.get_tool_by_name(wanted.strip_prefix("tool:").unwrap_or(wanted)).await?,
            found => found,
        };
        if let Some(tool) = tool {
            return reviewed_tool(store, tool.clone(), tool.latest_version).await?.ok_or_else(missing);
        }
        let item = match store.get_content_by_id(&ContentId(wanted.to_owned())).await? {
            None => {
                let named = wanted.split_once(':').and_then(|(kind, name)| Some((ContentKind::parse(kind)?, name)));
                let Some((kind, name)) = named else { return Err(missing()) };
                store.get_content(kind, name).await?.ok_or_else(missing)?
            }
            Some(item) => item,
        };
        let number = item.latest_version;
        reviewed_content(store, item, number).await?.ok_or_else(missing)
    }

    /// What waits for a person, the last saved first.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn waiting(&self) -> Result<Vec<Waiting>, ApprovalError> {
        let policy = self.policy();
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut after = None;
        // Page by page: most of what asks for something may be approved, or stay within the defaults.
        loop {
            let tools = self.store().tools_to_review(policy.stops_all_code(), after.as_ref(), PAGE).await?;
            let Some((tool, version)) = tools.last() else { break };
            after = Some((version.created_at, tool.id.clone()));
            let versions: Vec<&ToolVersion> = tools.iter().map(|(_, version)| version).collect();
            let waits = self.which_wait(&versions).await?;
            for ((tool, version), _) in tools.into_iter().zip(waits).filter(|(_, waits)| *waits) {
                let asks = policy.waits_for(&version.definition);
                waiting.push(Reviewed::Tool(tool, Box::new(version)).entry(asks));
            }
        }
        for item in self.store().contents_to_review(MOST).await? {
            let number = item.latest_version;
            let Some(Reviewed::Content(item, version)) = reviewed_content(self.store(), item, number).await? else {
                continue;
            };
            let asks = self.content_waits(&version).await?;
            if !asks.is_empty() {
                waiting.push(Reviewed::Content(item, version).entry(asks));
            }
        }
        waiting.sort_by_key(|entry| std::cmp::Reverse(entry.saved_at));
        Ok(waiting)
    }

    /// What a person should see before they decide.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], [`ApprovalError::Encode`].
    pub async fn review(&self, reviewed: &Reviewed) -> Result<Review, ApprovalError> {
        let mut approvals = self.store().list_approvals(reviewed.of().id()).await?;
        approvals.retain(|approval| self.is_sealed(approval));
        let asks = match reviewed {
            Reviewed::Tool(tool, version) => self.tool_waits(Some(&tool.id), &version.definition).await?,
            Reviewed::Content(_, version) => self.content_waits(version).await?,
        };
        let entry = reviewed.entry(asks);
        let approved = approvals.iter().find(|approval| approval.state == ApprovalState::Active);
        let number = approved.map(|approval| approval.version).or(entry.serving_version);
        let base = match (reviewed, number.filter(|number| *number != entry.version)) {
            (_, None) => None,
            (Reviewed::Tool(tool, _), Some(number)) => reviewed_tool(self.store(), tool.clone(), number).await?,
            (Reviewed::Content(item, _), Some(number)) => reviewed_content(self.store(), item.clone(), number).await?,
        };
        // What the approved version could reach is no news; what an unapproved one asked for is.
        let before = base.as_ref().filter(|_| approved.is_some()).map(|base| base.reach(self.policy()));
        let before = before.unwrap_or_default();
        let reach = reviewed.reach(self.policy()).into_iter();
        Ok(Review {
            waits: !entry.asks.is_empty(),
            all_code: self.policy().stops_all_code(),
            fingerprint: reviewed.fingerprint()?,
            reach: reach.map(|what| Asked { new: !before.contains(&what), what }).collect(),
            base_version: base.as_ref().map(Reviewed::version),
            diff: difference(base.as_ref(), reviewed),
            approvals,
            entry,
        })
    }
}

fn difference(base: Option<&Reviewed>, new: &Reviewed) -> String {
    let Some(base) = base else { return new.text() };
    let (old, text) = (base.text(), new.text());
    let heads = (format!("version {}", base.version()), format!("version {}", new.version()));
    TextDiff::from_lines(&old, &text).unified_diff().context_radius(3).header(&heads.0, &heads.1).to_string()
}

async fn reviewed_tool(store: &Store, tool: Tool, number: VersionNumber) -> Result<Option<Reviewed>, ApprovalError> {
    let version = store.get_version(&tool.id, number).await?;
    Ok(version.map(|version| Reviewed::Tool(tool, Box::new(version))))
}

async fn reviewed_content(
    store: &Store,
    item: ContentItem,
    number: VersionNumber,
) -> Result<Option<Reviewed>, ApprovalError> {
    let version = store.get_content_version(&item.id, number).await?;
    Ok(version.map(|version| Reviewed::Content(item, Box::new(version))))
}
