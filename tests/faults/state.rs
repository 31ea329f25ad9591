//! Saving a state, and leaving one with the release: written once, by who holds the lock, whatever happens on the way.

use leasehold::session::FailKind;
use leasehold_sandbox::faults::{Answer, End, Fault, Step};

use crate::LONG;
use crate::session::{Ask, Session};
use crate::stage::{Stage, until};
use crate::weather;

async fn holding(stage: &Stage) -> Session {
    let mut holder = stage.through(&weather::reply_lost()[0]).await;
    holder.ask(Ask::patient().lease(6_000)).await;
    holder.granted().await;
    holder
}

/// What the next holder, at another keeper, reads.
async fn read_by_the_next(stage: &Stage) -> Option<String> {
    let mut next = stage.direct().await;
    next.ask(Ask::patient()).await;
    next.granted().await;
    let state = next.load_state().await;
    next.release().await;
    state
}

/// A save that meets the fault once or more is saved once; the counter has gone up by one.
async fn saved_on(fault: Fault, times: usize) {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", false).await;
    holder.state_saved(1).await;
    let before = stage.state_counter().await;
    let injected = stage.proxy.inject(Step::SaveState, times, fault.clone());
    holder.save_state(2, "2", false).await;
    holder.state_saved(2).await;
    assert_eq!(injected.met().len(), times, "{fault:?}");
    assert_eq!(stage.state_counter().await, before + 1, "{fault:?}");
    holder.release().await;
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_reply_that_is_lost() {
    saved_on(Fault::LoseReply(End::Close), 1).await;
}

#[tokio::test]
async fn a_reply_that_never_comes() {
    saved_on(Fault::LoseReply(End::Silence), 1).await;
}

#[tokio::test]
async fn a_request_that_is_lost() {
    saved_on(Fault::LoseRequest(End::Reset), 2).await;
}

#[tokio::test]
async fn a_server_error_after_the_write() {
    saved_on(Fault::AnswerAfterWrite(Answer::server_error(500)), 1).await;
}

#[tokio::test]
async fn a_renewal_in_the_way() {
    let answer = Answer::transaction_cancelled(&["TransactionConflict", "None"]);
    saved_on(Fault::Answer(answer), 3).await;
}

#[tokio::test]
async fn a_throttle() {
    let answer = Answer::transaction_cancelled(&["None", "ThrottlingError"]);
    saved_on(Fault::Answer(answer), 3).await;
}

#[tokio::test]
async fn a_save_that_is_carried_out_late_changes_nothing_that_was_saved_after_it() {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", false).await;
    holder.state_saved(1).await;
    let before = stage.state_counter().await;
    // Given up by its client, it lies in front of DynamoDB until the next one is through.
    let held = stage.proxy.inject(Step::SaveState, 1, Fault::HoldRequest);
    holder.save_state(2, "2", false).await;
    held.reached(LONG).await.unwrap();
    holder.state_saved(2).await;
    holder.save_state(3, "3", false).await;
    holder.state_saved(3).await;
    held.open();
    held.carried_out(LONG).await.unwrap();
    assert_eq!(stage.state_counter().await, before + 2);
    holder.release().await;
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("3"));
}

#[tokio::test]
async fn a_save_that_is_carried_out_after_its_holder_is_gone_is_refused() {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", false).await;
    holder.state_saved(1).await;
    let held = stage.proxy.inject(Step::SaveState, 100, Fault::HoldRequest);
    holder.save_state(2, "2", false).await;
    held.reached(LONG).await.unwrap();
    drop(holder);
    // Freed as after a crash, taken by the next; only then it arrives.
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("1"));
    let counter = stage.state_counter().await;
    held.open();
    held.carried_out(LONG).await.unwrap();
    assert_eq!(stage.state_counter().await, counter);
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_lost_reply_and_then_a_crash_leave_what_was_written() {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    let lost = stage.proxy.inject(Step::SaveState, 1, Fault::HoldReply);
    holder.save_state(1, "1", false).await;
    lost.reached(LONG).await.unwrap();
    drop(holder);
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_holder_that_lost_cannot_save() {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", false).await;
    holder.state_saved(1).await;
    // Somebody takes the row by hand, as after a takeover that this holder has not heard of.
    stage.put_abandoned().await;
    holder.save_state(2, "2", false).await;
    assert_eq!(holder.state_failed(2).await, FailKind::NotHeld);
    assert!(holder.lost().await.contains("now belongs to owner"));
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("1"));
}

/// A release that leaves a state, and meets the fault: the row is free, and the state there once.
async fn left_on(fault: Fault, times: usize) {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", true).await;
    holder.state_saved(1).await;
    assert_eq!(stage.proxy.count(Step::SaveState) + stage.proxy.count(Step::ReadState), 0, "no request of its own");
    stage.proxy.inject(Step::ReleaseWithState, times, fault.clone());
    holder.release().await;
    assert_eq!(stage.row().await.owner, None, "{fault:?}");
    assert_eq!(read_by_the_next(&stage).await.as_deref(), Some("1"), "{fault:?}");
    let counts = holder.keeper.counts();
    assert_eq!((counts.states_saved, counts.states_not_left), (1, 0), "{fault:?}");
}

#[tokio::test]
async fn a_release_whose_reply_is_lost() {
    left_on(Fault::LoseReply(End::Close), 1).await;
}

#[tokio::test]
async fn a_release_whose_request_is_lost() {
    left_on(Fault::LoseRequest(End::Close), 2).await;
}

#[tokio::test]
async fn a_release_that_finds_a_renewal_in_the_way() {
    left_on(Fault::Answer(Answer::transaction_cancelled(&["TransactionConflict", "None"])), 2).await;
}

#[tokio::test]
async fn a_release_is_not_held_back_by_a_state_that_is_refused() {
    let stage = Stage::new().await;
    let mut holder = holding(&stage).await;
    holder.save_state(1, "1", true).await;
    holder.state_saved(1).await;
    let denied = Answer::error(400, "AccessDeniedException", "not authorized to perform: dynamodb:UpdateItem");
    stage.proxy.inject(Step::ReleaseWithState, usize::MAX, Fault::Answer(denied));
    holder.release().await;
    assert_eq!(stage.row().await.owner, None);
    assert_eq!(read_by_the_next(&stage).await, None);
    until(|| holder.keeper.counts().states_not_left == 1).await;
}
