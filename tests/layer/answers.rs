//! What is answered where there is no lease: each failure's name and words, and the ways around some of them.

use std::time::{Duration, Instant};

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::error::LeaseBusy;
use leasehold::layer::{Answers, KeySource};
use leasehold::{Lease, LeaseLayer, MissingPath, OnUnavailable, metrics};
use serde_json::{Value, json};

use crate::support::{Keeper, Peer, busy, event, event_within, failed, granted, order};

/// Runs an invocation whose `acquire` the keeper answers with this line.
async fn answered<K, B>(keeper: Keeper, layer: LeaseLayer<Value, K, B>, line: Value) -> Result<Value, Diagnostic>
where
    K: KeySource<Value>,
    B: Answers<Value, Response = Value>,
{
    let mut service = layer.layer(service_fn(unlocked_handler));
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.say(line);
        // Neither a lease nor a request is left to give back.
        peer.hear_end();
    });
    let answer = service.call(order()).await.map_err(Diagnostic::from);
    keeper.join().unwrap();
    answer
}

/// Tells why there is no lease.
async fn unlocked_handler(_: LambdaEvent<Value>) -> Result<Value, Diagnostic> {
    Ok(json!(Lease::current().unwrap_err().to_string()))
}

#[tokio::test]
async fn busy_names_the_holder_and_when_to_try_again() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").build().unwrap();
    let before = metrics::counts();
    let error = answered(keeper, layer, busy()).await.unwrap_err();
    assert_eq!(error.error_type, "LeaseBusy");
    for words in ["`orders:A-17`", "billing (request r-other)", "waited 2s", "11s", "raise `max_wait`"] {
        assert!(error.error_message.contains(words), "{words}: {}", error.error_message);
    }
    for words in ["throttl", "unavailable", "denied", "permission"] {
        assert!(!error.error_message.contains(words), "{words}: {}", error.error_message);
    }
    assert!(metrics::counts().busy > before.busy);
}

#[tokio::test]
async fn busy_can_be_a_response() {
    let keeper = Keeper::bind();
    let respond = |busy: &LeaseBusy| json!({ "statusCode": 409, "retry": busy.retry_after.as_secs() });
    let layer = keeper.layer("orders:{id}").on_busy(respond).build().unwrap();
    assert_eq!(answered(keeper, layer, busy()).await.unwrap(), json!({ "statusCode": 409, "retry": 11 }));

    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").on_busy(respond).build().unwrap();
    let error = answered(keeper, layer, failed("access_denied")).await.unwrap_err();
    assert_eq!(error.error_type, "AccessDenied", "only busy is busy");
}

#[tokio::test]
async fn each_failure_has_its_own_name() {
    let names = [
        ("throttled", "StoreThrottled"),
        ("transaction_conflict", "TransactionConflict"),
        ("server", "StoreUnavailable"),
        ("timeout", "StoreUnavailable"),
        ("connection", "StoreUnavailable"),
        ("missing_table", "TableNotFound"),
        ("wrong_key_schema", "WrongKeySchema"),
        ("access_denied", "AccessDenied"),
        ("credentials", "MissingCredentials"),
        ("rejected", "StoreRejected"),
        ("foreign_row", "ForeignRow"),
        ("malformed_row", "MalformedRow"),
        ("too_late", "GrantTooLate"),
        ("already_held", "AlreadyHeld"),
        ("bad_request", "AcquireRefused"),
        ("cancelled", "AcquireRefused"),
        ("shutting_down", "KeeperGone"),
    ];
    for (kind, name) in names {
        let keeper = Keeper::bind();
        let layer = keeper.layer("orders:{id}").build().unwrap();
        let error = answered(keeper, layer, failed(kind)).await.unwrap_err();
        assert_eq!(error.error_type, name, "{kind}");
        if name != "AlreadyHeld" {
            assert!(error.error_message.contains("as DynamoDB says"), "{kind}: {}", error.error_message);
        }
    }
}

