//! The templates and what they show.

use askama::Template;
use http::{HeaderMap, StatusCode};
use time::{Duration, OffsetDateTime};

use super::assets::{ICON, STYLE};
use super::pages::{ToolListing, ToolSummary};
use super::site::Site;
use crate::model::{Language, SandboxLevel, Timestamp};
use crate::tools::ToolState;

/// What stands where the reader's own token belongs.
const TOKEN: &str = "YOUR_TOKEN";

/// What every page needs: where its files and its forms are.
pub(super) struct Frame {
    pub(super) prefix: String,
    pub(super) style: String,
    pub(super) icon: String,
}

impl Frame {
    pub(super) fn new(site: &Site) -> Self {
        let asset = |name: &str| format!("{}/assets/{name}", site.prefix());
        Self { prefix: site.prefix().to_owned(), style: asset(&STYLE.name), icon: asset(&ICON.name) }
    }
}

/// What a person who isn't signed in sees.
pub(super) enum SignIn {
    /// The link's page: one button spends the code.
    Link {
        /// The link's code.
        code: String,
    },
    /// A code that leads nowhere.
    Used,
    /// No code at all.
    NoLink,
}

impl SignIn {
    fn is_link(&self) -> bool {
        matches!(self, Self::Link { .. })
    }
}

/// The sign-in page.
#[derive(Template)]
#[template(path = "sign-in.html")]
pub(super) struct SignInPage {
    frame: Frame,
    host: String,
    state: SignIn,
}

impl SignInPage {
    pub(super) fn new(site: &Site, headers: &HeaderMap, state: SignIn) -> Self {
        Self { frame: Frame::new(site), host: site.authority(headers), state }
    }
}

/// The page of an error.
#[derive(Template)]
#[template(path = "error.html")]
pub(super) struct ErrorPage {
    frame: Frame,
    title: &'static str,
    status: u16,
    detail: String,
}

impl ErrorPage {
    pub(super) fn new(site: &Site, status: StatusCode, detail: String) -> Self {
        let title = match status {
            StatusCode::NOT_FOUND => "Nothing here",
            StatusCode::FORBIDDEN => "Not allowed",
            status if status.is_server_error() => "The server failed",
            status => status.canonical_reason().unwrap_or("Not possible"),
        };
        Self { frame: Frame::new(site), title, status: status.as_u16(), detail }
    }
}

/// Who looks at a page.
pub(super) struct Reader {
    /// Their name.
    pub(super) name: String,
    /// What their forms carry; `None` where nobody had to sign in.
    pub(super) csrf: Option<String>,
}

/// The column beside every page: where one can go, and who is here.
pub(super) struct Side {
    pub(super) reader: Reader,
    pub(super) host: String,
    here: &'static str,
    pub(super) tools: Option<usize>,
    pub(super) waiting: Option<usize>,
}

impl Side {
    /// `here`: the page's name in the menu.
    pub(super) fn new(site: &Site, headers: &HeaderMap, reader: Reader, here: &'static str) -> Self {
        Self { reader, host: site.authority(headers), here, tools: None, waiting: None }
    }

    /// With the number of things that wait.
    pub(super) fn with_waiting(self, count: usize) -> Self {
        Self { waiting: Some(count), ..self }
    }

    pub(super) fn at(&self, page: &str) -> bool {
        self.here == page
    }
}

/// The plain page: tools, and how to connect a client.
#[derive(Template)]
#[template(path = "tools.html")]
pub(super) struct ToolsPage {
    frame: Frame,
    side: Side,
    version: &'static str,
    sandbox: SandboxLevel,
    open_to_all: bool,
    tools: Vec<ToolRow>,
    total: usize,
    mcp_url: String,
    snippets: [Snippet; 3],
}

impl ToolsPage {
    pub(super) fn new(place: (&Site, &HeaderMap), doors: Doors, reader: Reader, listing: Listing) -> Self {
        let (site, headers) = place;
        let mcp_url = site.mcp_url(headers);
        let tools: Vec<ToolRow> = listing.shown.tools.iter().map(|tool| ToolRow::new(tool, listing.now)).collect();
        let total = listing.shown.total.max(tools.len());
        let side = Side { tools: Some(total), ..Side::new(site, headers, reader, "tools") };
        Self {
            frame: Frame::new(site),
            side,
            version: env!("CARGO_PKG_VERSION"),
            sandbox: doors.sandbox,
            open_to_all: doors.open_to_all,
            total,
            tools,
            snippets: Snippet::all(&mcp_url),
            mcp_url,
        }
    }
}

/// How well the server is closed: what is weak is shown on the page.
pub(super) struct Doors {
    /// How runs are confined.
    pub(super) sandbox: SandboxLevel,
    /// Nobody needs a credential.
    pub(super) open_to_all: bool,
}

/// The tools that a page shows, and when it shows them.
pub(super) struct Listing {
    pub(super) shown: ToolListing,
    pub(super) now: Timestamp,
}

/// A line of the list of tools.
struct ToolRow {
    name: String,
    title: Option<String>,
    description: String,
    language: &'static str,
    status: Mark,
    version: String,
    changed: Moment,
}

