//! The test double as handler authors use it: each answer that a handler can meet, without a real second of waiting.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::session::{FailKind, ReleaseReason};
use leasehold::testing::{Answer, Happened, TestKeeper};
use leasehold::{InvocationError, Lease, LeaseLayer, LeaseLayerBuilder, OnCrash, OnLoss, OnUnavailable};
use serde_json::{Value, json};
use tokio::sync::oneshot;

const KEY: &str = "orders:17";

fn layer(keeper: &TestKeeper) -> LeaseLayerBuilder<Value> {
    LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(5)).test_keeper(keeper)
}

fn order() -> Value {
    json!({ "id": 17 })
}

async fn token(_: LambdaEvent<Value>) -> Result<Value, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?;
    Ok(json!(lease.token()))
}

fn refusal<R: std::fmt::Debug, E: std::fmt::Debug>(answer: Result<R, InvocationError<E>>) -> leasehold::Error {
    match answer {
        Err(InvocationError::Lease { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_free_key_is_granted_and_given_back() {
    let keeper = TestKeeper::new();
    let mut service = layer(&keeper).build().unwrap().layer(service_fn(token));
    assert_eq!(keeper.invoke(&mut service, order()).await.unwrap(), json!(1));
    assert_eq!(keeper.invoke(&mut service, order()).await.unwrap(), json!(2), "tokens grow");
    assert!(!keeper.is_held(KEY));
    let released = Happened::Released { key: KEY.to_owned(), reason: ReleaseReason::Finished };
    assert_eq!(keeper.happened().into_iter().filter(|happened| *happened == released).count(), 2);
}

#[tokio::test]
async fn a_key_held_elsewhere_is_busy_after_the_wait_and_no_real_time() {
    let keeper = TestKeeper::new();
    let mut service = layer(&keeper).max_wait(Duration::from_secs(3)).build().unwrap().layer(service_fn(token));
    keeper.hold_elsewhere_for(KEY, Duration::from_secs(20));
    let leasehold::Error::LeaseBusy(busy) = refusal(keeper.invoke(&mut service, order()).await) else { panic!() };
    assert_eq!((busy.waited, busy.retry_after), (Duration::from_secs(3), Duration::from_secs(17)));
    assert_eq!(busy.holder.unwrap().function, "elsewhere");
    keeper.free_elsewhere(KEY);
    assert!(keeper.invoke(&mut service, order()).await.is_ok());
}

#[tokio::test]
async fn a_holder_that_ends_within_the_wait_is_waited_for() {
    let keeper = TestKeeper::new();
    let mut service = layer(&keeper).build().unwrap().layer(service_fn(token));
    keeper.hold_elsewhere_for(KEY, Duration::from_secs(1));
    assert_eq!(keeper.invoke(&mut service, order()).await.unwrap(), json!(1));
}

#[tokio::test]
async fn too_little_time_asks_for_nothing_and_a_late_answer_is_none() {
    let keeper = TestKeeper::new();
    let mut service = layer(&keeper).build().unwrap().layer(service_fn(token));
    let event = keeper.event_within(order(), Duration::from_secs(4));
    assert_eq!(refusal(service.call(event).await).error_type(), "DeadlineTooClose");
    assert!(!keeper.happened().iter().any(|happened| matches!(happened, Happened::Asked { .. })));

    keeper.delay_next_answer(Duration::from_secs(3));
    let event = keeper.event_within(order(), Duration::from_secs(7));
    assert_eq!(refusal(service.call(event).await).error_type(), "GrantTooLate");
    assert!(!keeper.is_held(KEY));
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_comes_to_be_at_risk_and_then_lost() {
    let keeper = TestKeeper::new();
    let time = keeper.clone();
    let work = move |_: LambdaEvent<Value>| {
        let time = time.clone();
        async move {
            let lease = Lease::current()?;
            time.advance(Duration::from_secs(600));
            assert_eq!(lease.valid_for()?, Duration::from_secs(27), "renewed all along");
            time.stop_renewing();
            time.advance(Duration::from_secs(18));
            lease.at_risk().await;
            lease.ensure_held()?;
            time.go_on_renewing();
            assert_eq!(lease.valid_for()?, Duration::from_secs(27), "secured");
            time.stop_renewing();
            time.advance(Duration::from_secs(27));
            assert_eq!(lease.ensure_held().unwrap_err().error_type(), "LeaseLost");
            Ok::<_, Error>("went on")
        }
    };
    let lenient = layer(&keeper).on_loss(OnLoss::Signal).build().unwrap();
    assert_eq!(keeper.invoke(&mut lenient.layer(service_fn(work)), order()).await.unwrap(), "went on");
}

#[tokio::test]
async fn a_lost_lease_cancels_the_handler() {
    let keeper = TestKeeper::new();
    let (begun, began) = oneshot::channel();
    let begun = std::sync::Arc::new(std::sync::Mutex::new(Some(begun)));
    let endless = move |_: LambdaEvent<Value>| {
        let begun = begun.lock().unwrap().take();
        async move {
            begun.unwrap().send(()).unwrap();
            std::future::pending::<Result<(), Error>>().await
        }
    };
    let mut service = layer(&keeper).build().unwrap().layer(service_fn(endless));
    let lose = async {
        began.await.unwrap();
        keeper.lose(KEY);
    };
    let (answer, ()) = tokio::join!(keeper.invoke(&mut service, order()), lose);
    assert_eq!(refusal(answer).error_type(), "LeaseLost");
    let lost = |happened: &Happened| matches!(happened, Happened::Lost { key, .. } if key == KEY);
    assert!(keeper.happened().iter().any(lost));
}

#[tokio::test]
async fn two_invocations_on_one_key_run_one_after_the_other() {
    let keeper = TestKeeper::new();
    let running = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let alone = move |_: LambdaEvent<Value>| {
        let running = running.clone();
        async move {
            assert!(!running.swap(true, std::sync::atomic::Ordering::SeqCst));
            tokio::task::yield_now().await;
            running.store(false, std::sync::atomic::Ordering::SeqCst);
            Ok::<_, Error>(())
        }
    };
    let service = layer(&keeper).build().unwrap().layer(service_fn(alone));
    let (mut first, mut second) = (service.clone(), service);
    let answers = tokio::join!(keeper.invoke(&mut first, order()), keeper.invoke(&mut second, order()));
    answers.0.unwrap();
    answers.1.unwrap();
}

#[tokio::test]
async fn who_waits_for_a_lease_of_the_same_test_is_busy_once_time_is_moved_past_its_wait() {
    let keeper = TestKeeper::new();
    let (done, wait) = oneshot::channel::<()>();
    let wait = std::sync::Arc::new(tokio::sync::Mutex::new(Some(wait)));
    let slow = move |_: LambdaEvent<Value>| {
        let wait = wait.clone();
        async move {
            if let Some(wait) = wait.lock().await.take() {
                wait.await.unwrap();
            }
            Ok::<_, Error>(())
        }
    };
    let service = layer(&keeper).build().unwrap().layer(service_fn(slow));
    let (mut first, mut second) = (service.clone(), service);
    let contend = async {
        let (answer, ()) = tokio::join!(keeper.invoke(&mut second, order()), async {
            // The second has asked by now: it is polled first.
            keeper.advance(Duration::from_secs(2));
        });
        done.send(()).unwrap();
        answer
    };
    let (held, refused) = tokio::join!(keeper.invoke(&mut first, order()), contend);
    held.unwrap();
    assert_eq!(refusal(refused).error_type(), "LeaseBusy");
}

#[tokio::test]
async fn a_dynamodb_out_of_reach_is_what_the_layer_makes_of_it() {
    let keeper = TestKeeper::new();
    keeper.fail(FailKind::Connection);
    let mut strict = layer(&keeper).build().unwrap().layer(service_fn(token));
    assert_eq!(refusal(keeper.invoke(&mut strict, order()).await).error_type(), "StoreUnavailable");

    let unlocked = |_| async { Ok::<_, Error>(Lease::current().is_err()) };
    let lenient = layer(&keeper).on_unavailable(OnUnavailable::RunUnlocked).build().unwrap();
    assert!(keeper.invoke(&mut lenient.layer(service_fn(unlocked)), order()).await.unwrap());

    keeper.recover();
    assert!(keeper.invoke(&mut strict, order()).await.is_ok());
    let failed = Happened::Answered { key: KEY.to_owned(), with: Answer::Failed(FailKind::Connection) };
    assert!(keeper.happened().contains(&failed));
}

#[tokio::test]
async fn a_keeper_that_vanishes_is_a_loss_and_then_missing() {
    let keeper = TestKeeper::new();
    let gone = keeper.clone();
    let work = move |_: LambdaEvent<Value>| {
        let gone = gone.clone();
        async move {
            gone.vanish();
            let error = Lease::current()?.ensure_held().unwrap_err();
            Ok::<_, Error>(error.error_type())
        }
    };
    let layer = layer(&keeper).on_loss(OnLoss::Signal).build().unwrap();
    let mut service = layer.layer(service_fn(work));
    assert_eq!(keeper.invoke(&mut service, order()).await.unwrap(), "KeeperGone");
    assert_eq!(refusal(keeper.invoke(&mut service, order()).await).error_type(), "KeeperMissing");
}

#[tokio::test]
async fn a_dropped_invocation_leaves_what_on_crash_says() {
    for (on_crash, waited) in [(OnCrash::Release, 0), (OnCrash::Expire, 30)] {
        let keeper = TestKeeper::new();
        let layer = layer(&keeper).on_crash(on_crash).max_wait(Duration::from_secs(60)).build().unwrap();
        let mut endless = layer.layer(service_fn(|_| std::future::pending::<Result<(), Error>>()));
        let mut invocation = tokio_test::task::spawn(endless.call(keeper.event(order())));
        assert!(invocation.poll().is_pending());
        assert!(keeper.is_held(KEY));
        drop(invocation);
        assert!(!keeper.is_held(KEY));
        let event = keeper.event_within(order(), Duration::from_secs(300));
        let before = keeper.event(()).context.deadline;
        layer.layer(service_fn(token)).call(event).await.unwrap();
        let after = keeper.event(()).context.deadline;
        assert_eq!(after - before, waited * 1_000);
    }
}

#[tokio::test(start_paused = true)]
async fn tokios_paused_clock_makes_no_difference() {
    let keeper = TestKeeper::new();
    let mut service = layer(&keeper).build().unwrap().layer(service_fn(token));
    assert!(keeper.invoke(&mut service, order()).await.is_ok());
}
