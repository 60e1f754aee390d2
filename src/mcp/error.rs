//! The one place where the domain's failures become protocol errors.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

use super::listing::BadCursor;
use crate::tools::{CallError, ContentError};

/// The JSON-RPC error for a call that has no reply.
pub(super) fn from_call(error: CallError) -> ErrorData {
    let text = error.to_string();
    match error {
        CallError::UnknownTool { .. } | CallError::InvalidParams(_) => ErrorData::invalid_params(text, None),
        CallError::Protocol { code, .. } => ErrorData::new(ErrorCode(code), text, None),
        CallError::MissingCapability { required, .. } => {
            let data = serde_json::json!({"requiredCapabilities": required});
            ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, text, Some(data))
        }
        CallError::Cancelled | CallError::Internal { .. } => ErrorData::internal_error(text, None),
    }
}

/// The JSON-RPC error for content that can't be had. The SDK turns -32002 into -32602 where 2026-07-28 is spoken.
pub(super) fn from_content(error: ContentError) -> ErrorData {
    let text = error.to_string();
    match error {
        ContentError::NoResource { uri } => ErrorData::resource_not_found(text, Some(json!({"uri": uri}))),
        ContentError::NoPrompt { .. } | ContentError::InvalidParams(_) => ErrorData::invalid_params(text, None),
        ContentError::Failed { run, .. } => {
            ErrorData::internal_error(text, run.map(|run| json!({"run_id": run.to_string()})))
        }
        ContentError::Call(error) => from_call(error),
    }
}

/// -32602 for a cursor that can't be ours.
pub(super) fn bad_cursor(error: BadCursor) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}
