//! Saved content: resources, prompts and skills, as they are listed, read and completed.

mod catalog;
mod completions;
mod domain;
mod fill;
mod frontmatter;
mod notices;
mod outputs;
mod prompts;
mod read;
mod script;
mod skills;
mod template;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::attend::Lines;
use super::domain::CallError;
use super::{Tools, internal, nearest};
use crate::model::{Caller, Resource, RunEvent};

pub use catalog::ContentCatalog;
pub use domain::{
    Asked, Completion, CompletionOf, CompletionRequest, ContentChange, ContentError, ContentList, Contents,
    ListedPrompt, ListedResource, ListedSkill, PromptReply, Step, Subject,
};
pub use fill::{is_name, places};
pub use notices::Notices;
pub(super) use outputs::uri as output_uri;
pub use read::sha256;
pub use skills::{check_path, mime_type, read as read_skill};
pub use template::{UriTemplate, check_uri};

use catalog::Seen;

impl Tools {
    async fn seen_content(&self, caller: &Caller) -> Result<Arc<Seen>, CallError> {
        self.contents.seen(caller).await.map_err(|error| internal("the saved content can't be read", &error))
    }
}

#[async_trait]
impl Contents for Tools {
    async fn contents(&self, caller: &Caller) -> Result<Arc<ContentList>, CallError> {
        Ok(self.seen_content(caller).await?.list.clone())
    }

    async fn read_resource(
        &self,
        caller: &Caller,
        request: (String, Asked),
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<Step<Vec<Resource>>, ContentError> {
        self.read(caller, request, Lines { events, cancel }).await
    }

    async fn get_prompt(
        &self,
        caller: &Caller,
        request: (String, Map<String, Value>, Asked),
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<Step<PromptReply>, ContentError> {
        self.prompt(caller, request, Lines { events, cancel }).await
    }

    async fn complete(
        &self,
        caller: &Caller,
        request: (CompletionRequest, Asked),
        cancel: CancellationToken,
    ) -> Result<Completion, ContentError> {
        self.suggest(caller, request, &cancel).await
    }

    fn content_changes(&self) -> broadcast::Receiver<ContentChange> {
        self.contents.changes()
    }
}
