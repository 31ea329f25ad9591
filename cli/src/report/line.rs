//! One line of a log: the events that the keeper and the layer write, told apart by their message; and, for the report,
//! what an object that was found in a log holds of them, within whatever.
//!
//! The keeper's lines are those of `src/keeper/event_log.rs` in the library, as the extension writes them with
//! `AWS_LAMBDA_LOG_FORMAT=JSON`; a keeper in the handler's process writes them to the function's own log, with the
//! particulars under `fields`, and without a target where its subscriber is `lambda_runtime`'s default one. Whatever stands
//! before the first brace (a log stream's name, a time) is passed over.

use serde_json::{Map, Value};

use super::find::{LONGEST, Taken};
use super::metrics::{MetricLine, NotRead};

/// One of these stands in each line of an event: what has none of them is not parsed.
const NAMES: [&str; 3] = ["leasehold", "observed: ", "request_id"];

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
    WouldHaveRunUnlocked,
    WouldHaveLost,
}

/// What an object holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    Event(Line),
    Metrics(MetricLine),
    /// It is one of leasehold's, but broken.
    Broken,
}

/// How deep lines may lie in strings: a viewer's document in an archive's is 2.
const MOST_WRAPPED: usize = 4;

/// Reads a line; `None` where it is no event of a lease.
pub(crate) fn read_line(line: &str) -> Option<Line> {
    if line.len() > LONGEST {
        return None;
    }
    let text = line.get(line.find('{')?..)?;
    // What follows the object, as some viewers add, does not matter.
    let whole = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>().next()?.ok()?;
    event_of(&whole)?.ok()
}

/// Tells what an object holds: it may be a line itself, or have lines in its strings, as an archive's records do.
pub(super) fn read_object(object: &[u8], tell: &mut impl FnMut(Told)) -> Taken {
    let has = |mark: &[u8]| object.windows(mark.len()).any(|part| part == mark);
    let is_marked = has(b"_aws");
    if !is_marked && !NAMES.iter().any(|name| has(name.as_bytes())) {
        return Taken::No;
    }
    match serde_json::from_slice(object) {
        Ok(value) => within(&value, 0, tell),
        Err(_) if is_marked => {
            tell(Told::Broken);
            Taken::Yes
        }
        Err(_) => Taken::No,
    }
}

fn within(value: &Value, wrapped: usize, tell: &mut impl FnMut(Told)) -> Taken {
    match value {
        Value::Object(members) => {
            if let Some(told) = told(members) {
                if let Some(told) = told {
                    tell(told);
                }
                return Taken::Yes;
            }
            any(members.values().map(|member| within(member, wrapped, tell)))
        }
        Value::Array(values) => any(values.iter().map(|value| within(value, wrapped, tell))),
        Value::String(text) if wrapped < MOST_WRAPPED => {
            let Some(text) = text.find('{').and_then(|at| text.get(at..)) else { return Taken::No };
            if !text.contains("_aws") && !NAMES.iter().any(|name| text.contains(name)) {
                return Taken::No;
            }
            match serde_json::Deserializer::from_str(text).into_iter::<Value>().next() {
                Some(Ok(value)) => within(&value, wrapped + 1, tell),
                _ if text.contains("_aws") => {
                    tell(Told::Broken);
                    Taken::Yes
                }
                _ => Taken::No,
            }
        }
        _ => Taken::No,
    }
}

/// Whether any of them was taken; all are looked at.
fn any(taken: impl Iterator<Item = Taken>) -> Taken {
    taken.fold(Taken::No, |any, taken| if taken == Taken::Yes { taken } else { any })
}

/// What an object is by itself: `None` if nothing, `Some(None)` if something that is not looked into.
fn told(members: &Map<String, Value>) -> Option<Option<Told>> {
    if members.contains_key("_aws") {
        return Some(match MetricLine::read(members) {
            Ok(line) => Some(Told::Metrics(line)),
            Err(NotRead::Broken) => Some(Told::Broken),
            Err(NotRead::Other) => None,
        });
    }
    event_of(members).map(|event| Some(event.map_or(Told::Broken, Told::Event)))
}

/// An event's particulars are not all there.
#[derive(Clone, Copy, Debug)]
struct Incomplete;

