//! JSON kept byte for byte: numbers keep every digit and members their order, however often the text is handed on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON text. Clones share it.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// An object without members.
    pub fn empty_object() -> Self {
        Self::parse("{}".to_owned()).expect("`{}` is JSON")
    }

    /// Takes a text that is one JSON value.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Self::from)
    }

    /// The JSON of a value.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(Self::from)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The same JSON, the members of every object in the order of their names and without spaces. Numbers stay as they are
    /// written; of a name that stands twice the last value counts.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.get().len());
        write_canonical(self.get(), &mut text);
        text
    }

    /// The value, its long numbers rounded to what a double holds.
    ///
    /// # Errors
    /// When it is nested too deeply, or a number is beyond every double.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

fn write_canonical(json: &str, out: &mut String) {
    let quoted = |text: &str| serde_json::to_string(text).expect("texts have a JSON form");
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
            for (index, (name, value)) in members.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                out.push_str(&quoted(name));
                out.push(':');
                write_canonical(value.get(), out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for (index, value) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_canonical(value.get(), out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Some(b'"') => {
            out.push_str(&serde_json::from_str::<String>(json).map_or_else(|_| json.to_owned(), |s| quoted(&s)))
        }
        _ => out.push_str(json),
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl From<Arc<RawValue>> for Json {
    fn from(raw: Arc<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::of(value).expect("every value has a JSON form")
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: &str = r#"{"b":123456789012345678901234567890, "a":0.30000000000000000000001,"c":1.0}"#;

    #[test]
    fn every_byte_is_kept() {
        #[derive(Serialize, Deserialize)]
        struct Holder {
            inner: Json,
        }
        let text = format!("{{\"inner\":{EXACT}}}");
        let holder: Holder = serde_json::from_str(&text).unwrap();
        assert_eq!(holder.inner.get(), EXACT);
        assert_eq!(serde_json::to_string(&holder).unwrap(), text);
        assert_eq!(Json::parse(EXACT.to_owned()).unwrap(), holder.inner);
    }

    #[test]
    fn the_canonical_form_sorts_members_and_keeps_digits() {
        let canonical = |text: &str| Json::parse(text.to_owned()).unwrap().canonical();
        let text =
            r#" { "b" : [ 1.10 , {} , [ ] ], "\u0061":12345678901234567890123, "b2": {"d":null,"c":"\u00e9\n"} } "#;
        let expected = r#"{"a":12345678901234567890123,"b":[1.10,{},[]],"b2":{"c":"é\n","d":null}}"#;
        assert_eq!(canonical(text), expected);
        assert_eq!(canonical(expected), expected);
        assert_eq!(canonical(r#"{"a":1,"a":2}"#), r#"{"a":2}"#);
    }

    #[test]
    fn what_no_double_holds_has_no_value() {
        assert!(Json::parse("1e999".to_owned()).unwrap().to_value().is_err());
        assert!(Json::parse("nan".to_owned()).is_err());
    }
}
