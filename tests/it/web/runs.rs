//! The pages of runs: found, looked at, followed while they run, stopped, run again, downloaded.

use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, COOKIE, X_CONTENT_TYPE_OPTIONS};
use reqwest::StatusCode;

use super::tool::Browser;
use super::{Site, header};

async fn make(browser: &Browser<'_>, name: &str, code: &str) {
    browser.done("/new", &[("name", name), ("language", "python"), ("code", code)]).await;
}

/// Tries a tool; its run's id.
async fn run(browser: &Browser<'_>, name: &str, json: &str) -> String {
    let shown = browser.done(&format!("/tools/{name}/try"), &[("json", json)]).await;
    shown.split_once("run=").unwrap().1.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_counted_and_looked_at() {
    let site = Site::plain().await;
    let browser = Browser::open(&site).await;
    make(&browser, "fine", "def main(text: str) -> str:\n    print('\\u202e<b>' + text)\n    return text\n").await;
    make(&browser, "wrong", "def main() -> str:\n    raise ValueError('<i>no</i>')\n").await;
    let hostile = r#"{"text": "<img src=x onerror=alert(1)>"}"#;
    let fine = run(&browser, "fine", hostile).await;
    let wrong = run(&browser, "wrong", "{}").await;
    site.app.store.flush_runs().await.unwrap();

    let page = browser.page("/runs").await;
    for part in [&fine, &wrong, "2 calls ended", "Calls per half hour", "50 %", "class=\"bar-a\"", "class=\"bar-b\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (query, first, second) in [
        ("?tool=fine", true, false),
        ("?ending=error", false, true),
        ("?ending=ok&tool=fine&since=1h", true, false),
        ("?tool=wrong&ending=error&since=30d", false, true),
        ("?since=7d&ending=running", false, false),
        (&format!("?before={wrong}"), true, false),
        ("?caller=nobody", false, false),
    ] {
        let page = browser.page(&format!("/runs{query}")).await;
        let shows = |id: &str| page.contains(&format!("/runs/{id}\""));
        assert_eq!((shows(&fine), shows(&wrong)), (first, second), "{query}: {page}");
    }

    let page = browser.page(&format!("/runs/{fine}")).await;
    for part in ["Ok", "&lt;img src=x onerror=alert(1)&gt;", "Limits of this run", "owner", "stdout", "Run again"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<img") && page.contains("&lt;b&gt;"), "{page}");
    let page = browser.page(&format!("/runs/{wrong}")).await;
    assert!(page.contains("isError") && page.contains("&lt;i&gt;no&lt;/i&gt;"), "{page}");
    let list = browser.page("/").await;
    assert!(list.contains("Last 1 runs: 0 ok, 1 failed") && list.contains("100 %"), "{list}");

    let file = site.get(&format!("/runs/{fine}/stdout")).header(COOKIE, &browser.cookie).send().await.unwrap();
    assert_eq!(header(&file, CONTENT_TYPE), "application/octet-stream");
    assert!(header(&file, CONTENT_DISPOSITION).starts_with("attachment; filename=\"run-"));
    assert_eq!(header(&file, X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert_eq!(file.text().await.unwrap(), "\u{202e}<b><img src=x onerror=alert(1)>\n");
    for path in [format!("/runs/{fine}/secrets"), "/runs/x".to_owned(), "/runs/x/stdout".to_owned()] {
        let answer = site.get(&path).header(COOKIE, &browser.cookie).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let again = browser.done(&format!("/runs/{fine}/again"), &[]).await;
    assert!(again.starts_with("/runs/") && !again.ends_with(&fine), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_and_stopped_and_long_outputs_are_whole() {
    let site = Site::plain().await;
    let code =
        "import time\ndef main(ctx):\n    ctx.info('<hello>')\n    ctx.progress(1, 8, 'Bergen')\n    time.sleep(60)\n";
    let browser = Browser::open(&site).await;
    make(&browser, "slow", code).await;
    let id = run(&browser, "slow", "{}").await;
    let page = browser.page(&format!("/runs/{id}")).await;
    for part in ["It is running", "&lt;hello&gt;", "1 of 8 · Bergen", "/cancel"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let follow = site.get(&format!("/runs/{id}/events")).header(COOKIE, &browser.cookie).send().await.unwrap();
    assert_eq!(header(&follow, CONTENT_TYPE), "text/event-stream");
    browser.done(&format!("/runs/{id}/cancel"), &[]).await;
    let said = follow.text().await.unwrap();
    assert!(said.contains("event: said") && said.contains("&lt;hello&gt;") && said.contains("event: ended"), "{said}");
    let page = browser.page(&format!("/runs/{id}")).await;
    assert!(page.contains("It was cancelled"), "{page}");

    let long = "def main() -> None:\n    for _ in range(3):\n        print('x' * 1_000_000)\n";
    make(&browser, "long", long).await;
    let id = run(&browser, "long", "{}").await;
    let page = browser.page(&format!("/runs/{id}")).await;
    assert!(page.len() < 400_000 && page.contains("stdout, whole"), "{}", page.len());
    let whole = site.get(&format!("/runs/{id}/stdout")).header(COOKIE, &browser.cookie).send().await.unwrap();
    assert_eq!(whole.bytes().await.unwrap().len(), 3_000_003);
}
