//! `resources/…`: lists, templates and reads, in the words of the caller's era.

use rmcp::model::{
    Annotations, ErrorData, Icon, InputResponses, ListResourceTemplatesResult, ListResourcesResult, MetaObject,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::call::{attend, client};
use super::era::Era;
use super::handler::{Handler, era_of};
use super::{ask, error, paging};
use crate::model::Resource as Part;
use crate::tools::{Asked, ListedResource, Resume, Step};

impl Handler {
    pub(super) async fn resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (era, list) = (era_of(context), self.contents(context).await?);
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = paging::page("resources", &list.resources, |item| &item.uri, cursor.as_deref())
            .map_err(error::bad_cursor)?;
        let mut result = ListResourcesResult::with_all_items(page.iter().map(|item| resource(item, era)).collect());
        result.next_cursor = next;
        result.meta = stamp(era);
        Ok(result)
    }

    pub(super) async fn templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (era, list) = (era_of(context), self.contents(context).await?);
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = paging::page("templates", &list.templates, |item| &item.uri, cursor.as_deref())
            .map_err(error::bad_cursor)?;
        let items = page.iter().map(|item| template(item, era)).collect();
        let mut result = ListResourceTemplatesResult::with_all_items(items);
        result.next_cursor = next;
        result.meta = stamp(era);
        Ok(result)
    }

    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let route = self.route(&context)?;
        let brought = resume(request.request_state, request.input_responses);
        let asked = asked(route.era, &context, brought);
        let read = attend(&route, &context, |resume, events, cancel| {
            let wanted = (request.uri.clone(), again(&asked, resume));
            self.domain().read_resource(&route.caller, wanted, events, cancel)
        });
        match read.await.map_err(error::from_content)? {
            Step::Asking(asking) => ask::input_required(asking).map(ReadResourceResponse::InputRequired),
            Step::Done(parts) => {
                let mut result = ReadResourceResult::new(parts.into_iter().map(contents).collect());
                result.meta = stamp(route.era);
                Ok(ReadResourceResponse::Complete(result))
            }
        }
    }
}

/// What a retried request brings back.
pub(super) fn resume(state: Option<String>, answers: Option<InputResponses>) -> Resume {
    Resume { state, answers: answers.unwrap_or_default().into_iter().collect(), ..Resume::default() }
}

/// The same request, once its client has answered.
pub(super) fn again(asked: &Asked, resume: Option<Resume>) -> Asked {
    let mut asked = asked.clone();
    asked.resume = resume.unwrap_or(asked.resume);
    asked
}

/// What a script may know of the request.
pub(super) fn asked(era: Era, context: &RequestContext<RoleServer>, resume: Resume) -> Asked {
    Asked {
        request_id: context.id.to_string(),
        meta: context.meta.0.0.clone(),
        client: client(era, context),
        door: "mcp",
        resume,
    }
}

/// `_meta` of a result where its era wants to know who answered.
pub(super) fn stamp(era: Era) -> Option<MetaObject> {
    era.is_modern().then(|| super::server_meta(None))
}

fn resource(item: &ListedResource, era: Era) -> Resource {
    let mut resource = Resource::new(&item.uri, &item.name);
    resource.title = item.title.clone().filter(|_| era.has_structure());
    resource.description.clone_from(&item.description);
    resource.mime_type.clone_from(&item.mime_type);
    resource.size = item.size.filter(|_| era.has_annotations());
    resource.annotations = annotations(item);
    resource.icons = icons(&item.icons, era);
    resource.meta = meta(item.meta.as_ref(), era);
    resource
}

fn template(item: &ListedResource, era: Era) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(&item.uri, &item.name);
    template.title = item.title.clone().filter(|_| era.has_structure());
    template.description.clone_from(&item.description);
    template.mime_type.clone_from(&item.mime_type);
    template.annotations = annotations(item);
    template.icons = icons(&item.icons, era);
    template.meta = meta(item.meta.as_ref(), era);
    template
}

fn annotations(item: &ListedResource) -> Option<Annotations> {
    (!item.annotations.is_empty()).then(|| read_back(&Value::Object(item.annotations.clone()))).flatten()
}

/// Icons where the era knows them.
pub(super) fn icons(icons: &[Value], era: Era) -> Option<Vec<Icon>> {
    let icons: Vec<Icon> = icons.iter().filter(|_| era.has_icons()).filter_map(read_back).collect();
    (!icons.is_empty()).then_some(icons)
}

/// `_meta` of an entry where the era knows it.
pub(super) fn meta(meta: Option<&serde_json::Map<String, Value>>, era: Era) -> Option<MetaObject> {
    meta.filter(|_| era.has_structure()).map(|meta| MetaObject(meta.clone()))
}

/// What was checked when it was saved, as the SDK's type.
fn read_back<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// A part as the SDK writes it.
pub(super) fn contents(part: Part) -> ResourceContents {
    let meta = part.meta.map(MetaObject);
    match (part.text, part.blob) {
        (None, Some(blob)) => {
            ResourceContents::BlobResourceContents { uri: part.uri, mime_type: part.mime_type, blob, meta }
        }
        (text, _) => ResourceContents::TextResourceContents {
            uri: part.uri,
            mime_type: part.mime_type,
            text: text.unwrap_or_default(),
            meta,
        },
    }
}
