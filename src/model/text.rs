//! Characters that hide or reorder text.

use std::fmt::Write as _;

/// Whether a character hides or reorders text, or breaks a line where people don't see it: control characters (but line
/// breaks and tabs), bidirectional controls, zero-width characters, other line separators, and the invisible tag characters.
pub fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether a character is a letter or a mark that shows nothing. Emoji and some scripts need a few of these, so that texts keep
/// them; in code they make names that nobody sees.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'
            ..='\u{FE0F}' | '\u{FFA0}'
    )
}

/// The text as a person should see it before they decide: what is hidden is shown by its number, such as `‹U+202E›`. A
/// carriage return is let be where it ends a line together with a line feed.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if !(is_hidden(c) || is_blank(c)) || (c == '\r' && rest.peek() == Some(&'\n')) {
            shown.push(c);
        } else {
            let _infallible = write!(shown, "‹U+{:04X}›", u32::from(c));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_shown_by_its_number() {
        assert_eq!(visible("a\r\nb\tc\u{e9}"), "a\r\nb\tc\u{e9}");
        assert_eq!(visible("# a\rsend()\u{202e}\u{2028}x"), "# a‹U+000D›send()‹U+202E›‹U+2028›x");
        assert_eq!(visible("\r \u{3164}"), "‹U+000D› ‹U+3164›");
    }
}
