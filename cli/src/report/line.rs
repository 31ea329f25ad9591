//! One line of a log: the events that the keeper and the layer write, told apart by their message.
//!
//! The keeper's lines are those of `src/keeper/event_log.rs` in the library, as the extension writes them with
//! `AWS_LAMBDA_LOG_FORMAT=JSON`; a keeper in the handler's process writes them to the function's own log, with the
//! particulars under `fields`, and without a target where its subscriber is `lambda_runtime`'s default one. Whatever stands
//! before the first brace (a log stream's name, a time) is passed over.

use serde_json::{Map, Value};

use super::find::LONGEST_LINE;

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
        /// The error's type, as a caller would have had it; older layers tell none.
        kind: Option<String>,
        reason: String,
    },
    WouldHaveRunUnlocked,
    WouldHaveLost,
}

/// Reads a line; `None` where it is no event of a lease.
pub(crate) fn read_line(line: &str) -> Option<Line> {
    if line.len() > LONGEST_LINE {
        return None;
    }
    let text = line.get(line.find('{')?..)?;
    // What follows the object, as some viewers add, does not matter.
    let whole = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>().next()?.ok()?;
    event_of(&whole)?.ok()
}

/// An event's particulars are not all there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incomplete;

/// The event that an object is, if it is one.
pub(super) fn event_of(whole: &Map<String, Value>) -> Option<Result<Line, Incomplete>> {
    let nested = whole.get("fields").and_then(Value::as_object);
    let fields = Fields(nested.unwrap_or(whole));
    let is_ours = match whole.get("target") {
        Some(target) => target.as_str().is_some_and(|target| target.starts_with("leasehold")),
        // Only the whole line is looked at so: its `fields` alone would tell neither target nor time.
        None => nested.is_some() && fields.look_like_ours(),
    };
    if !is_ours {
        return None;
    }
    let at = whole.get("timestamp").and_then(Value::as_str).map(str::to_owned);
    Some(event(&fields)?.map(|event| Line { at, event }))
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

    /// Where no target says whose line it is: a function's own line `released` has hardly all of what the keeper's has.
    fn look_like_ours(&self) -> bool {
        let observed = self.text("message").is_some_and(|message| message.starts_with("observed: "));
        observed || ["table", "key", "request_id"].iter().all(|name| self.0.contains_key(*name))
    }
}

fn event(fields: &Fields<'_>) -> Option<Result<Event, Incomplete>> {
    let message = fields.text("message")?;
    if let Some(observed) = message.strip_prefix("observed: ") {
        return observation(observed, fields).map(Ok);
    }
    let known = ["acquired", "waiting", "busy", "failed", "cancelled", "released", "left to expire", "lost"];
    if !known.contains(&message.as_str()) && !message.starts_with("not released") {
        return None;
    }
    Some(of_lease(&message, fields).ok_or(Incomplete))
}

fn of_lease(message: &str, fields: &Fields<'_>) -> Option<Event> {
    let reason = || fields.text("reason").unwrap_or_default();
    let key = fields.text("key")?;
    let request_id = fields.text("request_id").unwrap_or_default();
    Some(match message {
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
        _ => Event::NotReleased { key, reason: reason() },
    })
}

fn observation(observed: &str, fields: &Fields<'_>) -> Option<Event> {
    let reason = || fields.text("error").unwrap_or_default();
    Some(match observed {
        "the invocation would have waited for the lease" | "the invocation would still have waited" => {
            Event::WouldHaveWaited
        }
        "the invocation would have been refused" | "the lease would have been waited for or refused" => {
            Event::WouldHaveRefused { kind: fields.text("error_type"), reason: reason() }
        }
        "the invocation would have run unlocked" => Event::WouldHaveRunUnlocked,
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
        let refused = Event::WouldHaveRefused { kind: None, reason: "busy".into() };
        assert_eq!(event("the invocation would have been refused"), refused);
        assert_eq!(event("the invocation would have run unlocked"), Event::WouldHaveRunUnlocked);
        assert_eq!(event("the lease was lost"), Event::WouldHaveLost);
        assert_eq!(of("something new"), None);
    }

    /// As `lambda_runtime::tracing::init_default_subscriber` writes lines: with neither target nor time.
    #[test]
    fn a_line_without_a_target_is_told_by_what_it_has() {
        let observed = r#"{"level":"INFO","fields":{"message":"observed: the invocation would still have waited","key":"a"},"span":{"requestId":"r"}}"#;
        assert_eq!(read_line(observed).unwrap(), Line { at: None, event: Event::WouldHaveWaited });
        let released = r#"{"level":"INFO","fields":{"message":"released","table":"locks","key":"a","request_id":"r","held_ms":5,"reason":"finished"}}"#;
        let expected = Event::Released { key: "a".into(), held_ms: Some(5), reason: "finished".into() };
        assert_eq!(read_line(released).unwrap().event, expected);
        for other in [released.replace(r#""table":"locks","#, ""), r#"{"message":"released","key":"a"}"#.to_owned()] {
            assert_eq!(read_line(&other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_event_of_a_lease_is_none() {
        let other = ACQUIRED.replace("leasehold::keeper", "my_function");
        for line in ["", "{", "START RequestId: 1", r#"{"message":"acquired","target":"leasehold"}"#, "[1]", &other] {
            assert_eq!(read_line(line), None, "{line}");
        }
        assert_eq!(read_line(&format!("{ACQUIRED}{}", " ".repeat(LONGEST_LINE))), None);
    }
}
