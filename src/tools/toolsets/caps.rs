//! How many tools clients take.

/// Clients that take no more than so many tools, those of all their servers together, as they document or show it in
/// 2026. Claude Code, Codex, Gemini CLI and omp have no such cap.
const CAPS: [(&str, usize); 4] =
    [("Cursor", 40), ("Windsurf", 100), ("VS Code", 128), ("a model behind the OpenAI API", 128)];

/// The warning where that many listed tools pass a client's cap.
pub fn cap_warnings(listed: usize, search: bool) -> Vec<String> {
    let passed: Vec<String> = CAPS
        .iter()
        .filter(|(_, cap)| listed > *cap && !search)
        .map(|(client, cap)| format!("{client} ({cap})"))
        .collect();
    if passed.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "{listed} tools are listed with the built-in ones: more than {} take; they leave some out. A smaller toolset, or \
         one with `search`, lists fewer",
        passed.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_warned_of_only_where_it_is_passed() {
        assert!(cap_warnings(40, false).is_empty());
        let text = cap_warnings(101, false).join("");
        assert!(text.contains("Cursor (40), Windsurf (100)") && !text.contains("VS Code"), "{text}");
        assert!(cap_warnings(2_000, true).is_empty());
    }
}
