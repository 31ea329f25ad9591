//! What an object that was found in a log holds: a line of metrics, an event, or such lines in its strings.

use serde_json::{Map, Value};

use super::find::Taken;
use super::line::{Line, event_of};
use super::metrics::{MetricLine, NotRead};

/// One of these stands in each line of an event: what has none of them is not parsed.
const NAMES: [&str; 3] = ["leasehold", "observed: ", "request_id"];

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::find::Finder;
    use super::super::line::read_line;
    use super::*;

    const ACQUIRED: &str = r#"{"timestamp":"2026-11-29T10:00:00Z","level":"INFO","message":"acquired","table":"locks","key":"a","request_id":"r","owner":"o","token":7,"waited_ms":5,"attempts":2,"took_over":true,"target":"leasehold::keeper"}"#;

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
