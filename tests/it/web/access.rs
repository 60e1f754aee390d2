//! Tokens, sessions, connecting a client, and the pages about the server itself.

use http::header::COOKIE;
use reqwest::StatusCode;

use super::Site;
use super::tool::Browser;

/// The token that a page shows.
fn token(page: &str) -> String {
    let start = page.find("ofk_").unwrap_or_else(|| panic!("no token: {page}"));
    page[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_made_for_a_client_shown_once_and_revoked() {
    let site = Site::plain().await;
    let browser = Browser::open(&site).await;
    let keys = ["claude-code", "claude", "cursor", "vscode", "codex", "gemini", "omp", "chatgpt", "other", "bridge"];
    for key in keys {
        let page = browser.page(&format!("/connect/{key}")).await;
        assert!(page.contains(&site.url("/mcp")), "{key}: {page}");
        // VS Code asks for the token itself.
        assert!(page.contains("YOUR_TOKEN") || key == "vscode", "{key}: {page}");
        assert!(!page.contains("ofk_"), "{key}");
    }
    let pairs = [("name", "Codex"), ("expires", "30")];
    let made = browser.refused("/connect/codex", &pairs, StatusCode::CREATED).await;
    let text = token(&made);
    assert!(made.contains("It may call and author") && made.contains(&format!("export FORGE_TOKEN={text}")), "{made}");
    let header = format!("Bearer {text}");
    let caller = site.auth.authenticate(Some(&header)).await.unwrap();
    assert_eq!(caller.scopes.to_string(), "call author");
    let page = browser.page("/connect/codex").await;
    assert!(page.contains("Connected") && !page.contains(&text), "{page}");
    assert!(browser.page("/connect/omp").await.contains("Waiting for the first call"));

    let list = browser.page("/tokens").await;
    assert!(list.contains("Codex") && !list.contains(&text), "{list}");
    let id = text.split('_').nth(1).unwrap();
    browser.done(&format!("/tokens/{id}/revoke"), &[]).await;
    assert!(browser.page("/tokens").await.contains("Revoked"));
    assert!(site.auth.authenticate(Some(&header)).await.is_err());
    let none = browser.refused("/tokens", &[("name", "x")], StatusCode::UNPROCESSABLE_ENTITY).await;
    assert!(none.contains("at least one of the scopes") && none.contains("aria-invalid"), "{none}");
    let all = [("name", "<b>all</b>"), ("scope", "call"), ("scope", "admin"), ("expires", "never")];
    let made = browser.refused("/tokens", &all, StatusCode::CREATED).await;
    assert!(made.contains("call and admin") && made.contains("&#60;b&#62;all"), "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_ended() {
    let site = Site::plain().await;
    let browser = Browser::open(&site).await;
    let other = Browser::open(&site).await;
    let page = browser.page("/tokens").await;
    assert!(page.contains("This browser") && page.matches("/sessions/").count() == 1, "{page}");
    let (_, rest) = page.split_once("/sessions/").unwrap();
    let id = rest.split('/').next().unwrap();
    browser.done(&format!("/sessions/{id}/end"), &[]).await;
    let out = site.get("/").header(COOKIE, &other.cookie).send().await.unwrap().text().await.unwrap();
    assert!(out.contains("Sign in to"), "{out}");
    assert!(browser.page("/").await.contains("Make your first tool"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_how_it_is_and_what_was_done() {
    let site = Site::with("add").await;
    let browser = Browser::open(&site).await;
    let page = browser.page("/settings").await;
    for part in ["Sandbox", "Full: namespaces", "Reach: network", "512 MiB", "3600 s", env!("CARGO_PKG_VERSION")] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let audit = browser.page("/audit?action=tool").await;
    assert!(audit.contains("tool.create") && audit.contains("add") && !audit.contains("sign_in.use"), "{audit}");
    assert!(browser.page("/audit").await.contains("sign_in.use"));
    let content = browser.page("/content").await;
    assert!(content.contains("omniforge_save_resource"), "{content}");
    for path in ["/tokens", "/audit", "/settings", "/connect", "/content", "/runs", "/new", "/tools/add"] {
        let page = site.get(path).send().await.unwrap().text().await.unwrap();
        assert!(page.contains("Sign in to") && !page.contains("csrf"), "{path}: {page}");
    }
}
