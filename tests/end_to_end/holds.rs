//! The shape of a hold: handlers that tell of their progress, two keys while a template changes, hashed keys, and ends
//! before the deadline.

use std::path::Path;
use std::time::Duration;

use leasehold::key::{KeyHash, LockKey};
use leasehold_sandbox::{DynamoDb, EventKind, demo::Said};
use serde_json::json;

use crate::stage::{SOON, TABLE, function, is_held, said, start};

fn at_us(said: &Said) -> u64 {
    said.at_us().unwrap()
}

#[tokio::test]
async fn a_handler_that_blocks_and_tells_of_its_progress_keeps_its_lock() {
    let builder = function("blocking").await.environments(2).timeout(Duration::from_secs(60));
    let builder = builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_SILENCE", "5s");
    let sandbox = start(builder.env("LEASEHOLD_MAX_WAIT", "50s")).await;
    // Longer than a silence and a lease may last together.
    let first = sandbox.environment(0).start_invocation(json!({ "id": "a", "steps": 8 }));
    let first_id = first.request_id().to_owned();
    said(&sandbox, "work began", &first_id).await;
    let second = sandbox.environment(1).start_invocation(json!({ "id": "a" }));
    let second_id = second.request_id().to_owned();
    let (first, second) = tokio::join!(first.outcome(), second.outcome());
    assert!(first.is_success() && second.is_success(), "{first:?} {second:?}\n{}", sandbox.log().timeline());
    let (_, ended) = said(&sandbox, "work ended", &first_id).await;
    let (_, began) = said(&sandbox, "work began", &second_id).await;
    assert!(at_us(&ended) < at_us(&began), "both worked at once\n{}", sandbox.log().timeline());
}

#[tokio::test]
async fn a_wedged_handler_is_renewed_no_more_and_its_lock_goes_to_the_next() {
    let builder = function("blocking").await.environments(2).timeout(Duration::from_secs(60));
    let builder = builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_SILENCE", "1s");
    let sandbox = start(builder.env("LEASEHOLD_MAX_WAIT", "50s")).await;
    let wedged = sandbox.environment(0).start_invocation(json!({ "id": "a", "silent_ms": 15_000 }));
    let wedged_id = wedged.request_id().to_owned();
    said(&sandbox, "work began", &wedged_id).await;
    let next = sandbox.environment(1).start_invocation(json!({ "id": "a" }));
    let (_, taken) = said(&sandbox, "acquired", next.request_id()).await;
    assert!(taken.took_over(), "who is silent frees nothing");
    let (_, lost) = said(&sandbox, "lost", &wedged_id).await;
    assert!(lost.field("reason").unwrap().contains("`max_silence`"), "{lost:?}");
    assert!(next.outcome().await.is_success());
    let outcome = wedged.outcome().await;
    assert_eq!(outcome.error_type(), Some("LeaseLost"), "{outcome:?}\n{}", sandbox.log().timeline());
    assert!(outcome.error().unwrap().message.contains("`max_silence`"), "{outcome:?}");
}

#[tokio::test]
async fn the_old_and_the_new_version_exclude_each_other_while_a_template_changes() {
    let long = Duration::from_secs(60);
    let old = start(function("locked").await.env("LEASEHOLD_MAX_WAIT", "50s").timeout(long)).await;
    let endpoint = DynamoDb::Endpoint(old.endpoint_url().unwrap().to_owned());
    let new = function("changed").await.env("LEASEHOLD_MAX_WAIT", "50s").timeout(long).dynamodb(endpoint);
    let new = new.start().await.unwrap();
    for (first, second) in [(&old, &new), (&new, &old)] {
        let holding = first.start_invocation(json!({ "id": "a", "sleep_ms": 1_500 }));
        let holding_id = holding.request_id().to_owned();
        said(first, "work began", &holding_id).await;
        assert!(is_held(&old, "jobs:a").await);
        let waiting = second.start_invocation(json!({ "id": "a" }));
        let waiting_id = waiting.request_id().to_owned();
        let (holding, waiting) = tokio::join!(holding.outcome(), waiting.outcome());
        assert!(holding.is_success() && waiting.is_success(), "{holding:?} {waiting:?}\n{}", second.log().timeline());
        let (_, ended) = said(first, "work ended", &holding_id).await;
        let (_, began) = said(second, "work began", &waiting_id).await;
        assert!(at_us(&ended) < at_us(&began), "both worked at once");
    }
    let outcome = new.invoke(json!({ "id": "b" })).await;
    assert_eq!(outcome.json().unwrap()["key"], "orders:b");
    new.environment(0).wait_until_idle().await.unwrap();
    old.environment(0).wait_until_idle().await.unwrap();
    for key in ["jobs:a", "orders:a", "jobs:b", "orders:b"] {
        assert!(old.tables().row(TABLE, key).await.unwrap().is_some(), "{key} was never locked");
        assert!(!is_held(&old, key).await, "{key} is still held");
    }
}

/// Every file's content below a folder.
fn contents(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all.extend(contents(&entry.path())),
            kind if kind.is_file() => all.extend(std::fs::read(entry.path()).unwrap()),
            _ => {}
        }
    }
    all
}

