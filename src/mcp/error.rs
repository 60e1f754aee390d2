//! The one place where the domain's failures become protocol errors.

use rmcp::model::{ErrorCode, ErrorData};

use crate::tools::CallError;

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
