//! `prompts/…` and `completion/complete`, in the words of the caller's era.

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsResult, PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, Reference, Role,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};

use super::call::{attend, block};
use super::era::Era;
use super::handler::{Handler, era_of};
use super::resources::{again, asked, icons, meta, resume, stamp};
use super::{ask, error, paging};
use crate::model;
use crate::tools::{CompletionOf, CompletionRequest, ListedPrompt, Resume, Step};

impl Handler {
    pub(super) async fn prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let (era, list) = (era_of(context), self.contents(context).await?);
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) =
            paging::page("prompts", &list.prompts, |item| &item.name, cursor.as_deref()).map_err(error::bad_cursor)?;
        let mut result = ListPromptsResult::with_all_items(page.iter().map(|item| listed(item, era)).collect());
        result.next_cursor = next;
        result.meta = stamp(era);
        Ok(result)
    }

    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let route = self.route(&context)?;
        let asked = asked(route.era, &context, resume(request.request_state, request.input_responses));
        let arguments = request.arguments.unwrap_or_default();
        let reply = attend(&route, &context, |resume, events, cancel| {
            let wanted = (request.name.clone(), arguments.clone(), again(&asked, resume));
            self.domain().get_prompt(&route.caller, wanted, events, cancel)
        });
        let reply = match reply.await.map_err(error::from_content)? {
            Step::Asking(asking) => return ask::input_required(asking).map(GetPromptResponse::InputRequired),
            Step::Done(reply) => reply,
        };
        let messages = reply.messages.into_iter().map(|message| {
            let role = match message.role {
                model::Role::User => Role::User,
                model::Role::Assistant => Role::Assistant,
            };
            PromptMessage::new(role, block(message.content, route.era))
        });
        let mut result = GetPromptResult::new(messages.collect());
        result.description = reply.description;
        result.meta = stamp(route.era);
        Ok(GetPromptResponse::Complete(result))
    }

    pub(super) async fn suggestions(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let route = self.route(&context)?;
        let of = match request.r#ref {
            Reference::Prompt(prompt) => CompletionOf::Prompt(prompt.name),
            Reference::Resource(resource) => CompletionOf::Resource(resource.uri),
            _ => return Err(ErrorData::invalid_params("`ref` must be a ref/prompt or a ref/resource", None)),
        };
        let known = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let arguments: Map<String, Value> = known.into_iter().map(|(name, value)| (name, value.into())).collect();
        let (argument, value) = (request.argument.name, request.argument.value);
        let wanted =
            (CompletionRequest { of, argument, value, arguments }, asked(route.era, &context, Resume::default()));
        let found = attend(&route, &context, |_, _, cancel| {
            let found = self.domain().complete(&route.caller, wanted.clone(), cancel);
            async { found.await.map(Step::Done) }
        });
        let found = match found.await.map_err(error::from_content)? {
            Step::Done(found) => found,
            Step::Asking(_) => return Err(ErrorData::internal_error("a completion asked its client", None)),
        };
        let has_more = found.total > found.values.len();
        let total = u32::try_from(found.total).ok();
        let info = CompletionInfo::with_pagination(found.values, total, has_more)
            .map_err(|error| ErrorData::internal_error(error, None))?;
        let mut result = CompleteResult::new(info);
        result.meta = stamp(route.era);
        Ok(result)
    }
}

fn listed(item: &ListedPrompt, era: Era) -> Prompt {
    let arguments = item.arguments.iter().map(|argument| {
        let mut listed = PromptArgument::new(&argument.name).with_required(argument.required);
        listed.title = argument.title.clone().filter(|_| era.has_structure());
        listed.description.clone_from(&argument.description);
        listed
    });
    let mut prompt = Prompt::new(&item.name, Some(&item.description), Some(arguments.collect()));
    prompt.arguments = prompt.arguments.filter(|arguments: &Vec<_>| !arguments.is_empty());
    prompt.title = item.title.clone().filter(|_| era.has_structure());
    prompt.icons = icons(&item.icons, era);
    prompt.meta = meta(item.meta.as_ref(), era);
    prompt
}