/// The event that an object is, if it is one.
fn event_of(whole: &Map<String, Value>) -> Option<Result<Line, Incomplete>> {
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
            Event::WouldHaveRefused { reason: reason() }
        }
        "the invocation would have run unlocked" => Event::WouldHaveRunUnlocked,
        "the lease was lost" => Event::WouldHaveLost,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::find::Finder;
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
        assert_eq!(read_line(&format!("{ACQUIRED}{}", " ".repeat(LONGEST))), None);
    }

    /// What is told of a text, by way of the finder.
    fn told(text: &str) -> Vec<Told> {
        let (mut finder, mut all) = (Finder::default(), Vec::new());
        finder.push(text.as_bytes(), &mut |object| read_object(object, &mut |told| all.push(told)));
        finder.end();
        all
    }

    #[test]
    fn lines_are_read_in_whatever_form_a_log_is_printed() {
        const METRICS: &str = r#"{"_aws":{"Timestamp":1800000003412,"CloudWatchMetrics":[{"Namespace":"Leasehold","Dimensions":[["FunctionName"]],"Metrics":[{"Name":"Wait","Unit":"Milliseconds"}]}]},"FunctionName":"f","Template":"t","Keeper":"extension","Wait":[6,2004],"Acquired":1,"KeeperId":"k","Line":12}"#;
        let metrics = match &told(METRICS)[..] {
            [Told::Metrics(line)] => line.clone(),
            other => panic!("{other:?}"),
        };
        let expected = [Told::Metrics(metrics), Told::Event(read_line(ACQUIRED).unwrap())];
        let value = |text| serde_json::from_str::<Value>(text).unwrap();
        let records = json!({ "messageType": "DATA_MESSAGE", "logEvents": [{ "id": "1", "message": format!("{METRICS}\n") }, { "id": "2", "message": ACQUIRED }] });
        let events = json!({ "events": [{ "logStreamName": "2026/11/29/[$LATEST]ab", "timestamp": 1, "message": METRICS }, { "message": format!("START {{}}") }, { "message": ACQUIRED }] });
        let archived = json!({ "type": "extension", "record": value(METRICS) });
        for (form, text) in [
            ("as written", format!("{METRICS}\n{ACQUIRED}\n")),
            ("aws logs tail", format!("2026-11-29T22:56:44.695000+00:00 2026/11/29/[$LATEST]0a1b {METRICS}\n\n2026-11-29T22:56:45 2026/11/29/[$LATEST]0a1b {ACQUIRED}\n")),
            ("sam logs", format!("2026/11/29/[$LATEST]0a1b 2026-11-29T22:56:44 {:#}\n2026/11/29/[$LATEST]0a1b 2026-11-29T22:56:44 {:#}\n", value(METRICS), value(ACQUIRED))),
            ("aws logs filter-log-events", format!("{events:#}\n")),
            ("the same in one line", events.to_string()),
            ("jq -c .events[]", format!("{}\n{}\n", events["events"][0], events["events"][2])),
            ("a subscription's records", format!("{records}")),
            ("an archive of records", json!({ "data": records.to_string() }).to_string()),
            ("the telemetry API", format!("[{archived},{}]", value(ACQUIRED))),
            ("get-query-results", json!({ "results": [[{ "field": "@message", "value": METRICS }], [{ "field": "@message", "value": ACQUIRED }]] }).to_string()),
        ] {
            assert_eq!(told(&text), expected, "{form}: {text}");
        }
    }

    #[test]
    fn what_is_broken_is_told_and_what_is_anothers_is_not() {
        let metrics = r#"{"_aws":{"Timestamp":1},"KeeperId":"k","Line":1,"Acquired":-1}"#;
        let event = ACQUIRED.replace(r#""waited_ms":5"#, r#""waited_ms":"long""#);
        for broken in [metrics, &event, r#"{"_aws":{,}}"#, r#"{"message":"{\"_aws\":{\"Times"}"#] {
            assert_eq!(told(&format!("{broken}\n")), [Told::Broken], "{broken}");
        }
        let anothers = r#"{"_aws":{"Timestamp":1},"Orders":7}"#;
        let unknown = ACQUIRED.replace("acquired", "something new");
        for other in [anothers, &unknown, r#"{"message":"leasehold {is} {nice"}"#, r#"{"leasehold": }"#] {
            assert_eq!(told(&format!("{other}\n")), [], "{other}");
        }
    }
}
