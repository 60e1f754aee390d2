//! The search: words, beginnings, parts of names, tags, and text that is meant to break it.

use omniforge::model::PrincipalId;
use omniforge::store::{NewTool, PrincipalKind, ToolSearch};

use super::Bench;

async fn names(bench: &Bench, search: ToolSearch) -> Vec<String> {
    let found = bench.store.search_tools(&ToolSearch { limit: 100, ..search }).await.unwrap();
    assert_eq!(found.total, found.tools.len() as u64);
    found.tools.into_iter().map(|found| found.tool.name.to_string()).collect()
}

fn text(text: &str) -> ToolSearch {
    ToolSearch { text: text.to_owned(), ..ToolSearch::default() }
}

async fn save(bench: &Bench, name: &str, description: &str, tags: &[&str]) {
    let mut tool = bench.tool(name);
    tool.version.definition.description = description.to_owned();
    tool.version.definition.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    bench.store.create_tool(&tool).await.unwrap();
}

async fn shop() -> Bench {
    let bench = Bench::new().await;
    save(&bench, "add_vat", "Adds the tax of a country to a price.", &["Money", "tax"]).await;
    save(&bench, "weather", "Says how warm it is in Zürich. It is not about vat.", &["outdoors"]).await;
    save(&bench, "fetchRates", "Reads currency rates OR fails.", &["money"]).await;
    bench
}

#[tokio::test]
async fn words_beginnings_and_parts_of_names_are_found() {
    let bench = shop().await;
    assert_eq!(names(&bench, text("")).await, ["fetchRates", "weather", "add_vat"], "blank is all, last updated first");
    assert_eq!(names(&bench, text("vat")).await, ["add_vat", "weather"], "a name counts more than a description");
    assert_eq!(names(&bench, text("zurich WARM")).await, ["weather"]);
    assert_eq!(names(&bench, text("curr")).await, ["fetchRates"]);
    assert_eq!(names(&bench, text("chrat")).await, ["fetchRates"]);
    assert_eq!(names(&bench, text("outdoors")).await, ["weather"]);
    assert!(names(&bench, text("warm price")).await.is_empty(), "every word must be there");
}

#[tokio::test]
async fn hostile_text_is_only_text() {
    let bench = shop().await;
    for hostile in [
        "\"",
        "\"\"",
        "'",
        "*",
        "(",
        ")",
        "a AND",
        "NOT",
        "NEAR(a b)",
        "name:vat",
        "{name}: x",
        "^",
        "-vat \"",
        "\\",
        "%",
        "\u{0}",
        "vat\u{0}x\"",
        "😀",
        "👩‍👩‍👧",
        "'; DROP TABLE tools; --",
        "\u{202e}",
        "\"* OR \"a\"*",
    ] {
        let _ = names(&bench, text(hostile)).await;
    }
    let _ = names(&bench, text(&"a ".repeat(2_000))).await;
    assert_eq!(names(&bench, text("vat OR warm")).await.len(), 0, "an operator is a word");
    assert_eq!(names(&bench, text("rates or fails")).await, ["fetchRates"]);
    assert_eq!(names(&bench, text("add_v")).await, ["add_vat"]);
    assert!(names(&bench, text("_")).await.contains(&"add_vat".to_owned()), "no wildcard, a part of the name");
    assert_eq!(names(&bench, text("")).await.len(), 3);
}

#[tokio::test]
async fn tags_owner_switch_and_pages_narrow_it() {
    let bench = shop().await;
    let tagged = |tags: &[&str]| ToolSearch {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..ToolSearch::default()
    };
    assert_eq!(names(&bench, tagged(&["MONEY"])).await, ["fetchRates", "add_vat"]);
    assert_eq!(names(&bench, tagged(&["money", "tax"])).await, ["add_vat"]);
    assert!(names(&bench, tagged(&["mon"])).await.is_empty());

    let (guest, _) = bench.store.ensure_principal("guest", PrincipalKind::Client).await.unwrap();
    bench.store.create_tool(&NewTool { owner: guest.id.clone(), ..bench.tool("guests") }).await.unwrap();
    let of = |owner: &PrincipalId| ToolSearch { owner: Some(owner.clone()), ..ToolSearch::default() };
    assert_eq!(names(&bench, of(&guest.id)).await, ["guests"]);
    assert_eq!(names(&bench, of(&bench.owner)).await.len(), 3);

    let weather = bench.store.get_tool_by_name("weather").await.unwrap().unwrap();
    bench.store.set_enabled(&weather.id, false).await.unwrap();
    assert!(names(&bench, text("warm")).await.is_empty());
    assert_eq!(names(&bench, ToolSearch { include_disabled: true, ..text("warm") }).await, ["weather"]);

    let page = ToolSearch { limit: 2, offset: 1, include_disabled: true, ..text("") };
    let found = bench.store.search_tools(&page).await.unwrap();
    assert_eq!((found.total, found.tools.len()), (4, 2));
}

#[tokio::test]
async fn only_the_latest_version_is_found_and_a_deleted_tool_is_not() {
    let bench = shop().await;
    let weather = bench.store.get_tool_by_name("weather").await.unwrap().unwrap();
    bench.store.add_version(&weather.id, 1, &bench.version("Measures rain.", false)).await.unwrap();
    assert!(names(&bench, text("warm")).await.is_empty());
    assert_eq!(names(&bench, text("rain")).await, ["weather"]);
    bench.store.delete_tool(&weather.id).await.unwrap();
    assert!(names(&bench, text("rain")).await.is_empty());
}
