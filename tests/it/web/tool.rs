//! The pages of a tool: made, tried, saved by two people, compared, returned, deleted; all by plain forms.

use http::header::{COOKIE, LOCATION};
use reqwest::StatusCode;

use super::{Site, field, header};

fn form(pairs: &[(&str, &str)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        text.append_pair(name, value);
    }
    text.finish()
}

/// A signed-in browser.
pub struct Browser<'a> {
    site: &'a Site,
    pub cookie: String,
    pub csrf: String,
}

impl<'a> Browser<'a> {
    pub async fn open(site: &'a Site) -> Self {
        let cookie = site.sign_in().await;
        let page = site.get("/").header(COOKIE, &cookie).send().await.unwrap().text().await.unwrap();
        Self { site, cookie, csrf: field(&page, "csrf") }
    }

    pub async fn page(&self, path: &str) -> String {
        let answer = self.site.get(path).header(COOKIE, &self.cookie).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.text().await.unwrap()
    }

    pub async fn send(&self, path: &str, pairs: &[(&str, &str)]) -> reqwest::Response {
        let mut all = vec![("csrf", self.csrf.as_str())];
        all.extend(pairs);
        self.site.post(path, form(&all)).header(COOKIE, &self.cookie).send().await.unwrap()
    }

    /// Sends a form that is to be obeyed; where it leads.
    pub async fn done(&self, path: &str, pairs: &[(&str, &str)]) -> String {
        let answer = self.send(path, pairs).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{path}: {}", answer.text().await.unwrap());
        header(&answer, LOCATION)
    }

    /// Sends a form that is not to be obeyed; the page that says why.
    pub async fn refused(&self, path: &str, pairs: &[(&str, &str)], status: StatusCode) -> String {
        let answer = self.send(path, pairs).await;
        assert_eq!(answer.status(), status);
        answer.text().await.unwrap()
    }
}

const ADD: &str =
    "def main(a: int, b: int = 2) -> dict[str, int]:\n    print('<i>adding</i>')\n    return {'sum': a + b}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_made_and_tried_with_the_form_of_its_schema() {
    let site = Site::plain().await;
    let browser = Browser::open(&site).await;
    assert!(browser.page("/new").await.contains("name=\"code\""));

    let bad = [("name", "add"), ("language", "python"), ("code", "def main(:\n    pass\n")];
    let page = browser.refused("/new", &bad, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(page.contains("Nothing was saved") && page.contains("▸    1  def main(:"), "{page}");
    let bad = [("name", "a b"), ("language", "python"), ("code", ADD)];
    let page = browser.refused("/new", &bad, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(page.contains("&#60;i&#62;adding") && page.contains("name"), "what was written is kept: {page}");
    let made = browser.done("/new", &[("name", "add"), ("language", "python"), ("code", ADD)]).await;
    assert_eq!(made, "/tools/add");

    let page = browser.page("/tools/add").await;
    for part in ["v1 serving", "name=\"a/a\"", "name=\"a/b\"", "value=\"2\"", "integer required"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let wrong = browser.refused("/tools/add/try", &[("a/a", "x")], StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(wrong.contains("is no number"), "{wrong}");
    let wrong =
        browser.refused("/tools/add/try", &[("json", "{\"a\": \"x\"}")], StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(wrong.contains("do not match inputSchema"), "{wrong}");
    let result = browser.done("/tools/add/try", &[("a/a", "40"), ("a/b", "")]).await;
    let page = browser.page(&result).await;
    for part in ["Ok in", "<span class=\"n\">42</span>", "&lt;i&gt;adding&lt;/i&gt;", "value=\"40\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let schema = browser.page("/tools/add?tab=schema").await;
    assert!(schema.contains("From the code") && schema.contains("Output"), "{schema}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_save_says_so_and_shows_the_difference() {
    let site = Site::with("add").await;
    let browser = Browser::open(&site).await;
    let save = |code: &'static str, seen: &'static str| [("code", code), ("seen", seen), ("tab", "try")];
    browser.done("/tools/add/save", &save("def main() -> int:\n    return 1\n", "1")).await;
    let late = save("def main() -> int:\n    return 2\n", "1");
    let page = browser.refused("/tools/add/save", &late, StatusCode::CONFLICT).await;
    for part in ["Somebody else saved this tool", "Version 2 was saved", "return 1", "return 2", "class=\"diff split\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(field(&page, "seen"), "2", "a second try puts it over the other");
    browser.done("/tools/add/save", &save("def main() -> int:\n    return 2\n", "2")).await;
    let bad = save("def main() -> int:\n    return (\n", "3");
    let page = browser.refused("/tools/add/save", &bad, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(page.contains("aria-invalid=\"true\"") && page.contains("▸    2"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_wait_for_approval_and_versions_come_back() {
    let site = Site::with("add").await;
    let browser = Browser::open(&site).await;
    let settings = [
        ("settings", "1"),
        ("seen", "1"),
        ("tab", "settings"),
        ("network", "list"),
        ("hosts", "api.example.com:443"),
        ("mode", "sync"),
        ("timeout_seconds", "5"),
        ("tags", "one, two"),
        ("title", "Adds"),
        ("description", "What add does"),
    ];
    browser.done("/tools/add/save", &settings).await;
    let page = browser.page("/tools/add?tab=settings").await;
    for part in
        ["Version 2 needs approval", "network: api.example.com:443", "version 1 answers", "one, two", "value=\"Adds\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let versions = browser.page("/tools/add?tab=versions").await;
    for part in ["Needs approval", "Serving", "Return to v1", "Settings and schema", "b3:", "owner"] {
        assert!(versions.contains(part), "{part}: {versions}");
    }
    browser.done("/tools/add/return", &[("to", "1")]).await;
    let page = browser.page("/tools/add?tab=versions").await;
    assert!(page.contains("Back to version 1") && page.contains("v3 serving"), "{page}");
    let page = browser.refused("/tools/add/delete", &[("really", "")], StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(page.contains("Nothing was deleted"), "{page}");
    assert_eq!(browser.done("/tools/add/delete", &[("really", "add")]).await, "/");
    let gone = site.get("/tools/add").header(COOKIE, &browser.cookie).send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}
