//! `tools/list`: what each era sees of a tool, pages whose cursors survive writes, and the bytes of the usual answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use rmcp::model::{CacheScope, Icon, ListToolsResult, MetaObject, ResultType, Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::{Map, Value};

use super::era::Era;
use crate::tools::{ListedTool, ToolList};

/// How many tools a page holds.
pub const PAGE: usize = 200;

/// How long a walk over the pages may take before it starts over.
const WALK: Duration = Duration::from_secs(15 * 60);

/// The most names remembered for walks that are under way.
const REMEMBERED_NAMES: u64 = 1_000_000;

/// The most bytes kept of answers made once.
const KEPT_BYTES: u64 = 64 << 20;

/// A cursor that we did not give out, or that fits no list any more.
#[derive(Debug, thiserror::Error)]
#[error("the cursor is not one of ours; leave it out to start from the first page")]
pub struct BadCursor;

/// What is remembered between requests: answers made once, and the order in which walks under way began.
#[derive(Debug)]
pub struct Pages {
    answers: moka::future::Cache<(u64, Era, String), Bytes>,
    walks: moka::future::Cache<(u64, String), Arc<Vec<String>>>,
}

/// A tool as one era sees it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    icons: &'a [Value],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    tools: Vec<View<'a>>,
}

impl<'a> View<'a> {
    fn of(tool: &'a ListedTool, era: Era) -> Self {
        let output = tool.output_schema.as_ref().filter(|schema| era.has_any_output() || is_object_schema(schema));
        Self {
            name: &tool.name,
            title: tool.title.as_deref().filter(|_| era.has_structure()),
            description: &tool.description,
            input_schema: &tool.input_schema,
            output_schema: output.filter(|_| era.has_structure()),
            annotations: Some(&tool.annotations).filter(|_| era.has_annotations()),
            icons: if era.has_icons() { &tool.icons } else { &[] },
            meta: tool.meta.as_ref().filter(|_| era.has_structure()),
        }
    }

    fn into_tool(self) -> Tool {
        let schema = self.input_schema.as_object().cloned().unwrap_or_default();
        let mut tool = Tool::new_with_raw(self.name.to_owned(), Some(self.description.to_owned().into()), schema);
        tool.title = self.title.map(ToOwned::to_owned);
        tool.output_schema = self.output_schema.and_then(Value::as_object).cloned().map(Arc::new);
        tool.annotations =
            self.annotations.and_then(|hints| serde_json::from_value::<ToolAnnotations>(hints.clone().into()).ok());
        let icons: Vec<Icon> = self.icons.iter().filter_map(|icon| serde_json::from_value(icon.clone()).ok()).collect();
        tool.icons = Some(icons).filter(|icons| !icons.is_empty());
        tool.meta = self.meta.map(|meta| MetaObject(meta.clone()));
        tool
    }
}

/// Whether the schema's root says that it describes objects.
pub fn is_object_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

impl Default for Pages {
    fn default() -> Self {
        let bytes = |_: &(u64, Era, String), answer: &Bytes| u32::try_from(answer.len()).unwrap_or(u32::MAX);
        let names = |_: &(u64, String), names: &Arc<Vec<String>>| u32::try_from(names.len()).unwrap_or(u32::MAX);
        Self {
            answers: moka::future::Cache::builder().max_capacity(KEPT_BYTES).weigher(bytes).build(),
            walks: moka::future::Cache::builder()
                .max_capacity(REMEMBERED_NAMES)
                .weigher(names)
                .time_to_live(WALK)
                .build(),
        }
    }
}

impl Pages {
    /// The first page as the bytes of a `result` member, made once for each generation, era and visible set.
    pub async fn first_page(&self, list: &ToolList, era: Era) -> Bytes {
        let key = (list.generation, era, list.visible.clone());
        if let Some(answer) = self.answers.get(&key).await {
            return answer;
        }
        let next_cursor = self.next_cursor(list, None, PAGE).await;
        let tools = list.tools.iter().take(PAGE).map(|tool| View::of(tool, era)).collect();
        let modern = era.is_modern();
        let answer = Answer {
            result_type: modern.then_some("complete"),
            meta: modern.then(|| serde_json::json!({super::SERVER_INFO: super::server_info()})),
            next_cursor,
            ttl_ms: modern.then_some(0),
            cache_scope: modern.then_some("private"),
            tools,
        };
        let answer: Bytes = serde_json::to_vec(&answer).expect("a list of JSON values serialises").into();
        self.answers.insert(key, answer.clone()).await;
        answer
    }