#[tokio::test]
async fn hashed_keys_are_nowhere_in_clear_text() {
    const EMAIL: &str = "alice@example.com";
    let builder = function("customers").await.environments(2).timeout(Duration::from_secs(60));
    let builder = builder.env("LEASEHOLD_HASHED_KEYS", "true").env("LEASEHOLD_NAMESPACE", "crm");
    let builder = builder.env("LEASEHOLD_MAX_WAIT", "300ms").env("LEASEHOLD_LOG", "trace");
    // With TRACE the runtime itself writes down each event.
    let builder = builder.env("AWS_LAMBDA_LOG_LEVEL", "DEBUG").env("LEASEHOLD_RESERVE", "200ms");
    let sandbox = start(builder.freeze(false)).await;
    let (one, other) = (sandbox.environment(0), sandbox.environment(1));
    let hash = KeyHash::plain().of(&LockKey::new(format!("customers:{EMAIL}")).unwrap());
    let key = format!("crm/{hash}");
    let mut told = Vec::new();

    // Held, with its note in the journal, and busy for another.
    let holding = one.start_invocation(json!({ "email": EMAIL, "sleep_ms": 5_000 }));
    said(&sandbox, "work began", holding.request_id()).await;
    assert!(is_held(&sandbox, &key).await, "{:?}", sandbox.tables().rows(TABLE).await);
    let noted = contents(&one.tmp().unwrap());
    assert!(String::from_utf8_lossy(&noted).contains(hash.as_str()), "the journal has no note of it");
    told.push(String::from_utf8_lossy(&noted).into_owned());
    told.push(format!("{:?}", sandbox.tables().rows(TABLE).await.unwrap()));
    let busy = other.invoke(json!({ "email": EMAIL })).await;
    assert_eq!(busy.error_type(), Some("LeaseBusy"), "{busy:?}");
    assert!(busy.error().unwrap().message.contains(&key), "{busy:?}");
    told.push(format!("{busy:?}"));
    let answered = holding.outcome().await;
    assert_eq!(answered.json().unwrap()["key"], key.as_str());
    told.push(format!("{answered:?}"));

    // Everything else that is told of a key.
    for payload in [
        json!({ "email": EMAIL, "then": "fail" }),
        json!({ "email": EMAIL, "then": "abort" }),
        json!({ "email": { "of": EMAIL } }),
        json!({ "email": EMAIL, "sleep_ms": EMAIL }),
    ] {
        let outcome = one.invoke(payload).await;
        assert!(!outcome.is_success(), "{outcome:?}");
        told.push(format!("{outcome:?}"));
    }
    // Lost, by hand.
    let losing = other.start_invocation(json!({ "email": EMAIL, "sleep_ms": 30_000 }));
    said(&sandbox, "work began", losing.request_id()).await;
    let mut row = sandbox.tables().row(TABLE, &key).await.unwrap().unwrap();
    row.remove("owner");
    sandbox.tables().put(TABLE, row).await.unwrap();
    let lost = losing.outcome().await;
    assert_eq!(lost.error_type(), Some("LeaseLost"), "{lost:?}");
    told.push(format!("{lost:?}"));

    told.push(format!("{:?}", sandbox.tables().rows(TABLE).await.unwrap()));
    let outputs = sandbox.log().all(|event| matches!(event.kind, EventKind::Output { .. }));
    assert!(outputs.iter().any(|event| event.is_output(hash.as_str())), "no log names the hash");
    told.extend(outputs.into_iter().map(|event| format!("{event:?}")));
    let clear: Vec<_> = told.iter().filter(|text| text.contains("alice")).collect();
    assert!(clear.is_empty(), "{clear:#?}");
}

#[tokio::test]
async fn a_slow_handler_is_ended_before_lambda_kills_its_environment() {
    let builder = function("customers").await.env("LEASEHOLD_END_BEFORE_DEADLINE", "2s").env("LEASEHOLD_RESERVE", "3s");
    let sandbox = start(builder.timeout(Duration::from_secs(6))).await;
    let environment = sandbox.environment(0);
    let slow = environment.start_invocation(json!({ "email": "a", "sleep_ms": 60_000 }));
    let slow_id = slow.request_id().to_owned();
    let outcome = slow.outcome().await;
    assert_eq!(outcome.error_type(), Some("OutOfTime"), "{outcome:?}\n{}", sandbox.log().timeline());
    let (_, released) = said(&sandbox, "released", &slow_id).await;
    assert_eq!(released.field("reason").as_deref(), Some("dropped"));
    // The same processes take the next invocation.
    assert!(environment.invoke(json!({ "email": "a" })).await.is_success());
    let shutdowns = sandbox.log().count(|event| matches!(event.kind, EventKind::ShutdownSent { .. }));
    assert_eq!(shutdowns, 0, "{}", sandbox.log().timeline());
}

#[tokio::test]
async fn max_hold_ends_a_lease_where_no_deadline_does() {
    let builder = function("concurrent").await.managed_instances(2).timeout(Duration::from_secs(60));
    let builder = builder.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_HOLD", "2s");
    let sandbox = start(builder).await;
    let environment = sandbox.environment(0);
    environment.start().await.unwrap();
    let outcome = environment.invoke(json!({ "id": "a", "sleep_ms": 50_000 })).await;
    assert_eq!(outcome.error_type(), Some("LeaseLost"), "{outcome:?}\n{}", sandbox.log().timeline());
    assert!(outcome.error().unwrap().message.contains("`max_hold`"), "{outcome:?}");
    // With a deadline it is the deadline that ends the work.
    let builder = function("locked").await.env("LEASEHOLD_LEASE_DURATION", "1s").env("LEASEHOLD_MAX_HOLD", "500ms");
    let sandbox = start(builder.timeout(Duration::from_secs(60))).await;
    let outcome = sandbox.invoke(json!({ "id": "a", "sleep_ms": 4_000 })).await;
    assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
    sandbox.log().wait_for(|event| matches!(event.kind, EventKind::ResponsePosted { .. }), SOON).await.unwrap();
}
