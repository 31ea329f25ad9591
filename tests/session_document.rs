//! `docs/session.md` against the code: its examples are messages, it knows every message, field and kind, and its numbers
//! are the ones that hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use leasehold::protocol::{HolderInfo, OwnerId};
use leasehold::session::{
    Acquire, CheckAnswer, Counted, ErrorKind, FailKind, FromKeeper, Inspect, Inspected, MAX_LINE, OnCrash, PollingMs,
    RawState, ReleaseReason, RowState, Table, ToKeeper, VERSION, VersionRange,
};
use serde::Serialize;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../docs/session.md");

/// The lines of its JSON blocks.
fn examples() -> Vec<Value> {
    let blocks = DOCUMENT.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// As the real types read it and write it again.
fn round_trip(example: &Value) -> Value {
    let to_keeper = serde_json::from_value::<ToKeeper>(example.clone());
    let from_keeper = serde_json::from_value::<FromKeeper>(example.clone());
    match (to_keeper, from_keeper) {
        (Ok(line), Err(_)) => serde_json::to_value(line).unwrap(),
        (Err(_), Ok(line)) => serde_json::to_value(line).unwrap(),
        other => panic!("{example} is {other:?}"),
    }
}

/// What stands in the first and not, or not so, in the second.
fn missing(from: &Value, within: &Value, path: &str) -> Vec<String> {
    match (from, within) {
        (Value::Object(from), Value::Object(within)) => from
            .iter()
            .flat_map(|(name, value)| {
                missing(value, within.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
            })
            .collect(),
        _ if from == within => vec![],
        _ => vec![format!("{path}: {from} and {within}")],
    }
}

#[test]
fn every_example_is_a_message_and_loses_nothing_on_the_way_through_the_types() {
    let examples = examples();
    assert!(examples.len() >= 20, "{} examples", examples.len());
    for example in examples {
        let again = round_trip(&example);
        assert_eq!(missing(&example, &again, ""), Vec::<String>::new(), "{example}");
    }
}

#[test]
fn every_message_has_an_example_with_all_its_fields() {
    let examples = examples();
    for message in messages() {
        let of_this_type = examples.iter().filter(|example| example["type"] == message["type"]);
        let of_this_state = of_this_type.filter(|example| example.get("state") == message.get("state"));
        let shown: BTreeSet<String> = of_this_state.flat_map(names).collect();
        assert!(!shown.is_empty(), "no example of {message}");
        let told = names(&message).into_iter().filter(|name| !shown.contains(name));
        // What no example shows stands in a table at least.
        let untold: Vec<_> = told.filter(|name| !DOCUMENT.contains(&format!("`{name}`"))).collect();
        assert_eq!(untold, Vec::<String>::new(), "of {message}");
    }
}

fn names(value: &Value) -> Vec<String> {
    let Value::Object(fields) = value else { return vec![] };
    fields.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(names(value))).collect()
}

/// One of each, with everything that it can have.
fn messages() -> Vec<Value> {
    let (owner, versions) = (OwnerId::from_u128(1), VersionRange::SPOKEN);
    let acquire = Acquire {
        id: 1,
        key: "k".to_owned(),
        table: Table { sort_key: Some(("sk".to_owned(), "v".to_owned())), ..Table::new("t") },
        lease_ms: 1,
        wait_ms: 1,
        answer_within_ms: Some(1),
        polling: Some(PollingMs::default()),
        on_crash: OnCrash::Expire,
        server_time: true,
        max_hold_ms: 1,
        max_silence_ms: Some(1),
        state_retention_ms: Some(1),
        attributes: [("team".to_owned(), "data".to_owned())].into(),
        holder: HolderInfo { note: "n".to_owned(), acquired_at: Some(1), parked: true, ..HolderInfo::default() },
    };
    let to_keeper = [
        ToKeeper::Hello { versions },
        ToKeeper::Begin { versions, request_id: "r".to_owned(), deadline_ms: Some(1), lost: vec![owner] },
        ToKeeper::Check { owner },
        ToKeeper::Acquire(Box::new(acquire)),
        ToKeeper::Progress { id: 1 },
        ToKeeper::Release { id: 1, reason: ReleaseReason::Finished, wait: true, hold_at_least_ms: Some(1) },
        ToKeeper::Inspect(Box::new(Inspect { id: 1, key: "k".to_owned(), table: Table::new("t"), server_time: true })),
        ToKeeper::Count { id: 1 },
        ToKeeper::LoadState { id: 1, call: 1 },
        ToKeeper::SaveState { id: 1, call: 1, value: RawState::parse("1").ok(), on_release: true },
        ToKeeper::End,
    ];
    let token = serde_json::from_value(7.into()).unwrap();
    let from_keeper = [
        FromKeeper::Began { version: VERSION },
        FromKeeper::Granted { id: 1, owner, token, valid_for_ms: 1, waited_ms: 1, attempts: 1, queued_ms: 1 },
        FromKeeper::Busy { id: 1, holder: Some(HolderInfo::default()), waited_ms: 1, attempts: 1, retry_after_ms: 1 },
        FromKeeper::Failed { id: 1, kind: FailKind::Server, message: String::new() },
        FromKeeper::Released { id: 1 },
        FromKeeper::AtRisk { id: 1 },
        FromKeeper::Secured { id: 1 },
        FromKeeper::Lost { id: 1, reason: String::new() },
        inspected(RowState::Absent),
        inspected(RowState::Free { version: 1 }),
        inspected(RowState::Held {
            owner,
            version: Some(1),
            lease_ms: 1,
            unchanged_for_ms: 1,
            retry_after_ms: 1,
            holder: Some(HolderInfo::default()),
        }),
        FromKeeper::Counted(Box::new(Counted {
            write_unit_millionths: Some(1),
            read_unit_millionths: Some(1),
            ..Counted::default()
        })),
        FromKeeper::State { id: 1, call: 1, value: RawState::parse("1").ok() },
        FromKeeper::StateSaved { id: 1, call: 1 },
        FromKeeper::StateFailed { id: 1, call: 1, kind: FailKind::Server, message: String::new() },
        FromKeeper::Checked(CheckAnswer::Held { valid_for_ms: 1 }),
        FromKeeper::Checked(CheckAnswer::Lost { reason: String::new() }),
        FromKeeper::Checked(CheckAnswer::Unknown),
        FromKeeper::Error { kind: ErrorKind::Line, message: String::new() },
    ];
    // A message that is added has to be added above as well.
    for message in &to_keeper {
        match message {
            ToKeeper::Hello { .. } | ToKeeper::Begin { .. } | ToKeeper::Check { .. } => {}
            ToKeeper::Acquire(_) | ToKeeper::Progress { .. } | ToKeeper::Release { .. } | ToKeeper::End => {}
            ToKeeper::Inspect(_) | ToKeeper::Count { .. } => {}
            ToKeeper::LoadState { .. } | ToKeeper::SaveState { .. } => {}
        }
    }
    for message in &from_keeper {
        match message {
            FromKeeper::Began { .. } | FromKeeper::Granted { .. } | FromKeeper::Busy { .. } => {}
            FromKeeper::Failed { .. } | FromKeeper::Released { .. } | FromKeeper::AtRisk { .. } => {}
            FromKeeper::Inspected(_) | FromKeeper::Counted(_) => {}
            FromKeeper::State { .. } | FromKeeper::StateSaved { .. } | FromKeeper::StateFailed { .. } => {}
            FromKeeper::Secured { .. }
            | FromKeeper::Lost { .. }
            | FromKeeper::Checked(_)
            | FromKeeper::Error { .. } => {}
        }
    }
    let values =
        |messages: &[&dyn erased::Serialize]| messages.iter().map(|message| message.value()).collect::<Vec<_>>();
    let mut all = values(&to_keeper.each_ref().map(|message| message as &dyn erased::Serialize));
    all.extend(values(&from_keeper.each_ref().map(|message| message as &dyn erased::Serialize)));
    all
}

fn inspected(row: RowState) -> FromKeeper {
    FromKeeper::Inspected(Box::new(Inspected { id: 1, row }))
}

/// Messages of either direction in one list.
mod erased {
    pub(crate) trait Serialize {
        fn value(&self) -> serde_json::Value;
    }

    impl<T: super::Serialize> Serialize for T {
        fn value(&self) -> serde_json::Value {
            serde_json::to_value(self).unwrap()
        }
    }
}

#[test]
fn every_kind_of_failure_and_error_and_every_choice_is_explained() {
    let fail_kinds = [
        FailKind::Throttled,
        FailKind::TransactionConflict,
        FailKind::Server,
        FailKind::Timeout,
        FailKind::Connection,
        FailKind::MissingTable,
        FailKind::WrongKeySchema,
        FailKind::AccessDenied,
        FailKind::Credentials,
        FailKind::Rejected,
        FailKind::ForeignRow,
        FailKind::MalformedRow,
        FailKind::TooLate,
        FailKind::AlreadyHeld,
        FailKind::Cancelled,
        FailKind::BadRequest,
        FailKind::ShuttingDown,
        FailKind::NotHeld,
        FailKind::Unconfirmed,
    ];
    let error_kinds = [ErrorKind::Versions, ErrorKind::Line, ErrorKind::Message, ErrorKind::Order, ErrorKind::Silence];
    let reasons = [ReleaseReason::Finished, ReleaseReason::Dropped, ReleaseReason::Cancelled];
    let on_crash = [OnCrash::Release, OnCrash::Expire];
    let words = fail_kinds.iter().map(word).chain(error_kinds.iter().map(word));
    for word in words.chain(reasons.iter().map(word)).chain(on_crash.iter().map(word)) {
        assert!(DOCUMENT.contains(&format!("`{word}`")), "{word} is not explained");
    }
}

fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn its_version_and_its_longest_line_are_those_of_the_code() {
    assert!(DOCUMENT.contains(&format!("This is session version **{VERSION}**")));
    assert_eq!(MAX_LINE, 65_536);
    assert!(DOCUMENT.contains("at most 65,536 bytes"));
}
