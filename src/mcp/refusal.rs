//! A JSON-RPC error that is answered before the protocol layer sees the message.

use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON-RPC error of our own making.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The JSON-RPC code.
    pub code: i32,
    /// What was wrong, and what would be right.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
    /// The request's id, where it could be read.
    pub id: Option<Box<RawValue>>,
}

impl Refusal {
    /// An error of this code.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, id: None }
    }

    /// -32700: no JSON.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    /// -32600: no JSON-RPC request.
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    /// -32602: parameters that can't be right.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// -32601: no such method in the caller's era.
    pub fn method(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: `{method}`"))
    }

    /// -32020: a header and the body disagree.
    pub fn header(message: impl Into<String>) -> Self {
        Self::new(-32020, message)
    }

    /// The same, for the request with this id.
    #[must_use]
    pub fn with_id(mut self, id: Option<&RawValue>) -> Self {
        self.id = id.map(ToOwned::to_owned).or(self.id);
        self
    }

    /// The same, with more for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The JSON-RPC error response.
    pub fn to_json(&self) -> String {
        let mut error = serde_json::json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        let id = self.id.as_deref().map_or("null", RawValue::get);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
    }
}
