//! The list of tools, the first visit, and the theme.

use http::header::{COOKIE, LOCATION, SET_COOKIE};
use omniforge::model::{SandboxLevel, Scope, Scopes};
use omniforge::tools::Draft;
use reqwest::StatusCode;

use super::{Setting, Site, field, header};

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_searched_filtered_and_switched() {
    let site = Site::plain().await;
    site.save("add_vat", Draft { tags: Some(vec!["finance".to_owned()]), ..Draft::default() }).await;
    site.save("geo", Draft { tags: Some(vec!["maps".to_owned()]), ..Draft::default() }).await;
    let cookie = site.sign_in().await;
    let page = |path: &'static str| {
        let request = site.get(path).header(COOKIE, &cookie);
        async move { request.send().await.unwrap().text().await.unwrap() }
    };
    let shows = |page: &str, name: &str| page.contains(&format!("/tools/{name}\""));
    for (path, first, second) in [
        ("/", true, true),
        ("/?q=vat", true, false),
        ("/?tag=maps", false, true),
        ("/?state=off", false, false),
        ("/?q=nothing-like-it", false, false),
    ] {
        let page = page(path).await;
        assert_eq!((shows(&page, "add_vat"), shows(&page, "geo")), (first, second), "{path}: {page}");
    }
    let csrf = field(&page("/").await, "csrf");
    let switch = |csrf: String| {
        site.post("/tools/geo/enabled", format!("csrf={csrf}&enabled=off&back=list")).header(COOKIE, &cookie).send()
    };
    assert_eq!(switch("x".to_owned()).await.unwrap().status(), StatusCode::FORBIDDEN);
    assert!(!shows(&page("/?state=off").await, "geo"));
    let answer = switch(csrf).await.unwrap();
    assert_eq!((answer.status(), header(&answer, LOCATION).as_str()), (StatusCode::SEE_OTHER, "/"));
    assert!(shows(&page("/?state=off").await, "geo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_visit_offers_an_example_in_one_click_and_a_theme_is_kept() {
    let site = Site::plain().await;
    let cookie = site.sign_in().await;
    let page = site.get("/").header(COOKIE, &cookie).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Make your first tool") && page.contains("Push a folder"), "{page}");
    let added = site.post("/examples/add_vat", format!("csrf={}", field(&page, "csrf"))).header(COOKIE, &cookie);
    let added = added.send().await.unwrap();
    assert!(header(&added, LOCATION).starts_with("/tools/add_vat?run="), "{added:?}");
    let run = header(&added, LOCATION).split_once("run=").unwrap().1.to_owned();
    let owner = site.app.auth.owner_caller(Scopes::of(&Scope::ALL));
    let run = site.app.tools.view_run(&owner, &run).await.unwrap().row;
    assert!(run.result.unwrap().contains(r#""gross":"12.00""#));

    let dark = site.post("/theme", "theme=dark".to_owned()).header("referer", site.url("/?q=a")).send().await.unwrap();
    assert_eq!(header(&dark, LOCATION), "/?q=a");
    let theme = header(&dark, SET_COOKIE).split(';').next().unwrap().to_owned();
    let page = site.get("/").header(COOKIE, format!("{cookie}; {theme}")).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-theme=\"dark\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weaker_doors_and_sandboxes_are_shown() {
    let sandbox = Some(SandboxLevel::None);
    let setting = Setting { sandbox, anonymous: true, ..Setting::default() };
    let site = Site::start(setting).await;
    let page = site.get("/").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Nobody has to sign in") && page.contains("Tools run without a sandbox"), "{page}");
    assert!(!page.contains("/signout"), "{page}");
}