#[tokio::test]
async fn only_an_unreachable_store_lets_a_handler_run_unlocked() {
    for kind in ["throttled", "server", "timeout", "connection"] {
        let keeper = Keeper::bind();
        let layer = keeper.layer("orders:{id}").on_unavailable(OnUnavailable::RunUnlocked).build().unwrap();
        let unlocked = metrics::counts().unlocked_unavailable;
        let why = answered(keeper, layer, failed(kind)).await.unwrap();
        assert!(why.as_str().unwrap().contains("on_unavailable"), "{why}");
        assert!(metrics::counts().unlocked_unavailable > unlocked);
    }
    for kind in ["access_denied", "missing_table", "credentials", "wrong_key_schema", "foreign_row", "too_late"] {
        let keeper = Keeper::bind();
        let layer = keeper.layer("orders:{id}").on_unavailable(OnUnavailable::RunUnlocked).build().unwrap();
        answered(keeper, layer, failed(kind)).await.unwrap_err();
    }
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").on_unavailable(OnUnavailable::RunUnlocked).build().unwrap();
    assert_eq!(answered(keeper, layer, busy()).await.unwrap_err().error_type, "LeaseBusy");
}

/// Runs an invocation that asks for no lease.
async fn without_acquire(layer: LeaseLayer<Value>, keeper: Keeper, payload: Value) -> Result<Value, Diagnostic> {
    let mut service = layer.layer(service_fn(unlocked_handler));
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept();
        peer.hear("begin");
        peer.say_if_open(json!({ "type": "began", "version": 1 }));
        peer.hear_end();
    });
    let answer = service.call(event(payload)).await.map_err(Diagnostic::from);
    keeper.join().unwrap();
    answer
}

#[tokio::test]
async fn a_missing_path_is_an_error_that_names_it_or_runs_unlocked() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{detail.id}").build().unwrap();
    let error = without_acquire(layer, keeper, json!({ "detail": {} })).await.unwrap_err();
    assert_eq!(error.error_type, "KeyNotFound");
    assert!(error.error_message.contains("`detail.id`"), "{}", error.error_message);

    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{detail.id}").missing_path(MissingPath::RunUnlocked).build().unwrap();
    let why = without_acquire(layer, keeper, json!({ "detail": {} })).await.unwrap();
    assert!(why.as_str().unwrap().contains("missing_path"), "{why}");
}

#[tokio::test]
async fn an_unusable_value_is_an_error_even_where_a_missing_one_runs_unlocked() {
    for value in [json!(null), json!(""), json!(1.5), json!(true), json!({})] {
        let keeper = Keeper::bind();
        let layer = keeper.layer("orders:{detail.id}").missing_path(MissingPath::RunUnlocked).build().unwrap();
        let error = without_acquire(layer, keeper, json!({ "detail": { "id": value } })).await.unwrap_err();
        assert_eq!(error.error_type, "KeyInvalid", "{value}");
        assert!(error.error_message.contains("`detail.id`"), "{}", error.error_message);
    }
}

#[tokio::test]
async fn a_grant_that_was_read_too_late_goes_back_and_never_reaches_the_handler() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").reserve(Duration::from_millis(1_500)).build().unwrap();
    let mut service = layer.layer(service_fn(unlocked_handler));
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        std::thread::sleep(Duration::from_millis(600));
        peer.say(granted());
        assert_eq!(peer.hear("release")["reason"], "cancelled");
        peer.hear_end();
    });
    let within = Some(Duration::from_secs(2));
    let error = service.call(event_within(json!({ "id": 1 }), within)).await.unwrap_err();
    assert_eq!(Diagnostic::from(error).error_type, "GrantTooLate");
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_keeper_that_never_answers_is_given_up_before_the_deadline() {
    for begins in [true, false] {
        let keeper = Keeper::bind();
        let layer = keeper.layer("orders:{id}").reserve(Duration::from_millis(1_600)).build().unwrap();
        let mut service = layer.layer(service_fn(unlocked_handler));
        let keeper = std::thread::spawn(move || {
            keeper.accept_hello();
            let mut peer: Peer = if begins { keeper.accept_session() } else { keeper.accept() };
            if !begins {
                peer.hear("begin");
            }
            peer.hear_acquire();
            assert_eq!(peer.hear("release")["reason"], "cancelled");
            peer.hear_end();
        });
        let began = Instant::now();
        let within = Some(Duration::from_secs(2));
        let error = service.call(event_within(json!({ "id": 1 }), within)).await.unwrap_err();
        assert_eq!(Diagnostic::from(error).error_type, "KeeperGone");
        assert!((700..2_000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn the_log_shows_the_message_of_a_refusal() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").build().unwrap();
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        keeper.accept().hear("begin");
    });
    let refused = layer.layer(service_fn(unlocked_handler)).call(event(json!({}))).await.unwrap_err();
    keeper.join().unwrap();
    let logged = format!("{refused:?}"); // as `lambda_runtime` does
    assert!(logged.starts_with("KeyNotFound: no lock key from `orders:{id}`"), "{logged}");
}
