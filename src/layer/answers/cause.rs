//! An error's cause as a JSON document, for callers that are programs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::protocol::HolderInfo;

/// What the caller may want to know, beside the message for people.
pub(super) fn of(error: &Error) -> Value {
    let mut cause = match error {
        Error::LeaseBusy(busy) => json!({
            "key": busy.key.as_str(),
            "holder": busy.holder.as_deref().map(holder),
            "waitedMs": millis(busy.waited),
            "attempts": busy.attempts,
            "retryAfterMs": millis(busy.retry_after),
        }),
        Error::DeadlineTooClose(close) => json!({
            "remainingMs": millis(close.remaining),
            "reserveMs": millis(close.reserve),
        }),
        Error::GrantTooLate(late) => json!({ "key": late.key.as_str() }),
        Error::LeaseLost(lost) => json!({ "key": lost.key.as_str(), "reason": lost.reason }),
        Error::OutOfTime(out) => json!({ "marginMs": millis(out.margin) }),
        _ => json!({}),
    };
    cause["message"] = error.to_string().into();
    cause
}

fn holder(holder: &HolderInfo) -> Value {
    json!({
        "function": holder.function,
        "version": holder.version,
        "requestId": holder.request_id,
        "template": holder.template,
        "acquiredAt": holder.acquired_at,
        "parked": holder.parked,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
