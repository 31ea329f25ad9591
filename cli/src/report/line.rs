//! One line of a log: the events that the keeper and the layer write, told apart by their message.
//!
//! The keeper's lines are those of `src/keeper/event_log.rs` in the library, as the extension writes them with
//! `AWS_LAMBDA_LOG_FORMAT=JSON`; a keeper in the handler's process writes them to the function's own log, with the
//! particulars under `fields`. Whatever stands before the first brace (a log stream's name, a time) is passed over.
//! Everything that is known about lines is in this file.

use serde_json::{Map, Value};

/// A line that tells something of a lease.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// When it was written, as it says.
    pub(crate) at: Option<String>,
    pub(crate) event: Event,
}

/// What a line tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Acquired {
        key: String,
        request_id: String,
        waited_ms: u64,
        /// How much of it was spent in the keeper's own line; older keepers have none.
        queued_ms: u64,
        attempts: u64,
        took_over: bool,
    },
    Waiting {
        key: String,
        request_id: String,
        holder: Option<String>,
    },
    Busy {
        key: String,
        request_id: String,
        waited_ms: u64,
        attempts: u64,
    },
    Failed {
        key: String,
        request_id: String,
        reason: String,
    },
    Cancelled {
        key: String,
        request_id: String,
    },
    Released {
        key: String,
        held_ms: Option<u64>,
        reason: String,
    },
    NotReleased {
        key: String,
        reason: String,
    },
    LeftToExpire {
        key: String,
    },
    Lost {
        key: String,
        request_id: String,
        reason: String,
    },
    /// In mode `observe`, by the layer: what `enforce` would have done.
    WouldHaveWaited,
    WouldHaveRefused {
        reason: String,
    },
    WouldHaveLost,
}

/// The longest line that is looked at; the keeper's are far shorter.
const LONGEST: usize = 256 * 1_024;

/// Reads a line; `None` where it is no event of a lease.
pub(crate) fn read_line(line: &str) -> Option<Line> {
    if line.len() > LONGEST {
        return None;
    }
    let text = line.get(line.find('{')?..)?;
    // What follows the object, as some viewers add, does not matter.
    let whole = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>().next()?.ok()?;
    let fields = whole.get("fields").and_then(Value::as_object).unwrap_or(&whole);
    let target = whole.get("target").and_then(Value::as_str).unwrap_or_default();
    if !target.starts_with("leasehold") {
        return None;
    }
    let event = event(&Fields(fields))?;
    Some(Line { at: whole.get("timestamp").and_then(Value::as_str).map(str::to_owned), event })
}

/// A line's particulars.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }
}

fn event(fields: &Fields<'_>) -> Option<Event> {
    let message = fields.text("message")?;
    let reason = || fields.text("reason").unwrap_or_default();
    if let Some(observed) = message.strip_prefix("observed: ") {
        return observation(observed, fields);
    }
    let key = fields.text("key")?;
    let request_id = fields.text("request_id").unwrap_or_default();
    Some(match message.as_str() {
        "acquired" => Event::Acquired {
            key,
            request_id,
            waited_ms: fields.number("waited_ms")?,
            queued_ms: fields.number("queued_ms").unwrap_or(0),
            attempts: fields.number("attempts")?,
            took_over: fields.0.get("took_over").and_then(Value::as_bool).unwrap_or(false),
        },
        "waiting" => Event::Waiting { key, request_id, holder: fields.text("holder") },
        "busy" => Event::Busy {
            key,
            request_id,
            waited_ms: fields.number("waited_ms")?,
            attempts: fields.number("attempts")?,
        },
        "failed" => Event::Failed { key, request_id, reason: reason() },
        "cancelled" => Event::Cancelled { key, request_id },
        "released" => Event::Released { key, held_ms: fields.number("held_ms"), reason: reason() },
        "left to expire" => Event::LeftToExpire { key },
        "lost" => Event::Lost { key, request_id, reason: reason() },
        message if message.starts_with("not released") => Event::NotReleased { key, reason: reason() },
        _ => return None,
    })
}

fn observation(observed: &str, fields: &Fields<'_>) -> Option<Event> {
    let reason = || fields.text("error").unwrap_or_default();
    Some(match observed {
        "the invocation would have waited for the lease" | "the invocation would still have waited" => {
            Event::WouldHaveWaited
        }
        "the invocation would have been refused" | "the lease would have been waited for or refused" => {
            Event::WouldHaveRefused { reason: reason() }
        }
        "the lease was lost" => Event::WouldHaveLost,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACQUIRED: &str = r#"{"timestamp":"2026-11-29T10:00:00Z","level":"INFO","message":"acquired","table":"locks","key":"a","request_id":"r","owner":"o","token":7,"waited_ms":5,"attempts":2,"took_over":true,"target":"leasehold::keeper"}"#;

    fn acquired() -> Event {
        Event::Acquired {
            key: "a".into(),
            request_id: "r".into(),
            waited_ms: 5,
            queued_ms: 0,
            attempts: 2,
            took_over: true,
        }
    }

    #[test]
    fn a_line_of_the_extension_is_read_whatever_a_viewer_puts_before_it() {
        let told = read_line(ACQUIRED).unwrap();
        assert_eq!(told, Line { at: Some("2026-11-29T10:00:00Z".to_owned()), event: acquired() });
        for before in ["2026-11-29T10:00:00 ", "2026/11/29/[$LATEST]0a1b extension leasehold: "] {
            assert_eq!(read_line(&format!("{before}{ACQUIRED}")).unwrap().event, acquired(), "{before}");
        }
    }

    #[test]
    fn a_line_of_a_keeper_in_the_handlers_process_has_its_particulars_under_fields() {
        let line = r#"{"level":"WARN","fields":{"message":"lost","key":"a","request_id":"r","reason":"the row was deleted"},"target":"leasehold::keeper"}"#;
        let lost = Event::Lost { key: "a".into(), request_id: "r".into(), reason: "the row was deleted".into() };
        assert_eq!(read_line(line).unwrap().event, lost);
    }

    #[test]
    fn what_observe_would_have_done_is_told_by_the_layer() {
        let of = |message: &str| {
            read_line(&format!(r#"{{"message":"observed: {message}","error":"busy","target":"leasehold::layer"}}"#))
        };
        let event = |message| of(message).unwrap().event;
        assert_eq!(event("the invocation would have waited for the lease"), Event::WouldHaveWaited);
        assert_eq!(event("the invocation would have been refused"), Event::WouldHaveRefused { reason: "busy".into() });
        assert_eq!(event("the lease was lost"), Event::WouldHaveLost);
        assert_eq!(of("something new"), None);
    }

    #[test]
    fn what_is_no_event_of_a_lease_is_none() {
        let other = ACQUIRED.replace("leasehold::keeper", "my_function");
        for line in ["", "{", "START RequestId: 1", r#"{"message":"acquired","target":"leasehold"}"#, "[1]", &other] {
            assert_eq!(read_line(line), None, "{line}");
        }
        assert_eq!(read_line(&format!("{ACQUIRED}{}", " ".repeat(LONGEST))), None);
    }
}
