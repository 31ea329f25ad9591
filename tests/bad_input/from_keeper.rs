//! Lines from a keeper that is none of ours, or of another release. The requests are the `acquire` lines that it heard: the
//! layer does not wait for the answer to `begin`.

use std::thread::{self, JoinHandle};

use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::Lease;
use leasehold::session::MAX_LINE;
use serde_json::Value;
use tower::{Layer as _, Service as _, service_fn};

use crate::played::{Keeper, OWNER, granted, order};
use crate::table::{Bytes, Case, Kind, Seen, case, check};

/// What the line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Begin,
    Acquire,
    /// Nothing: it comes while the handler works under its lease.
    Nothing,
    Check,
}

#[derive(Clone, Debug)]
struct Input {
    to: To,
    line: Bytes,
}

fn line(to: To, line: impl AsRef<[u8]>) -> Input {
    Input { to, line: Bytes([line.as_ref(), b"\n"].concat()) }
}

fn half_a_line(to: To, line: &str) -> Input {
    Input { to, line: Bytes(line.as_bytes().to_vec()) }
}

fn cases() -> Vec<Case<Input>> {
    use Kind::*;
    use To::*;
    const ONE_RELEASE: &str = "deploy the function and the extension's layer of one release";
    const OF_ONE_RELEASE: &str = "deploy function and extension of one release";
    const ITS_LOG: &str = "look for its last words in the function's log";
    const NOT_NOW: &str = "don't take the step now: ask again";
    let with = |field: &str, value: Value| {
        let mut granted = granted();
        granted[field] = value;
        granted.to_string()
    };
    let too_long = || vec![b'x'; MAX_LINE + 1];
    vec![
        case(Empty, line(Begin, ""), "VersionMismatch", ONE_RELEASE, 1),
        case(Empty, half_a_line(Begin, ""), "KeeperGone", "it closed the connection", 1),
        case(Empty, half_a_line(Acquire, ""), "KeeperGone", ITS_LOG, 1),
        case(Empty, half_a_line(Nothing, ""), "KeeperGone", ITS_LOG, 1),
        case(Empty, line(Check, ""), "Unconfirmed", NOT_NOW, 1),
        case(Truncated, half_a_line(Begin, r#"{"type":"beg"#), "KeeperGone", "ended in the middle of a line", 1),
        case(Truncated, line(Begin, r#"{"type":"began"}"#), "VersionMismatch", "missing field `version`", 1),
        case(Truncated, half_a_line(Acquire, r#"{"type":"granted","id":1"#), "KeeperGone", ITS_LOG, 1),
        case(Truncated, line(Acquire, r#"{"type":"granted","id":1}"#), "VersionMismatch", "missing field `owner`", 1),
        case(Truncated, half_a_line(Nothing, r#"{"type":"lost""#), "KeeperGone", ITS_LOG, 1),
        case(Oversized, line(Begin, too_long()), "VersionMismatch", "a line is longer than 65536 bytes", 1),
        case(Oversized, line(Acquire, too_long()), "VersionMismatch", ONE_RELEASE, 1),
        case(
            Oversized,
            line(Acquire, with("attempts", u64::MAX.into())),
            "VersionMismatch",
            "`attempts`: invalid value",
            1,
        ),
        case(
            WrongType,
            line(Begin, r#"{"type":"began","version":"1"}"#),
            "VersionMismatch",
            "`version`: invalid type",
            1,
        ),
        case(WrongType, line(Acquire, with("token", "7".into())), "VersionMismatch", ONE_RELEASE, 1),
        case(WrongType, line(Acquire, with("owner", "me".into())), "VersionMismatch", ONE_RELEASE, 1),
        case(WrongType, line(Check, r#"{"type":"checked","state":"held"}"#), "Unconfirmed", NOT_NOW, 1),
        case(
            WrongVersion,
            line(Begin, r#"{"type":"began","version":2}"#),
            "VersionMismatch",
            "the keeper answered with session version 2): deploy",
            1,
        ),
        case(
            WrongVersion,
            line(Begin, r#"{"type":"error","message":"unknown `begin`"}"#),
            "VersionMismatch",
            ONE_RELEASE,
            1,
        ),
        // A later release's: it is a failure all the same, and no reason to give up the session.
        case(
            WrongVersion,
            line(Acquire, r#"{"type":"failed","id":1,"kind":"too_hot","message":"no"}"#),
            "AcquireRefused",
            OF_ONE_RELEASE,
            1,
        ),
        case(WrongVersion, line(Nothing, r#"{"type":"paused","id":1}"#), "KeeperGone", "unknown variant `paused`", 1),
        case(NotUtf8, line(Begin, b"\xff\xfe"), "VersionMismatch", ONE_RELEASE, 1),
        case(
            NotUtf8,
            line(Acquire, b"{\"type\":\"lost\",\"id\":1,\"reason\":\"\xff\"}"),
            "VersionMismatch",
            ONE_RELEASE,
            1,
        ),
        case(Other, line(Nothing, r#"{"type":"error","message":"out of memory"}"#), "KeeperGone", "out of memory", 1),
        case(Other, line(Check, format!(r#"{{"type":"lost","id":1,"reason":"{OWNER}"}}"#)), "Unconfirmed", NOT_NOW, 1),
    ]
}

/// Plays the keeper up to the line, says it, and hears the layer out; the number of `acquire` lines. The first of them follows
/// `begin` at once, whatever that is answered with.
fn play(keeper: Keeper, Input { to, line: Bytes(line) }: Input) -> JoinHandle<usize> {
    thread::spawn(move || {
        if to == To::Begin {
            let mut peer = keeper.accept();
            peer.hear("begin");
            peer.say_raw(line);
            return peer.hang_up().matches(r#""type":"acquire""#).count();
        }
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        if to != To::Acquire {
            peer.grant();
        }
        if to == To::Check {
            let mut asked = keeper.accept();
            asked.hear("check");
            asked.say_raw(line);
            asked.hang_up();
            peer.free();
        } else {
            peer.say_raw(line);
        }
        1 + peer.hang_up().matches(r#""type":"acquire""#).count()
    })
}

async fn run(input: Input) -> Seen {
    let keeper = Keeper::bind();
    let layer = keeper.layer::<Value>("orders:{id}").build().unwrap();
    let asks = input.to == To::Check;
    let mut service = layer.layer(service_fn(move |_: LambdaEvent<Value>| async move {
        if asks {
            Lease::current()?.ensure_held()?;
        }
        std::future::pending::<Result<(), leasehold::Error>>().await
    }));
    keeper.accept_hello();
    let played = play(keeper, input);
    let Diagnostic { error_type, error_message } = service.call(order()).await.unwrap_err().into();
    Seen { error: error_type, message: error_message, requests: played.join().unwrap() }
}

#[tokio::test]
async fn lines_that_the_layer_cannot_take() {
    check("line from the keeper", cases(), run).await;
}
