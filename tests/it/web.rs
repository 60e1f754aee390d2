//! The web UI through a real listener: signing in, the plain page, and who is kept out.

#![expect(clippy::unwrap_used, reason = "a test that can't be set up fails")]

mod access;
mod list;
mod runs;
mod tool;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE};
use omniforge::app::App;
use omniforge::auth::Auth;
use omniforge::clock::Clock;
use omniforge::config::{ApprovalPolicy, Options, Settings};
use omniforge::http::{Gate, problem};
use omniforge::model::{SandboxLevel, Scope, Scopes, Timestamp};
use omniforge::runner::Spawner;
use omniforge::store::Store;
use omniforge::tools::Draft;
use omniforge::web::{self, WebState};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const FORM: &str = "application/x-www-form-urlencoded";
const NOW: Timestamp = Timestamp(1_800_000_000_000);
const CODE: &str = "def main(net: float) -> float:\n    return net\n";

/// A server with the web UI, and the problem documents of the other doors.
struct Site {
    address: SocketAddr,
    clock: Clock,
    auth: Arc<Auth>,
    app: App,
    client: reqwest::Client,
    _dirs: [TempDir; 2],
}

/// How a test's server differs from the plain one.
#[derive(Default)]
struct Setting {
    public_url: Option<&'static str>,
    sandbox: Option<SandboxLevel>,
    anonymous: bool,
    /// Sign-ins by a clock that the test moves, in a store of their own.
    own_clock: bool,
}

async fn product(dir: &Path, sandbox: SandboxLevel) -> App {
    let options = Options { data_dir: Some(dir.to_owned()), ..Options::default() };
    let settings = Settings { sandbox, approval: ApprovalPolicy::Reach, ..Settings::resolve(options).unwrap() };
    let spawner = Spawner::start_from(Path::new(env!("CARGO_BIN_EXE_omniforge"))).unwrap();
    App::start(&settings, spawner, None).await.unwrap()
}

impl Site {
    async fn start(setting: Setting) -> Self {
        // Fails when another test was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let app = product(dirs[0].path(), setting.sandbox.unwrap_or(SandboxLevel::Full)).await;
        let clock = Clock::manual(NOW);
        let store = Store::open(dirs[1].path(), clock.clone()).await.unwrap();
        store.use_audit_key([7; 32]).await.unwrap();
        let auth = match setting {
            Setting { anonymous: true, .. } => Auth::anonymous(store, [7; 32]).await.unwrap(),
            Setting { own_clock: true, .. } => Auth::new(store, [7; 32]).await.unwrap(),
            _ => app.auth.clone(),
        };
        let auth = Arc::new(auth);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = WebState {
            gate: Gate::new(address, setting.public_url, &[], &[]).unwrap(),
            auth: Arc::clone(&auth),
            tools: app.tools.clone(),
            clock: if setting.own_clock { clock.clone() } else { app.store.clock().clone() },
            listen: address,
            public_url: setting.public_url.map(str::to_owned),
        };
        let others = axum::Router::new().fallback(|| async { problem(StatusCode::NOT_FOUND, "there is nothing here") });
        let routes = web::error_pages(state.clone(), web::router(state).merge(others));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        Self { address, clock, auth, app, client, _dirs: dirs }
    }

    async fn plain() -> Self {
        Self::start(Setting::default()).await
    }

    /// The plain one, with a tool of this name.
    async fn with(tool: &str) -> Self {
        let site = Self::plain().await;
        site.save(tool, Draft::default()).await;
        site
    }

    async fn save(&self, name: &str, draft: Draft) {
        let description = draft.description.or_else(|| Some(Some(format!("What {name} does"))));
        let draft = Draft { code: Some(CODE.to_owned()), description, ..draft };
        let owner = self.app.auth.owner_caller(Scopes::of(&Scope::ALL));
        self.app.tools.make_tool(&owner, name, draft).await.unwrap();
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(self.url(path)).header(ACCEPT, BROWSER)
    }

    /// A form as a browser sends it from one of the server's own pages.
    fn post(&self, path: &str, body: String) -> reqwest::RequestBuilder {
        let request = self.client.post(self.url(path)).header(ACCEPT, BROWSER).header(CONTENT_TYPE, FORM);
        request.header(ORIGIN, self.url("")).header("sec-fetch-site", "same-origin").body(body)
    }