impl ToolRow {
    fn new(tool: &ToolSummary, now: Timestamp) -> Self {
        Self {
            name: tool.name.clone(),
            title: tool.title.clone().filter(|title| *title != tool.name),
            description: tool.description.clone(),
            language: language(tool.language),
            status: Mark::of(tool.status),
            version: match tool.serving_version {
                Some(serving) if serving == tool.latest_version => format!("v{serving}"),
                Some(serving) => format!("v{serving}, newest v{}", tool.latest_version),
                None => format!("none, newest v{}", tool.latest_version),
            },
            changed: Moment::new(tool.updated_at, now),
        }
    }
}

/// A status: a shape, a colour and words.
struct Mark {
    icon: &'static str,
    colour: &'static str,
    words: &'static str,
}

impl Mark {
    fn of(status: ToolState) -> Self {
        let (icon, colour, words) = match status {
            ToolState::Ready => ("s-ready", "ok", "Enabled"),
            ToolState::NeedsApproval => ("s-approval", "warn", "Needs approval"),
            ToolState::Installing => ("s-busy", "busy", "Installing"),
            ToolState::Failed => ("s-failed", "bad", "Failed"),
            ToolState::Off => ("s-off", "", "Off"),
        };
        Self { icon, colour, words }
    }
}

fn language(language: Language) -> &'static str {
    match language {
        Language::Python => "Python",
        Language::JavaScript => "JavaScript",
        Language::TypeScript => "TypeScript",
        Language::Bash => "Bash",
    }
}

/// A time for people, and for machines.
#[derive(Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) machine: String,
    pub(super) full: String,
    pub(super) short: String,
}

impl Moment {
    pub(super) fn new(time: Timestamp, now: Timestamp) -> Self {
        let Ok(moment) = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time.0) * 1_000_000) else {
            return Self { machine: String::new(), full: "unknown".to_owned(), short: "unknown".to_owned() };
        };
        let (date, hour, minute) = (moment.date(), moment.hour(), moment.minute());
        let ago = Duration::milliseconds(now.0.saturating_sub(time.0));
        let short = match (ago.whole_minutes(), ago.whole_hours(), ago.whole_days()) {
            (..1, ..) => "just now".to_owned(),
            (minutes, 0, _) => format!("{minutes} min ago"),
            (_, hours, 0) => format!("{hours} h ago"),
            (.., 1) => "yesterday".to_owned(),
            (.., days @ ..7) => format!("{days} days ago"),
            _ => date.to_string(),
        };
        Self {
            machine: format!("{date}T{hour:02}:{minute:02}Z"),
            full: format!("{date}, {hour:02}:{minute:02} UTC"),
            short,
        }
    }
}

/// What a person pastes into a client to connect it.
struct Snippet {
    client: &'static str,
    place: &'static str,
    text: String,
}

impl Snippet {
    fn all(mcp_url: &str) -> [Self; 3] {
        let headers = serde_json::json!({ "Authorization": format!("Bearer {TOKEN}") });
        let file =
            |server: serde_json::Value| format!("{:#}", serde_json::json!({ "mcpServers": { "omniforge": server } }));
        [
            Self {
                client: "Claude Code",
                place: "In a terminal",
                text: format!(
                    "claude mcp add --transport http omniforge \\\n  {mcp_url} \\\n  --header \"Authorization: Bearer {TOKEN}\""
                ),
            },
            Self {
                client: "Cursor",
                place: "~/.cursor/mcp.json",
                text: file(serde_json::json!({ "url": mcp_url, "headers": headers })),
            },
            Self {
                client: "Other clients",
                place: "The client's MCP settings",
                text: file(serde_json::json!({ "type": "http", "url": mcp_url, "headers": headers })),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative_for_a_week() {
        let now = Timestamp(1_800_000_000_000);
        let short = |seconds: i64| Moment::new(Timestamp(now.0 - seconds * 1000), now).short;
        assert_eq!(short(-30), "just now");
        assert_eq!(short(59), "just now");
        assert_eq!(short(60), "1 min ago");
        assert_eq!(short(3 * 3600 + 5), "3 h ago");
        assert_eq!(short(86_400), "yesterday");
        assert_eq!(short(6 * 86_400), "6 days ago");
        assert_eq!(short(7 * 86_400), "2027-01-08");
        let exact = Moment::new(now, now);
        assert_eq!((exact.machine.as_str(), exact.full.as_str()), ("2027-01-15T08:00Z", "2027-01-15, 08:00 UTC"));
        assert_eq!(Moment::new(Timestamp(i64::MAX), now).short, "unknown");
    }

    #[test]
    fn snippets_are_json_and_hold_no_token() {
        let snippets = Snippet::all("https://forge.example/mcp");
        for snippet in &snippets[1..] {
            let value: serde_json::Value = serde_json::from_str(&snippet.text).unwrap();
            let server = &value["mcpServers"]["omniforge"];
            assert_eq!(server["url"], "https://forge.example/mcp");
            assert_eq!(server["headers"]["Authorization"], "Bearer YOUR_TOKEN");
        }
    }
}
