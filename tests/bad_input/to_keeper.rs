//! Lines to the keeper: answered with `error` or `failed`, before anything is asked of DynamoDB.

use leasehold::session::MAX_LINE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::stage::{NOWHERE, Stage};
use crate::table::{Bytes, Case, Kind, Seen, case, check};

const BEGIN: &str = r#"{"type":"begin","versions":{"min":1,"max":1},"request_id":"r"}"#;

/// Lines on a connection.
fn lines(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

/// A session whose `acquire` has something else in this field; a null takes the field out.
fn acquire(field: &str, value: Value) -> Vec<u8> {
    let mut acquire = json!({
        "type": "acquire", "id": 1, "key": "k", "table": { "name": "locks", "key_attribute": "key" }, "lease_ms": 30000,
        "wait_ms": 0, "max_hold_ms": 900_000, "holder": {},
    });
    acquire[field] = value;
    acquire.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    lines(&[BEGIN, &acquire.to_string()])
}

/// A look at a key.
fn inspect(key: &str, table: &str) -> String {
    json!({ "type": "inspect", "id": 1, "key": key, "table": { "name": table, "key_attribute": "key" } }).to_string()
}

fn cases() -> Vec<Case<Bytes>> {
    use Kind::*;
    let error = |kind, bytes, says| case(kind, Bytes(bytes), "error", says, 0);
    let refused = |kind, field, value, says| case(kind, Bytes(acquire(field, value)), "bad_request", says, 0);
    let refused_line = |kind, line: &str, says| case(kind, Bytes(lines(&[BEGIN, line])), "bad_request", says, 0);
    let table = |name: &str, attribute: &str| json!({ "name": name, "key_attribute": attribute });
    let long = "x".repeat(3_000);
    let in_a_key = [lines(&[BEGIN]), b"{\"type\":\"acquire\",\"id\":1,\"key\":\"\xff\"}\n".to_vec()].concat();
    let in_an_id = format!(r#"{{"type":"release","id":{},"reason":"finished"}}"#, "9".repeat(30));
    vec![
        error(Empty, b"\n".to_vec(), "a line is not a message of this session: EOF while parsing"),
        error(Empty, lines(&[BEGIN, "{}"]), "missing field `type`"),
        refused(Empty, "key", json!(""), "`key` must have 1 to 2048 bytes, not 0"),
        refused(Empty, "table", table("", "key"), "`table.name` must have 1 to 1024 bytes, not 0"),
        refused(
            WrongVersion,
            "table",
            json!({ "name": "locks", "key_attribute": "key", "format": "pydynox/2" }),
            "`table.format`: \"pydynox/2\" is no row format that is known: write `leasehold/1` or `pydynox/1`",
        ),
        refused(Empty, "max_hold_ms", json!(0), "`max_hold_ms` must be at least 1"),
        refused(Empty, "max_silence_ms", json!(0), "`max_silence_ms` must be at least 1"),
        error(Truncated, lines(&[r#"{"type":"begin","versions":{"min":1"#]), "EOF while parsing an object"),
        error(Truncated, lines(&[r#"{"type":"begin"}"#]), "missing field `versions`"),
        error(Truncated, acquire("lease_ms", Value::Null), "missing field `lease_ms`"),
        case(Truncated, Bytes([lines(&[BEGIN]), b"{\"type\":\"acq".to_vec()].concat()), "none", "", 0),
        error(Oversized, vec![b'x'; MAX_LINE + 1], "a line is longer than 65536 bytes"),
        error(Oversized, lines(&[BEGIN, &in_an_id]), "a line is not a message of this session: "),
        refused(Oversized, "key", json!(long), "`key` must have 1 to 2048 bytes, not 3000"),
        refused(Oversized, "table", table("locks", &long), "`table.key_attribute` must have 1 to 255 bytes, not 3000"),
        refused(Oversized, "lease_ms", json!(u64::MAX), "`lease_ms` must be 500 to 86400000, not 18446744073709551615"),
        refused(
            Oversized,
            "polling",
            json!({ "first": 9, "max": u64::MAX }),
            "`polling` must have 1 <= `first` <= `max`",
        ),
        error(WrongType, lines(&["[1,2,3]"]), "it must be an object with a `type`"),
        error(WrongType, acquire("id", json!("one")), "`id`: invalid type: string \"one\", expected an integer from 0"),
        error(
            WrongType,
            acquire("table", json!("locks")),
            "`table`: invalid type: string \"locks\", expected an object",
        ),
        error(WrongType, acquire("table", json!({ "name": 7, "key_attribute": "key" })), "`table.name`: invalid type"),
        error(WrongType, lines(&[r#"{"type":"check","owner":"me"}"#]), "session: `owner`: "),
        error(WrongType, lines(&[BEGIN, r#"{"type":"count","id":"1"}"#]), "session: `id`: "),
        refused_line(Other, r#"{"type":"count","id":7}"#, "no lease under the `id` 7"),
        refused_line(Empty, &inspect("", "locks"), "`key` must have 1 to 2048 bytes, not 0"),
        refused_line(Empty, &inspect("k", ""), "`table.name` must have 1 to 1024 bytes, not 0"),
        refused_line(Oversized, &inspect(&long, "locks"), "`key` must have 1 to 2048 bytes, not 3000"),
        error(Truncated, lines(&[BEGIN, r#"{"type":"inspect","id":1,"key":"k"}"#]), "missing field `table`"),
        error(
            WrongVersion,
            lines(&[r#"{"type":"begin","versions":{"min":2,"max":7},"request_id":"r"}"#]),
            "the layer offers 2 to 7, this keeper speaks 1 to 1; the keeper is the older one: deploy an extension",
        ),
        error(WrongVersion, lines(&[r#"{"type":"hello","versions":{"min":0,"max":0}}"#]), "the layer is the older one"),
        error(
            WrongVersion,
            lines(&[BEGIN, r#"{"type":"extend","id":1}"#]),
            "`type`: unknown variant `extend`, expected one of",
        ),
        error(
            WrongVersion,
            acquire("on_crash", json!("ask")),
            "`on_crash`: unknown variant `ask`, expected `release` or `expire`",
        ),
        error(NotUtf8, b"\xff\xfe\n".to_vec(), "a line is not a message of this session: "),
        error(NotUtf8, in_a_key, "invalid unicode code point"),
        error(Other, lines(&[r#"{"type":"end"}"#]), "the first line must be `hello`, `begin` or `check`"),
        error(
            Other,
            lines(&[BEGIN, BEGIN]),
            "a session takes `acquire`, `progress`, `load_state`, `save_state`, `release`, `inspect`, `count` and `end`",
        ),
    ]
}

/// Says it, hangs up, and hears what the keeper has against it.
async fn run(Bytes(bytes): Bytes) -> Seen {
    let stage = Stage::over(NOWHERE);
    let mut stream = UnixStream::connect(stage.socket()).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refusals = answers.filter(|line| line["type"] == "error" || line["type"] == "failed");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let refusals: Vec<_> = refusals
        .map(|line| {
            (text(if line["type"] == "failed" { &line["kind"] } else { &line["type"] }), text(&line["message"]))
        })
        .collect();
    assert!(refusals.len() <= 1, "{refusals:?}");
    let (error, message) = refusals.into_iter().next().unwrap_or_else(|| ("none".to_owned(), String::new()));
    Seen { error, message, ..stage.end(Ok(())).await }
}

#[tokio::test]
async fn lines_that_the_keeper_cannot_serve() {
    check("line to the keeper", cases(), run).await;
}
