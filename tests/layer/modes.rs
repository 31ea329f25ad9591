//! The modes that an operator sets: `observe` finds out and delays or refuses nothing, `off` does nothing at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::{Error, Lease, metrics};
use serde_json::{Value, json};

use crate::support::{Keeper, busy, event, event_within, lost, order, settle};

const OBSERVE: [(&str, &str); 1] = [("LEASEHOLD_MODE", "observe")];

/// A handler that depends on its lease as far as the type lets it.
async fn careful(_: LambdaEvent<Value>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?;
    let _guard = lease.guard()?;
    Ok(json!(lease.token()))
}

/// Set by the keeper when it has said all that it says unasked; the handler works until then.
#[derive(Clone, Debug, Default)]
struct Said(Arc<AtomicBool>);

impl Said {
    fn all(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Waits for it, and for the layer to read what was said.
    async fn heard(&self) {
        while !self.0.load(Ordering::Acquire) {
            settle().await;
        }
        for _ in 0..3 {
            settle().await;
        }
    }
}

/// Runs an invocation in mode `observe` against this keeper.
async fn observed(
    payload: Value,
    within: Option<Duration>,
    keep: impl FnOnce(&Keeper, &Said) + Send + 'static,
) -> Value {
    let keeper = Keeper::bind();
    let layer = keeper.layer_under::<Value>("orders:{id}", &OBSERVE).build().unwrap();
    let said = Said::default();
    let heard = said.clone();
    let mut service = layer.layer(service_fn(move |event| {
        let heard = heard.clone();
        async move {
            heard.heard().await;
            careful(event).await
        }
    }));
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        keep(&keeper, &said);
        said.all();
    });
    let answer = service.call(event_within(payload, within)).await.unwrap();
    keeper.join().unwrap();
    answer
}

fn id() -> Value {
    json!({ "id": "A-17" })
}

#[tokio::test]
async fn observe_takes_and_frees_behind_the_handlers_back() {
    let answer = observed(id(), None, |keeper, said| {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        said.all();
        let mut check = keeper.accept();
        check.hear("check");
        check.say(json!({ "type": "checked", "state": "held", "valid_for_ms": 1000 }));
        // Not waited for: the session ends with it.
        assert_eq!(peer.hear("release")["reason"], "finished");
        peer.hear_end();
    })
    .await;
    assert_eq!(answer, 7);
}

#[tokio::test]
async fn observe_counts_what_it_would_have_refused() {
    let before = metrics::counts().would_have_refused;
    let answer = observed(id(), None, |keeper, said| {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.say(busy());
        said.all();
        peer.hear_end();
    })
    .await;
    assert_eq!(answer, Value::Null, "no token without a lease");
    assert!(metrics::counts().would_have_refused > before);
}

#[tokio::test]
async fn observe_counts_what_it_would_have_waited() {
    // By a second write, in the keeper's own line, and to the end.
    for (settled, attempts, queued_ms) in [(true, 2, 0), (true, 1, 40), (false, 1, 0)] {
        let before = metrics::counts().would_have_waited;
        observed(id(), None, move |keeper, said| {
            let mut peer = keeper.accept_session();
            peer.hear_acquire();
            if settled {
                peer.say(json!({
                    "type": "granted", "id": 1, "owner": crate::support::OWNER, "token": 9,
                    "valid_for_ms": 27_000, "waited_ms": 45, "attempts": attempts, "queued_ms": queued_ms,
                }));
                said.all();
                let mut check = keeper.accept();
                check.hear("check");
                check.say(json!({ "type": "checked", "state": "lost", "reason": "stolen" }));
            }
            said.all();
            peer.hear("release");
            peer.hear_end();
        })
        .await;
        assert!(metrics::counts().would_have_waited > before, "{settled}");
    }
}

#[tokio::test]
async fn observe_counts_a_loss_and_lets_the_handler_run() {
    let before = metrics::counts().would_have_lost;
    observed(id(), None, |keeper, said| {
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        peer.say(lost());
        said.all();
        peer.hear_end();
    })
    .await;
    assert!(metrics::counts().would_have_lost > before);
}

#[tokio::test]
async fn observe_runs_without_a_keeper_and_with_one_that_vanishes() {
    let before = metrics::counts().would_have_refused;
    let keeper = Keeper::bind();
    let layer = keeper.layer_under::<Value>("orders:{id}", &OBSERVE).build().unwrap();
    let _dir = keeper.die();
    assert_eq!(layer.layer(service_fn(careful)).call(order()).await.unwrap(), Value::Null);
    assert!(metrics::counts().would_have_refused > before);

    observed(id(), None, |keeper, _| drop(keeper.accept_session())).await;
}

#[tokio::test]
async fn observe_runs_with_no_time_left_and_without_a_key_and_asks_for_nothing() {
    for (payload, within) in [(id(), Some(Duration::ZERO)), (json!({}), None), (json!({ "id": 1.5 }), None)] {
        let keeper = Keeper::bind();
        let layer = keeper.layer_under::<Value>("orders:{id}", &OBSERVE).build().unwrap();
        let inner = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Diagnostic>("done") });
        let mut service = layer.layer(inner);
        let keeper = std::thread::spawn(move || {
            keeper.accept_hello();
            let mut peer = keeper.accept();
            peer.hear("begin");
            peer.hear_end();
        });
        let before = metrics::counts().would_have_refused;
        assert_eq!(service.call(event_within(payload, within)).await.unwrap(), "done");
        assert!(metrics::counts().would_have_refused > before);
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn off_does_nothing_at_all() {
    let keeper = Keeper::bind();
    let layer = keeper.layer_under::<Value>("orders:{id}", &[("LEASEHOLD_MODE", "off")]).build().unwrap();
    let mut service = layer.layer(service_fn(careful));
    assert_eq!(service.call(order()).await.unwrap(), Value::Null);
    keeper.assert_alone();
    let inner = service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Diagnostic>(Lease::current().is_err()) });
    let layer = keeper.layer_under::<Value>("orders:{id}", &[("LEASEHOLD_MODE", "off")]).build().unwrap();
    assert!(layer.layer(inner).call(event(json!({}))).await.unwrap(), "without a key there is nothing to tell of");
    keeper.assert_alone();
}
