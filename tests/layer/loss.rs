//! A lease lost, at risk, or without a keeper any more: what the handler sees and what is answered.

use std::future::Future;
use std::sync::mpsc;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::layer::TemplateText;
use leasehold::{Error, InvocationError, Lease, LeaseLayerBuilder, OnLoss, metrics};
use serde_json::{Value, json};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower_test::mock;

use crate::support::{Keeper, Peer, at_risk, lost, order, secured, settle};

type Builder = LeaseLayerBuilder<Value, TemplateText>;
type Handle = mock::Handle<LambdaEvent<Value>, Value>;

/// An invocation whose handler runs, and is played by hand as well.
async fn running(set: impl FnOnce(Builder) -> Builder) -> (task::Spawn<impl Future<Output = Answer>>, Peer, Handle) {
    let keeper = Keeper::bind();
    let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
    let mut service = set(keeper.layer("orders:{id}")).build().unwrap().layer(inner);
    keeper.accept_hello();
    handler.allow(1);
    let mut response = task::spawn(service.call(order()));
    assert_pending!(response.poll());
    let mut peer = keeper.accept_session();
    settle().await;
    assert_pending!(response.poll());
    peer.hear_acquire();
    peer.grant();
    settle().await;
    assert_pending!(response.poll());
    (response, peer, handler)
}

type Answer = Result<Value, InvocationError<lambda_runtime::Error>>;

