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
    assert_eq!(names(&bench, text("warm or")).await[0], "weather", "any word, the telling one first");
    assert_eq!(names(&bench, text("pricing of a countries taxes")).await, ["add_vat"], "words in another form");
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
    assert_eq!(names(&bench, text("NOT warm")).await, ["weather"], "an operator is a word");
    assert_eq!(names(&bench, text("rates or fails")).await, ["fetchRates"]);
    assert_eq!(names(&bench, text("rate")).await, ["fetchRates"], "names are split before capitals");
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

/// Tools of an office: many that say a lot of the same few things.
const OFFICE: [(&str, &str); 40] = [
    ("invoice_create", "Creates an invoice for a customer."),
    ("invoice_list", "Lists the invoices of a customer, newest first."),
    ("invoice_get", "Shows an invoice."),
    ("invoice_send", "Sends an invoice by mail."),
    ("invoice_delete", "Deletes a draft of an invoice."),
    ("invoice_update", "Changes the lines of an invoice."),
    ("invoice_pay", "Marks an invoice as paid."),
    ("invoice_remind", "Reminds a customer of an invoice that is due."),
    ("invoice_pdf", "Writes an invoice as PDF."),
    ("invoice_search", "Searches invoices by text."),
    ("credit_note_create", "Refunds an invoice"),
    ("customer_create", "Adds a customer."),
    ("customer_list", "Lists customers."),
    ("customer_merge", "Joins two customers that are the same."),
    ("customer_export", "Writes all customers as a spreadsheet."),
    ("mail_send", "Sends a message to a person."),
    ("mail_search", "Searches the mailbox."),
    ("calendar_add", "Puts an appointment into the calendar."),
    ("calendar_free", "Finds when several people have time for a meeting."),
    ("resizePicture", "Makes an image smaller."),
    ("HTTPFetch", "Gets what is at a URL."),
    ("convertCurrency", "Turns an amount of money into another currency at today's rate."),
    ("weather", "Says how warm it is going to be."),
    ("vat_check", "Checks a tax number with the authorities."),
    ("bank_statement", "Lists what came into and went out of an account."),
    ("sepa_transfer", "Pays money to an account."),
    ("stock_count", "Says how many pieces of an article are in the warehouse."),
    ("stock_order", "Orders articles from their supplier."),
    ("ship_parcel", "Has a parcel picked up and gives its tracking number."),
    ("parcel_track", "Says where a parcel is."),
    ("translate", "Translates a text into another language."),
    ("summarise", "Says in a few sentences what a document says."),
    ("ocr", "Reads the text in a scanned page."),
    ("pdf_merge", "Joins several PDF files."),
    ("holiday_request", "Asks for days off."),
    ("expense_report", "Hands in the receipts of a business trip."),
    ("timesheet_add", "Notes hours that were worked."),
    ("ticket_open", "Reports a problem to the support team."),
    ("ticket_close", "Says that a problem is solved."),
    ("db_query", "Reads rows of the reporting database with SQL."),
];

#[tokio::test]
async fn what_is_described_is_among_the_first_five() {
    let bench = Bench::new().await;
    for (name, description) in OFFICE {
        save(&bench, name, description, &[]).await;
    }
    let mut with_arguments = bench.tool("lookup");
    with_arguments.version.definition.description = "Looks something up.".to_owned();
    with_arguments.version.definition.input_schema = serde_json::json!({"type": "object", "properties":
        {"licencePlate": {"type": "string", "description": "As it stands on the vehicle"}}});
    bench.store.create_tool(&with_arguments).await.unwrap();
    for (query, wanted) in [
        ("refund an invoice", "credit_note_create"),
        ("refunding invoices to a customer", "credit_note_create"),
        ("how do I get the money back: refunds", "credit_note_create"),
        ("shrink images, resizing", "resizePicture"),
        ("fetching a web page over http", "HTTPFetch"),
        ("currencies conversion", "convertCurrency"),
        ("schedule a meeting for several people", "calendar_free"),
        ("report problems to support", "ticket_open"),
        ("tracking a parcel", "parcel_track"),
        ("merge pdfs", "pdf_merge"),
        ("working hours", "timesheet_add"),
        ("who owns the vehicle with this licence plate", "lookup"),
        ("translation of texts", "translate"),
        ("supplier orders", "stock_order"),
    ] {
        let found = names(&bench, text(query)).await;
        assert!(found.iter().take(5).any(|name| name == wanted), "{query}: {found:?}");
    }
    assert_eq!(names(&bench, text("refund an invoice")).await[0], "credit_note_create");
}
