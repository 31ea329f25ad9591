//! What the Extensions API, and the environment, can hand to the extension that it can't use, as one table: place ×
//! input → the error's name, what its message says, and how many requests the API saw.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use leasehold_extension::api::{Api, Endpoint, NextError};

use crate::extension::{Extension, Place};
use crate::fake_api::FakeApi;
use crate::table::{Bytes, Case, Kind, Seen, case, check};

/// An answer of this status with these headers and this body.
fn answer(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Bytes {
    let (body, mut head) = (body.as_ref(), String::new());
    write!(head, "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).unwrap();
    Bytes([head.as_bytes(), body].concat())
}

fn next_answers() -> Vec<Case<Bytes>> {
    use Kind::*;
    let ok = |body: &[u8]| answer(200, "", body);
    let raw = |bytes: &str| Bytes(bytes.as_bytes().to_vec());
    let of = |kind, bytes, error, says| case(kind, bytes, error, says, 1);
    vec![
        of(Empty, raw(""), "Transport", "the Extensions API can't be reached: "),
        of(Empty, ok(b""), "NoEvent", "answer is no event: EOF while parsing"),
        of(Empty, ok(b"{}"), "NoEvent", "missing field `eventType`"),
        of(Truncated, raw("HTTP/1.1 200 OK\r\nContent-Len"), "Transport", "the Extensions API can't be reached: "),
        of(
            Truncated,
            raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
            "Transport",
            "end of file before message length reached",
        ),
        of(Truncated, ok(br#"{"eventType":"INVOKE","#), "NoEvent", "EOF while parsing"),
        of(Oversized, ok(&vec![b' '; 1024 * 1024 + 1]), "TooLong", "answer is longer than 1048576 bytes"),
        of(Oversized, ok(br#"{"eventType":"INVOKE","deadlineMs":18446744073709551616}"#), "NoEvent", "expected u64"),
        of(WrongType, ok(b"null"), "NoEvent", "answer is no event: invalid type: null"),
        of(WrongType, ok(br#"{"eventType":7}"#), "NoEvent", "invalid type: integer `7`, expected a string"),
        of(WrongType, ok(br#"{"eventType":"INVOKE","deadlineMs":"soon"}"#), "NoEvent", "expected u64"),
        of(WrongType, raw("SSH-2.0-x\r\n\r\n"), "Transport", "invalid HTTP"),
        of(WrongVersion, answer(404, "", "no such path"), "Status", "answered 404 Not Found: no such path"),
        of(WrongVersion, answer(403, "", r#"{"errorType":"Extension.X"}"#), "Status", r#"403 Forbidden: {"errorType"#),
        of(WrongVersion, ok(br#"{"eventType":"RESTORE","more":[1]}"#), "none", "Unknown { name: \"RESTORE\" }"),
        of(NotUtf8, ok(b"\xff\xfe"), "NoEvent", "answer is no event: expected value"),
        of(NotUtf8, ok(b"{\"eventType\":\"\xff\"}"), "NoEvent", "invalid unicode code point"),
        of(NotUtf8, answer(500, "", b"\xff"), "Status", "500 Internal Server Error: \u{fffd}"),
    ]
}

/// Asks for the next event once.
async fn next(Bytes(bytes): Bytes) -> Seen {
    let mut fake = FakeApi::start().await;
    let mut api = Api::new(Endpoint::parse(fake.address()).unwrap(), "the-identifier".to_owned());
    let (answer, ()) = tokio::join!(api.next(), async { fake.next().await.say(bytes) });
    let requests = 1 + usize::from(!fake.is_quiet());
    let (error, message) = match answer {
        Ok(event) => ("none", format!("{event:?}")),
        Err(error) => (name(&error), error.to_string()),
    };
    Seen { error: error.to_owned(), message, requests }
}

const fn name(error: &NextError) -> &'static str {
    match error {
        NextError::Request(_) => "Request",
        NextError::Transport(_) => "Transport",
        NextError::Status { .. } => "Status",
        NextError::Stalled => "Stalled",
        NextError::TooLong => "TooLong",
        NextError::NoEvent(_) => "NoEvent",
        _ => "?",
    }
}

#[tokio::test]
async fn answers_to_next_that_are_no_events() {
    check("answer to Next", next_answers(), next).await;
}

const UNREGISTERED: &str = "the extension can't be registered yet";

fn registrations() -> Vec<Case<Bytes>> {
    use Kind::*;
    const ID: &str = "Lambda-Extension-Identifier: the-identifier\r\n";
    let of = |kind, bytes, says| case(kind, bytes, UNREGISTERED, says, 2);
    let long = format!("{ID}{}", "X: y\r\n".repeat(1_000));
    vec![
        of(Empty, Bytes(Vec::new()), "connection closed before message completed"),
        of(Empty, answer(200, ID, ""), "EOF while parsing"),
        of(Truncated, answer(200, "", "{}"), "missing extension id header"),
        of(Truncated, answer(200, ID, r#"{"functionName":"f""#), "EOF while parsing"),
        of(Oversized, answer(200, &long, "{}"), "too large"),
        of(WrongType, answer(200, ID, "null"), "invalid type: null"),
        of(WrongVersion, answer(403, ID, r#"{"errorType":"Extension.InvalidEventType"}"#), "403 Forbidden"),
        of(NotUtf8, answer(200, ID, b"\xff"), "expected value"),
    ]
}

/// Answers a registration so, and sees that it is tried once more and that what comes after is as ever.
async fn register(Bytes(bytes): Bytes) -> Seen {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    api.call().await.say(bytes);
    let message = extension.said("can't be registered").await;
    api.ready().await.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
    let error = if message.contains(UNREGISTERED) { UNREGISTERED } else { "?" };
    Seen { error: error.to_owned(), message, requests: 2 + usize::from(!api.is_quiet()) }
}

#[tokio::test]
async fn answers_to_the_registration_that_register_nothing() {
    check("answer to the registration", registrations(), register).await;
}

type Variable = (&'static str, OsString);

/// The names are the log's levels: nothing that a variable says ends the extension.
fn variables() -> Vec<Case<Variable>> {
    use Kind::*;
    const API: &str = "AWS_LAMBDA_RUNTIME_API";
    const NEITHER: &str = "AWS_LAMBDA_RUNTIME_API is neither host:port nor an http URL";
    const LEVELS: &str = "`info` is taken: use error, warn, info, debug, trace or off";
    let text = |name, value: &str| (name, OsString::from(value));
    let bytes = |name, value: &[u8]| (name, OsStr::from_bytes(value).to_owned());
    let long = format!("/tmp/{}.sock", "s".repeat(200));
    vec![
        case(Empty, text(API, ""), "ERROR", NEITHER, 0),
        case(Truncated, text(API, "http://"), "ERROR", NEITHER, 0),
        case(Oversized, text("LEASEHOLD_SOCKET", &long), "ERROR", "set LEASEHOLD_SOCKET to another path", 1),
        case(WrongType, text(API, "127.0.0.1:9001:2"), "ERROR", NEITHER, 0),
        case(WrongType, text("LEASEHOLD_SOCKET", "/dev/null"), "ERROR", "remove it, or set LEASEHOLD_SOCKET", 1),
        case(WrongVersion, text("LEASEHOLD_LOG", "verbose"), "WARN", LEVELS, 1),
        case(NotUtf8, bytes(API, b"127.0.0.1:\xff"), "ERROR", NEITHER, 0),
        case(NotUtf8, bytes("LEASEHOLD_LOG", b"\xff"), "WARN", LEVELS, 1),
        case(
            Other,
            text("LEASEHOLD_SOCKET", "/dev/null/keeper.sock"),
            "ERROR",
            "set LEASEHOLD_SOCKET to another path",
            1,
        ),
    ]
}

/// Starts an extension with it, and sees what it says first and whether it registers.
async fn start((name, value): Variable) -> Seen {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start_with(&place, api.address(), &[(name, &value)]);
    let message = extension.said("").await;
    let error = message.split_whitespace().next().unwrap_or_default().to_owned();
    let requests = if name == "AWS_LAMBDA_RUNTIME_API" {
        assert!(extension.is_running());
        usize::from(!api.is_quiet())
    } else {
        api.ready().await.shutdown();
        assert_eq!(extension.exited().await.code(), Some(0));
        1 + usize::from(!api.is_quiet())
    };
    Seen { error, message, requests }
}

#[tokio::test]
async fn variables_that_say_nothing_usable() {
    check("the extension's variable", variables(), start).await;
}
