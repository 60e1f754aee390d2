//! What connects each client: the text to paste, where it goes, and what to know of it.
//! Source: the clients' own documentation as of November 2026.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::text::in_url;

/// Something to paste.
pub(super) struct Snippet {
    /// Where it goes.
    pub(super) place: &'static str,
    /// The text.
    pub(super) text: String,
    /// What to know of it.
    pub(super) hint: &'static str,
}

/// One client.
pub(super) struct Client {
    /// What its path ends with.
    pub(super) key: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// A link that adds the server; it never holds a token.
    pub(super) link: Option<String>,
    /// What to paste, the usual way first.
    pub(super) snippets: Vec<Snippet>,
    /// What to do in the client afterwards.
    pub(super) check: &'static str,
    /// What it can't do.
    pub(super) warning: Option<&'static str>,
}

/// The clients' paths and names, in the order of the tabs.
pub(super) const CLIENTS: [(&str, &str); 10] = [
    ("claude-code", "Claude Code"),
    ("claude", "Claude app and web"),
    ("cursor", "Cursor"),
    ("vscode", "VS Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("omp", "omp"),
    ("chatgpt", "ChatGPT"),
    ("other", "Other clients"),
    ("bridge", "Over stdio"),
];

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn servers(server: Value) -> String {
    pretty(&json!({"mcpServers": {"omniforge": server}}))
}

fn authorization(token: &str) -> Value {
    json!({"Authorization": format!("Bearer {token}")})
}

/// The client of that path, for a server at this address; `token` stands where the variable is set.
pub(super) fn client(key: &str, url: &str, token: &str) -> Option<Client> {
    let (key, name) = *CLIENTS.iter().find(|(known, _)| *known == key)?;
    let (snippets, check) = match key {
        "claude-code" => claude_code(url, token),
        "claude" => (
            vec![bridge(url, token, "claude_desktop_config.json")],
            "Restart the desktop app, then look for omniforge among its tools.",
        ),
        "cursor" => cursor(url, token),
        "vscode" => vs_code(url),
        "codex" => codex(url, token),
        "gemini" => gemini(url, token),
        "omp" => omp(url, token),
        "chatgpt" => (vec![bridge(url, token, "The MCP settings of a client on your machine")], LOOK),
        "bridge" => (vec![bridge(url, token, "The MCP settings of a client that starts programs")], LOOK),
        _ => (vec![other(url, token)], LOOK),
    };
    Some(Client { key, name, link: link(key, url), snippets, check, warning: warning(key) })
}

/// What to do where nothing else is known.
const LOOK: &str = "Look for omniforge among the client’s tools.";

/// What to paste, and how to see that it works.
type Steps = (Vec<Snippet>, &'static str);

fn snippet(place: &'static str, text: String, hint: &'static str) -> Snippet {
    Snippet { place, text, hint }
}

fn shell(token: &str) -> Snippet {
    snippet("In the shell that starts it", format!("export FORGE_TOKEN={token}"), "")
}

/// A link that adds the server, where the client knows one. It never holds a token.
fn link(key: &str, url: &str) -> Option<String> {
    match key {
        "cursor" => {
            let config = in_url(&STANDARD.encode(json!({"url": url}).to_string()));
            Some(format!("cursor://anysphere.cursor-deeplink/mcp/install?name=omniforge&config={config}"))
        }
        "vscode" => {
            let server = json!({"name": "omniforge", "type": "http", "url": url});
            Some(format!("vscode:mcp/install?{}", in_url(&server.to_string())))
        }
        _ => None,
    }
}

fn warning(key: &str) -> Option<&'static str> {
    match key {
        "claude" => Some(
            "The connectors of claude.ai and of the desktop app take OAuth or no sign-in at all, no token, and the calls come \
             from Anthropic’s servers: a private address can’t be reached. The desktop app can start the stdio bridge below \
             instead.",
        ),
        "chatgpt" => Some(
            "ChatGPT on the web takes OAuth or no sign-in, and this server has no OAuth yet: it can’t be connected there. \
             OpenAI’s servers make the calls, so it would need a public https address, too. The ChatGPT desktop app reads the \
             same file as Codex and works now; any client that starts programs can use the stdio bridge below.",
        ),
        _ => None,
    }
}

fn claude_code(url: &str, token: &str) -> Steps {
    let command = format!(
        "export FORGE_TOKEN={token}\nclaude mcp add --transport http omniforge {url} --header \"Authorization: Bearer $FORGE_TOKEN\""
    );
    let file = servers(json!({"type": "http", "url": url, "headers": authorization("${FORGE_TOKEN}")}));
    (
        vec![
            snippet(
                "In the terminal",
                command,
                "Add --scope project to share it with everyone in the repository, or --scope user to have it in every project.",
            ),
            snippet(
                "As a file instead: .mcp.json in the project",
                file,
                "Start Claude Code from a shell that has FORGE_TOKEN.",
            ),
        ],
        "Say in Claude Code: “Make me a tool that converts a temperature, and try it.” It cuts a result at 25,000 tokens; \
         MAX_MCP_OUTPUT_TOKENS sets more.",
    )
}

fn cursor(url: &str, token: &str) -> Steps {
    let file = servers(json!({"url": url, "headers": authorization("${env:FORGE_TOKEN}")}));
    let place = "~/.cursor/mcp.json, or .cursor/mcp.json in a project";
    let hint = "Start Cursor from a shell that has FORGE_TOKEN.";
    (vec![shell(token), snippet(place, file, hint)], "Open Cursor’s MCP settings and switch omniforge on.")
}

fn vs_code(url: &str) -> Steps {
    let input =
        json!([{"type": "promptString", "id": "forge-token", "description": "OmniForge token", "password": true}]);
    let server = json!({"type": "http", "url": url, "headers": authorization("${input:forge-token}")});
    let file = pretty(&json!({"servers": {"omniforge": server}, "inputs": input}));
    let hint = "VS Code asks for the token when it starts the server.";
    (
        vec![snippet(".vscode/mcp.json, or your user mcp.json", file, hint)],
        "Run “MCP: List Servers” and start omniforge.",
    )
}

fn codex(url: &str, token: &str) -> Steps {
    let command =
        format!("export FORGE_TOKEN={token}\ncodex mcp add omniforge --url {url} --bearer-token-env-var FORGE_TOKEN");
    let file = format!(
        "[mcp_servers.omniforge]\nurl = \"{url}\"\nbearer_token_env_var = \"FORGE_TOKEN\"\ntool_timeout_sec = 120\n"
    );
    (
        vec![
            snippet("In the terminal", command, "Where this Codex does not know the last option, use the file."),
            snippet("~/.codex/config.toml", file, "The ChatGPT desktop app reads the same file."),
        ],
        "Start Codex from a shell that has FORGE_TOKEN, then ask for its MCP servers with /mcp.",
    )
}

fn gemini(url: &str, token: &str) -> Steps {
    let command = format!(
        "export FORGE_TOKEN={token}\ngemini mcp add --transport http --header \"Authorization: Bearer $FORGE_TOKEN\" omniforge {url}"
    );
    let file = servers(json!({"httpUrl": url, "headers": authorization(token), "timeout": 600_000}));
    let hint = "`url` would mean the old transport: it must be `httpUrl`. The token stands in the file itself.";
    (
        vec![snippet("In the terminal", command, ""), snippet("~/.gemini/settings.json", file, hint)],
        "Ask Gemini CLI for its servers with /mcp.",
    )
}

fn omp(url: &str, token: &str) -> Steps {
    let server = json!({"type": "http", "url": url, "headers": authorization("${FORGE_TOKEN}"), "timeout": 180_000});
    let hint = "`type` must be `http`. Start omp from a shell that has FORGE_TOKEN.";
    (
        vec![shell(token), snippet("~/.omp/agent/mcp.json, or .omp/mcp.json", servers(server), hint)],
        "Then /mcp reload and /mcp test omniforge.",
    )
}

fn other(url: &str, token: &str) -> Snippet {
    let file = servers(json!({"type": "http", "url": url, "headers": authorization(token)}));
    let hint = "Windsurf calls the address `serverUrl`; Cline wants the type `streamableHttp`, Roo `streamable-http`.";
    snippet("The client’s MCP settings", file, hint)
}

fn bridge(url: &str, token: &str, place: &'static str) -> Snippet {
    let arguments = json!(["-y", "mcp-remote", url, "--header", "Authorization:${AUTH}"]);
    let server = json!({"command": "npx", "args": arguments, "env": {"AUTH": format!("Bearer {token}")}});
    Snippet { place, text: servers(server), hint: "No space after the colon. It needs Node.js on that machine." }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_text_and_no_link_a_token() {
        for (key, _) in CLIENTS {
            let client = client(key, "https://forge.example/mcp", "ofk_abc_def").unwrap();
            assert!(client.snippets.iter().any(|snippet| snippet.text.contains("https://forge.example/mcp")), "{key}");
            assert!(client.link.as_deref().is_none_or(|link| !link.contains("ofk_")), "{key}");
            for snippet in client.snippets.iter().filter(|snippet| snippet.text.starts_with('{')) {
                serde_json::from_str::<Value>(&snippet.text).unwrap();
            }
        }
        assert!(client("nothing", "u", "t").is_none());
    }
}