fn error_of(answer: InvocationError<lambda_runtime::Error>) -> Error {
    match answer {
        InvocationError::Lease { error, .. } => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_loss_cancels_the_handler_and_is_answered() {
    let (mut response, mut peer, mut handler) = running(|layer| layer).await;
    let (_, answer) = handler.next_request().await.unwrap();
    let losses = metrics::counts().losses;
    peer.say(lost());
    settle().await;
    assert!(response.is_woken());
    let error = error_of(assert_ready_err!(response.poll()));
    assert_eq!(error.error_type(), "LeaseLost");
    assert!(error.to_string().contains("the row was deleted"), "{error}");
    assert!(metrics::counts().losses > losses);
    // The handler's future is gone.
    answer.send_response(json!("too late"));
    peer.hear_end();
}

#[tokio::test]
async fn a_loss_that_is_read_with_the_grant_lets_no_handler_begin() {
    for keeper_stays in [true, false] {
        let keeper = Keeper::bind();
        let (inner, mut handler) = mock::pair::<LambdaEvent<Value>, Value>();
        let layer = keeper.layer("orders:{id}").on_loss(OnLoss::Signal).build().unwrap();
        let mut service = layer.layer(inner);
        keeper.accept_hello();
        let mut response = task::spawn(service.call(order()));
        assert_pending!(response.poll());
        let mut peer = keeper.accept_session();
        settle().await;
        assert_pending!(response.poll());
        peer.hear_acquire();
        peer.grant();
        if keeper_stays {
            peer.say(lost());
        } else {
            drop(peer);
        }
        settle().await;
        let error = error_of(assert_ready_err!(response.poll()));
        assert_eq!(error.error_type(), if keeper_stays { "LeaseLost" } else { "KeeperGone" });
        assert!(handler.poll_request().is_pending());
    }
}

#[tokio::test]
async fn a_loss_only_signals_where_it_is_told_to() {
    let (mut response, mut peer, mut handler) = running(|layer| layer.on_loss(OnLoss::Signal)).await;
    let (_, answer) = handler.next_request().await.unwrap();
    peer.say(lost());
    settle().await;
    assert_pending!(response.poll());
    assert_pending!(response.poll());
    answer.send_response(json!("went on"));
    assert_eq!(assert_ready_ok!(response.poll()), "went on");
    peer.hear_end();
}

#[tokio::test]
async fn a_loss_seen_with_the_response_is_answered_as_the_loss() {
    // Not even the runtime has noticed the line when the handler is done: the layer looks for itself.
    let (mut response, mut peer, mut handler) = running(|layer| layer).await;
    let (_, answer) = handler.next_request().await.unwrap();
    peer.say(lost());
    answer.send_response(json!("done"));
    assert_eq!(error_of(assert_ready_err!(response.poll())).error_type(), "LeaseLost");
    peer.hear_end();
}

#[tokio::test]
async fn a_response_seen_with_the_loss_is_kept_where_it_is_told_to() {
    let (mut response, mut peer, mut handler) = running(|layer| layer.keep_finished_response(true)).await;
    let (_, answer) = handler.next_request().await.unwrap();
    let kept = metrics::counts().responses_kept_after_loss;
    peer.say(lost());
    settle().await;
    answer.send_response(json!("done"));
    assert_eq!(assert_ready_ok!(response.poll()), "done");
    assert!(metrics::counts().responses_kept_after_loss > kept);
    peer.hear_end();
}

#[tokio::test]
async fn the_handlers_own_error_wins_over_a_loss_in_the_same_poll() {
    let (mut response, mut peer, mut handler) = running(|layer| layer).await;
    let (_, answer) = handler.next_request().await.unwrap();
    peer.say(lost());
    answer.send_error("my own");
    let error = assert_ready_err!(response.poll());
    assert!(matches!(&error, InvocationError::Handler(error) if error.to_string() == "my own"), "{error:?}");
}

#[tokio::test]
async fn a_keeper_that_vanishes_is_a_loss() {
    let (mut response, peer, _handler) = running(|layer| layer).await;
    drop(peer);
    settle().await;
    assert!(response.is_woken());
    assert_eq!(error_of(assert_ready_err!(response.poll())).error_type(), "KeeperGone");
}

#[tokio::test]
async fn a_line_that_makes_no_sense_is_a_loss() {
    for line in ["what?\n", "{\"type\":\"of_a_later_version\",\"id\":1}\n", "{\"type\":\"lost\",\"id\":1}\n"] {
        let (mut response, mut peer, _handler) = running(|layer| layer).await;
        peer.say_raw(line);
        settle().await;
        assert_eq!(error_of(assert_ready_err!(response.poll())).error_type(), "KeeperGone", "{line}");
    }
    let (mut response, mut peer, _handler) = running(|layer| layer).await;
    peer.say_raw("x".repeat(70_000));
    settle().await;
    assert_eq!(error_of(assert_ready_err!(response.poll())).error_type(), "KeeperGone");
}

#[tokio::test]
async fn a_keeper_that_refuses_a_line_says_why() {
    let (mut response, mut peer, _handler) = running(|layer| layer).await;
    peer.say(json!({ "type": "error", "message": "a line is longer than it may be" }));
    drop(peer);
    settle().await;
    let error = error_of(assert_ready_err!(response.poll()));
    assert_eq!(error.error_type(), "KeeperGone");
    assert!(error.to_string().contains("longer than it may be"), "{error}");
}

#[tokio::test]
async fn what_is_about_somebody_else_is_ignored_and_a_line_may_come_in_pieces() {
    let (mut response, mut peer, mut handler) = running(|layer| layer).await;
    peer.say(json!({ "type": "lost", "id": 2, "reason": "not ours" }));
    peer.say_raw("{\"type\":\"at_r");
    settle().await;
    assert_pending!(response.poll());
    peer.say_raw("isk\",\"id\":1}\n");
    settle().await;
    assert_pending!(response.poll());
    let (_, answer) = handler.next_request().await.unwrap();
    answer.send_response(json!("done"));
    assert_pending!(response.poll());
    peer.free();
    settle().await;
    assert_ready_ok!(response.poll());
}

/// A handler that hands its lease out and goes on until it is told to end.
async fn with_a_lease(set: impl FnOnce(Builder) -> Builder) -> (task::Spawn<impl Future>, Peer, Lease) {
    let keeper = Keeper::bind();
    let (give, take) = mpsc::channel();
    let inner = service_fn(move |_: LambdaEvent<Value>| {
        give.send(Lease::current().unwrap()).unwrap();
        std::future::pending::<Result<(), Diagnostic>>()
    });
    let mut service = set(keeper.layer("orders:{id}")).build().unwrap().layer(inner);
    keeper.accept_hello();
    let mut response = task::spawn(service.call(order()));
    assert!(response.poll().is_pending());
    let mut peer = keeper.accept_session();
    settle().await;
    assert!(response.poll().is_pending());
    peer.hear_acquire();
    peer.grant();
    settle().await;
    assert!(response.poll().is_pending());
    (response, peer, take.recv().unwrap())
}

#[tokio::test]
async fn at_risk_comes_before_lost_and_goes_with_secured() {
    let (mut response, mut peer, lease) = with_a_lease(|layer| layer.on_loss(OnLoss::Signal)).await;
    let mut risk = task::spawn(lease.at_risk());
    let mut loss = task::spawn(lease.lost());
    assert_pending!(risk.poll());
    assert_pending!(loss.poll());

    peer.say(at_risk());
    settle().await;
    assert!(risk.is_woken() && loss.is_woken() && response.is_woken());
    // Any of them may be the one that reads; none keeps it from the others.
    assert_pending!(loss.poll());
    assert!(response.poll().is_pending());
    assert_ready!(risk.poll());

    peer.say(secured());
    settle().await;
    assert_pending!(loss.poll());
    let mut risk = task::spawn(lease.at_risk());
    assert_pending!(risk.poll());

    peer.say(at_risk());
    peer.say(lost());
    settle().await;
    assert_ready!(risk.poll());
    assert_eq!(assert_ready!(loss.poll()).error_type(), "LeaseLost");
    assert!(response.poll().is_pending(), "it was told, not cancelled");
    assert_eq!(lease.ensure_held().unwrap_err().error_type(), "LeaseLost", "known here, so nobody is asked");
    assert_eq!(task::spawn(lease.lost()).poll().map(|error| error.error_type()), std::task::Poll::Ready("LeaseLost"));
}

#[tokio::test]
async fn lost_also_tells_that_the_lease_was_given_back() {
    let (response, mut peer, lease) = with_a_lease(|layer| layer).await;
    let mut loss = task::spawn(lease.lost());
    assert_pending!(loss.poll());
    let keeper = std::thread::spawn(move || {
        peer.free();
        peer
    });
    drop(response);
    let _peer = keeper.join().unwrap();
    assert!(loss.is_woken());
    assert_eq!(assert_ready!(loss.poll()).error_type(), "NoLease");
    assert_eq!(lease.ensure_held().unwrap_err().error_type(), "NoLease");
    assert_eq!(lease.guard().unwrap_err().error_type(), "NoLease");
}

#[tokio::test]
async fn a_task_that_waits_for_the_loss_hears_of_it_while_the_handler_blocks() {
    let (response, mut peer, lease) = with_a_lease(|layer| layer).await;
    // The response future is not polled at all, as if its thread were blocked.
    let waiting = tokio::spawn(async move { lease.lost().await.error_type() });
    settle().await;
    peer.say(lost());
    assert_eq!(waiting.await.unwrap(), "LeaseLost");
    drop(response);
}
