//! Texts with places for values: `{name}`, where a value of that name is known; every other brace stands for itself.

use serde_json::Value;

/// Puts values in. What a value holds is never looked at again.
pub fn fill(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, behind) = rest.split_at(open);
        filled.push_str(before);
        let found = place(behind).and_then(|name| value(name).map(|value| (name, value)));
        rest = match found {
            Some((name, value)) => {
                filled.push_str(&value);
                &behind[name.len() + 2..]
            }
            None => {
                filled.push('{');
                &behind[1..]
            }
        };
    }
    filled.push_str(rest);
    filled
}

/// The names of the places, in order, each once.
pub fn places(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (index, _) in text.match_indices('{') {
        if let Some(name) = place(&text[index..])
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The name in the braces with which this text begins.
fn place(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.split('}').next()?;
    let whole = text.len() > name.len() + 1;
    (whole && is_name(name)).then_some(name)
}

/// Whether an argument may be called this.
pub fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A value as text: a string as it is, a list of them with slashes, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("/"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_places_are_filled_once_and_all_else_stays() {
        let value = |name: &str| (name == "a" || name == "b").then(|| "{b}é".to_owned());
        for (text, expected) in [
            ("Hi {a}!", "Hi {b}é!"),
            ("{a}{b}", "{b}é{b}é"),
            ("{{a}}", "{{b}é}"),
            ("{\"a\": 1} {c} { a } {}", "{\"a\": 1} {c} { a } {}"),
            ("{a", "{a"),
            ("a}", "a}"),
            ("{é}{a}", "{é}{b}é"),
        ] {
            assert_eq!(fill(text, &value), expected);
        }
    }

    #[test]
    fn places_are_found_in_order() {
        assert_eq!(places("{a} {\"k\": 1} {b_2} {a} {2} { c } {d"), ["a", "b_2"]);
    }
}