    /// The page at this cursor.
    ///
    /// A walk goes on in the order in which it began, so that a tool which moves to the front meanwhile is not lost; what
    /// is shown of each tool is its newest definition. Where that order is forgotten (after a restart, or 15 minutes) and
    /// the catalogue has changed, the walk starts over: it may repeat tools, it loses none.
    ///
    /// # Errors
    /// [`BadCursor`].
    pub async fn page(&self, list: &ToolList, era: Era, cursor: Option<&str>) -> Result<ListToolsResult, BadCursor> {
        let (generation, offset) = match cursor {
            None | Some("") => (list.generation, 0),
            Some(cursor) => parse_cursor(cursor).ok_or(BadCursor)?,
        };
        let order = if generation == list.generation {
            None
        } else {
            self.walks.get(&(generation, list.visible.clone())).await
        };
        let restarted = generation != list.generation && order.is_none();
        let offset = if restarted { 0 } else { offset };
        let length = order.as_ref().map_or(list.tools.len(), |names| names.len());
        if offset > 0 && offset >= length {
            return Err(BadCursor);
        }
        let tools = match &order {
            None => list.tools.iter().skip(offset).take(PAGE).map(|tool| View::of(tool, era).into_tool()).collect(),
            Some(names) => {
                let now: HashMap<&str, &ListedTool> = list.tools.iter().map(|tool| (&*tool.name, tool)).collect();
                let page = names.iter().skip(offset).take(PAGE).filter_map(|name| now.get(&**name));
                page.map(|tool| View::of(tool, era).into_tool()).collect()
            }
        };
        let walk = order.is_some().then_some((generation, length));
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = self.next_cursor(list, walk, offset + PAGE).await;
        if era.is_modern() {
            result.result_type = Some(ResultType::COMPLETE);
            result.ttl_ms = Some(0);
            result.cache_scope = Some(CacheScope::Private);
            result.meta = Some(super::server_meta(None));
        }
        Ok(result)
    }

    /// The cursor of the page at `offset`, and the memory of the order that it stands on.
    async fn next_cursor(&self, list: &ToolList, walk: Option<(u64, usize)>, offset: usize) -> Option<String> {
        let (generation, length) = walk.unwrap_or((list.generation, list.tools.len()));
        if offset >= length {
            return None;
        }
        if walk.is_none() {
            let names = list.tools.iter().map(|tool| tool.name.clone());
            let key = (generation, list.visible.clone());
            self.walks.entry(key).or_insert_with(async { Arc::new(names.collect()) }).await;
        }
        Some(URL_SAFE_NO_PAD.encode(format!("1:{generation}:{offset}")))
    }
}

/// A cursor tells only where a walk stands; what may be seen there is decided by who asks.
fn parse_cursor(cursor: &str) -> Option<(u64, usize)> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (generation, offset) = std::str::from_utf8(&bytes).ok()?.strip_prefix("1:")?.split_once(':')?;
    Some((generation.parse().ok()?, offset.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ListedTool {
        ListedTool {
            name: name.to_owned(),
            title: Some("Title".to_owned()),
            description: "does it".to_owned(),
            input_schema: json!({"type": "object"}),
            output_schema: Some(json!({"type": "array"})),
            annotations: Map::from_iter([("readOnlyHint".to_owned(), json!(true))]),
            icons: vec![json!({"src": "data:image/png;base64,AA=="})],
            meta: Some(Map::from_iter([("a".to_owned(), json!(1))])),
        }
    }

    fn list(generation: u64, names: impl Iterator<Item = usize>) -> ToolList {
        let tools = names.map(|number| tool(&format!("t{number}"))).collect();
        ToolList { generation, visible: "all".to_owned(), tools }
    }

    fn names(result: &ListToolsResult) -> Vec<String> {
        result.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    #[tokio::test]
    async fn a_walk_loses_no_tool_that_moves_meanwhile() {
        let pages = Pages::default();
        let first = pages.page(&list(1, 0..450), Era::V2025_11_25, None).await.unwrap();
        // 449 is updated: it moves to the front, and everything before it moves back by one.
        let moved = list(2, std::iter::once(449).chain(0..449));
        let second = pages.page(&moved, Era::V2025_11_25, first.next_cursor.as_deref()).await.unwrap();
        let third = pages.page(&moved, Era::V2025_11_25, second.next_cursor.as_deref()).await.unwrap();
        let mut seen: Vec<String> = [&first, &second, &third].into_iter().flat_map(names).collect();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), third.next_cursor), (450, None));
    }

    #[tokio::test]
    async fn a_walk_whose_order_is_forgotten_starts_over() {
        let first = Pages::default().page(&list(1, 0..450), Era::V2025_11_25, None).await.unwrap();
        let again =
            Pages::default().page(&list(2, 0..450), Era::V2025_11_25, first.next_cursor.as_deref()).await.unwrap();
        assert_eq!(names(&again)[0], "t0");
    }

    #[tokio::test]
    async fn a_bad_cursor_is_refused() {
        let pages = Pages::default();
        for cursor in ["x", "MTox", &URL_SAFE_NO_PAD.encode("1:1:450"), &URL_SAFE_NO_PAD.encode("2:1:200")] {
            assert!(pages.page(&list(1, 0..450), Era::V2026_07_28, Some(cursor)).await.is_err(), "{cursor}");
        }
        assert!(pages.page(&list(1, 0..450), Era::V2026_07_28, Some("")).await.is_ok());
    }

    #[tokio::test]
    async fn each_era_sees_what_it_knows_and_both_ways_say_the_same() {
        let pages = Pages::default();
        for (era, members) in [
            (Era::V2024_11_05, "name description inputSchema"),
            (Era::V2025_03_26, "name description inputSchema annotations"),
            (Era::V2025_06_18, "name title description inputSchema annotations _meta"),
            (Era::V2025_11_25, "name title description inputSchema annotations icons _meta"),
            (Era::V2026_07_28, "name title description inputSchema outputSchema annotations icons _meta"),
        ] {
            let list = list(1, 0..1);
            let bytes: Value = serde_json::from_slice(&pages.first_page(&list, era).await).unwrap();
            let seen: Vec<&str> = bytes["tools"][0].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(seen.join(" "), members);
            let mut page = pages.page(&list, era, None).await.unwrap();
            if !era.is_modern() {
                page.result_type = None;
            }
            assert_eq!(serde_json::to_value(page).unwrap(), bytes);
        }
    }
}