    /// The cookie of a fresh session.
    async fn sign_in(&self) -> String {
        let code = self.auth.new_sign_in_link().await.unwrap();
        let answer = self.post("/signin", format!("code={code}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        header(&answer, SET_COOKIE).split(';').next().unwrap().to_owned()
    }

    /// The first page, as somebody who is signed in sees it.
    async fn first_page(&self) -> String {
        let cookie = self.sign_in().await;
        self.get("/").header(COOKIE, cookie).send().await.unwrap().text().await.unwrap()
    }
}

fn header(answer: &Response, name: http::HeaderName) -> String {
    let value = answer.headers().get(&name).unwrap_or_else(|| panic!("no {name} in {:?}", answer.headers()));
    value.to_str().unwrap().to_owned()
}

/// The value of a form's hidden field.
fn field(page: &str, name: &str) -> String {
    let (_, rest) =
        page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no {name}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once() {
    let site = Site::with("add_vat").await;
    let code = site.auth.new_sign_in_link().await.unwrap();

    for _ in 0..2 {
        let link = site.get(&format!("/signin/{code}")).send().await.unwrap();
        assert_eq!(link.status(), StatusCode::OK, "looking spends nothing");
        assert_eq!(header(&link, REFERRER_POLICY), "no-referrer");
        assert_eq!(header(&link, CACHE_CONTROL), "no-store");
        assert_eq!(field(&link.text().await.unwrap(), "code"), code);
    }

    let answer = site.post("/signin", format!("code={code}")).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(header(&answer, LOCATION), "/");
    let cookie = header(&answer, SET_COOKIE);
    assert!(cookie.starts_with(&format!("omniforge_session_{}=", site.address.port())), "{cookie}");
    for flag in ["; HttpOnly", "; SameSite=Strict", "; Path=/;", "; Max-Age=43200"] {
        assert!(cookie.contains(flag), "{flag}: {cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(&code), "{cookie}");

    let page = site.get("/").header(COOKIE, cookie.split(';').next().unwrap()).send().await.unwrap();
    let page = page.text().await.unwrap();
    for part in ["add_vat", "What add_vat does", "Python", "Ready", "v1", "No runs yet", "aria-checked=\"true\""] {
        assert!(page.contains(part), "{part}: {page}");
    }

    let again = site.post("/signin", format!("code={code}")).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::GONE);
    assert!(again.headers().get(SET_COOKIE).is_none());
    let again = again.text().await.unwrap();
    assert!(again.contains("used already") && again.contains("omniforge serve"), "{again}");
    assert!(!again.contains(&code), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_links_and_idle_sessions_end() {
    let site = Site::start(Setting { own_clock: true, ..Setting::default() }).await;
    site.save("add_vat", Draft::default()).await;
    let cookie = site.sign_in().await;
    let code = site.auth.new_sign_in_link().await.unwrap();
    let first = || async { site.get("/").header(COOKIE, &cookie).send().await.unwrap() };

    site.clock.advance(Duration::from_secs(16 * 60));
    let late = site.post("/signin", format!("code={code}")).send().await.unwrap();
    assert_eq!(late.status(), StatusCode::GONE);
    let page = first().await;
    assert!(header(&page, SET_COOKIE).starts_with(&cookie), "each page keeps the cookie");
    assert!(page.text().await.unwrap().contains("add_vat"));

    site.clock.advance(Duration::from_secs(12 * 60 * 60));
    let page = first().await.text().await.unwrap();
    assert!(page.contains("Sign in to") && !page.contains("add_vat"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_can_be_none_is_refused_at_once() {
    let site = Site::plain().await;
    for code in ["%3Cscript%3E", "a%0Ab", &"x".repeat(200)] {
        let page = site.get(&format!("/signin/{code}")).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::GONE, "{code}");
        assert!(!page.text().await.unwrap().contains("<script"), "{code}");
    }
    let empty = site.post("/signin", String::new()).send().await.unwrap();
    assert_eq!(empty.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(empty.text().await.unwrap().contains("code"));
    let long = site.post("/signin", format!("code={}", "x".repeat(40 << 10))).send().await.unwrap();
    assert_eq!(long.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_sites_are_refused() {
    let site = Site::plain().await;
    let code = site.auth.new_sign_in_link().await.unwrap();
    let send = |name: &'static str, value: String| {
        let request = site.client.post(site.url("/signin")).header(ACCEPT, BROWSER).header(CONTENT_TYPE, FORM);
        request.header(name, value).body(format!("code={code}")).send()
    };
    let other_port = format!("http://{}:1", site.address.ip());
    for (name, value) in [
        ("origin", "http://evil.example".to_owned()),
        ("origin", other_port),
        ("origin", "null".to_owned()),
        ("sec-fetch-site", "cross-site".to_owned()),
        ("sec-fetch-site", "same-site".to_owned()),
        ("host", "evil.example".to_owned()),
    ] {
        let answer = send(name, value.clone()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{name}: {value}");
        assert!(answer.headers().get(SET_COOKIE).is_none());
        assert!(header(&answer, CONTENT_TYPE).starts_with("text/html"), "{name}: {value}");
    }
    let own = site.post("/signin", format!("code={code}")).send().await.unwrap();
    assert_eq!(own.status(), StatusCode::SEE_OTHER, "none of them spent the code");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_from_other_sites_open_the_sign_in_page() {
    let site = Site::plain().await;
    let follow = |dest: &'static str| {
        let request = site.get("/").header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "navigate");
        request.header("sec-fetch-dest", dest).send()
    };
    assert_eq!(follow("document").await.unwrap().status(), StatusCode::OK);
    assert_eq!(follow("iframe").await.unwrap().status(), StatusCode::FORBIDDEN);
    let rebound = site.get("/").header(HOST, "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), StatusCode::FORBIDDEN);
    assert!(rebound.text().await.unwrap().contains("allowed_hosts"));
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_needs_the_pages_own_token() {
    let site = Site::with("add_vat").await;
    let cookie = site.sign_in().await;
    let page = || async { site.get("/").header(COOKIE, &cookie).send().await.unwrap().text().await.unwrap() };
    let csrf = field(&page().await, "csrf");
    for wrong in ["csrf=", "csrf=x", &format!("csrf={}", csrf.to_uppercase())] {
        let refused = site.post("/signout", wrong.to_owned()).header(COOKIE, &cookie).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{wrong}");
    }
    let foreign = site.client.post(site.url("/signout")).header(CONTENT_TYPE, FORM).header(COOKIE, &cookie);
    let foreign = foreign.header(ORIGIN, "http://evil.example").body(format!("csrf={csrf}")).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    assert_eq!(header(&foreign, CONTENT_TYPE), "application/problem+json");
    assert!(page().await.contains("add_vat"), "still signed in");

    let out = site.post("/signout", format!("csrf={csrf}")).header(COOKIE, &cookie).send().await.unwrap();
    assert_eq!(out.status(), StatusCode::SEE_OTHER);
    assert!(header(&out, SET_COOKIE).contains("Max-Age=0"));
    assert!(page().await.contains("Sign in to"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_confined_and_hostile_texts_stay_texts() {
    let site = Site::plain().await;
    let title = Some(Some("<script>alert(1)</script>".to_owned()));
    let description = Some(Some("\"><img src=x onerror=alert(2)>'{{ 7*7 }}<!-- &amp; ".to_owned()));
    let tags = Some(vec!["<b>tag</b>".to_owned()]);
    let network = Some(vec!["example.com:443".to_owned()]);
    site.save("evil", Draft { title, tags: tags.clone(), network, ..Draft::default() }).await;
    site.save("plain", Draft { description, tags, ..Draft::default() }).await;
    site.save("off", Draft { enabled: Some(false), ..Draft::default() }).await;
    let cookie = site.sign_in().await;
    let page = site.get("/").header(COOKIE, &cookie).send().await.unwrap();
    let policy = header(&page, http::header::CONTENT_SECURITY_POLICY);
    let (before, rest) = policy.split_once("'nonce-").unwrap();
    let (nonce, after) = rest.split_once('\'').unwrap();
    assert_eq!(before, "default-src 'none'; script-src 'self'; style-src 'self' ");
    assert_eq!(
        after,
        "; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    assert_eq!(nonce.len(), 22);
    assert_eq!(header(&page, http::header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert_eq!(header(&page, http::header::X_FRAME_OPTIONS), "DENY");
    assert_eq!(header(&page, CACHE_CONTROL), "no-store");
    assert_eq!(header(&page, http::header::VARY), "Accept, Cookie");
    let page = page.text().await.unwrap();
    for raw in ["<script", "<img", "<!--", " style=", "onerror=alert(2)>"] {
        assert!(!page.contains(raw), "{raw}: {page}");
    }
    for part in ["&#60;script&#62;", "{{ 7*7 }}", "Needs approval", "none, newest v1", "&#60;b&#62;tag", "Off"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_server_information() {
    let site = Site::with("add_vat").await;
    for accept in ["*/*", "application/json", ""] {
        let answer = site.client.get(site.url("/")).header(ACCEPT, accept).send().await.unwrap();
        assert_eq!(header(&answer, CONTENT_TYPE), "application/json");
        let information: Value = answer.json().await.unwrap();
        assert_eq!(information["name"], "omniforge-mcp");
        assert_eq!(information["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(information["mcp"], format!("{}/mcp", site.url("")));
        assert_eq!(information["endpoints"]["sse"], format!("{}/sse", site.url("")));
        assert!(!information.to_string().contains("add_vat"), "{information}");
    }
    let page = site.get("/").send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.text().await.unwrap().contains("Sign in to"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_stands_before_everything() {
    let public_url = Some("https://forge.example/tools");
    let site = Site::start(Setting { public_url, ..Setting::default() }).await;
    let own = ("origin", "https://forge.example");
    let code = site.auth.new_sign_in_link().await.unwrap();
    let link = site.get(&format!("/signin/{code}")).header(HOST, "forge.example").send().await.unwrap();
    let link = link.text().await.unwrap();
    assert!(link.contains("action=\"/tools/signin\"") && link.contains("href=\"/tools/assets/"), "{link}");
    let form = site.client.post(site.url("/signin")).header(HOST, "forge.example").header(CONTENT_TYPE, FORM);
    let answer = form.header(own.0, own.1).body(format!("code={code}")).send().await.unwrap();
    assert_eq!(header(&answer, LOCATION), "/tools/");
    let cookie = header(&answer, SET_COOKIE);
    assert!(cookie.starts_with("omniforge_session_443=") && cookie.contains("; Path=/tools/;"), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let page = site.get("/").header(COOKIE, cookie.split(';').next().unwrap()).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains("action=\"/tools/examples/add_vat\"") && page.contains("Make your first tool"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn assets_are_kept_for_good_under_the_hash_of_their_content() {
    let site = Site::plain().await;
    let page = site.get("/").send().await.unwrap().text().await.unwrap();
    let (_, rest) = page.split_once("rel=\"stylesheet\" href=\"").unwrap();
    let path = rest.split('"').next().unwrap();
    let style = site.get(path).send().await.unwrap();
    assert_eq!(header(&style, CONTENT_TYPE), "text/css; charset=utf-8");
    assert_eq!(header(&style, CACHE_CONTROL), "public, max-age=31536000, immutable");
    let body = style.bytes().await.unwrap();
    assert!(path.contains(&blake3::hash(&body).to_hex()[..16]), "{path}");
    let stale = site.get("/assets/omniforge.0000000000000000.css").send().await.unwrap();
    assert_eq!(stale.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_pages_for_browsers_and_documents_for_programs() {
    let site = Site::plain().await;
    let page = site.get("/nowhere").send().await.unwrap();
    assert_eq!(page.status(), StatusCode::NOT_FOUND);
    assert!(header(&page, CONTENT_TYPE).starts_with("text/html"));
    assert!(page.text().await.unwrap().contains("There is nothing here."));
    for path in ["/.well-known/nothing", "/mcp", "/sse", "/messages"] {
        let answer = site.get(path).send().await.unwrap();
        assert_eq!(header(&answer, CONTENT_TYPE), "application/problem+json", "{path}");
    }
    let document = site.client.get(site.url("/nowhere")).send().await.unwrap();
    assert_eq!(header(&document, CONTENT_TYPE), "application/problem+json");

    let broken = Site::start(Setting { own_clock: true, ..Setting::default() }).await;
    broken.app.store.close().await.unwrap();
    let page = broken.first_page().await;
    assert!(page.contains("The server failed") && page.contains("under the id"), "{page}");
    assert!(!page.contains("pool") && !page.contains("sqlx"), "{page}");
}
