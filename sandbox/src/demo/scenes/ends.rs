//! Scenes in which the holder does not finish: it aborts, is killed, times out, or vanishes with all around it.

use std::time::Duration;

use serde_json::json;

use crate::{
    Event, EventKind, InvocationHandle, Process,
    demo::{
        Failed, Shown,
        stage::{LEASE_LATER, SOON, Stage},
    },
};

/// The handler aborts its process while another one waits.
pub(super) async fn abort(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let first = stage.begin(0, stage.event_with(json!("abort")));
    stage.at_work(&first, SOON).await?;
    let second = stage.begin(1, stage.event());
    freed_by_the_end(stage, &first, second, SOON).await
}

/// The handler's process is killed while another one waits.
pub(super) async fn kill(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let first = stage.begin(0, stage.event_with(json!("hang")));
    stage.at_work(&first, SOON).await?;
    let second = stage.begin(1, stage.event());
    waiting(stage, &second).await?;
    stage.sandbox().environment(0).kill_runtime().await?;
    freed_by_the_end(stage, &first, second, SOON).await
}

/// The handler runs into the function's timeout while another one waits.
pub(super) async fn timeout(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let first = stage.begin(0, stage.event_with(json!("hang")));
    stage.at_work(&first, SOON).await?;
    // Half a minute later, so that the one that waits has time left when the first one's is up.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let second = stage.begin(1, stage.event());
    let id = first.request_id().to_owned();
    let deadline =
        |event: &Event| matches!(&event.kind, EventKind::DeadlineReached { request_id } if *request_id == id);
    stage.sandbox().log().wait_for(deadline, Duration::from_secs(60)).await?;
    freed_by_the_end(stage, &first, second, SOON).await
}

/// Function and extension are gone at once and nobody is left to free the lock.
pub(super) async fn vanish(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(1).await?;
    let first = stage.begin(0, stage.event_with(json!("hang")));
    stage.at_work(&first, SOON).await?;
    stage.sandbox().environment(0).vanish().await?;
    let gone = stage.sandbox().log().len();
    let second = stage.begin(1, stage.event());
    let id = second.request_id().to_owned();
    let (taken, said) = stage.acquired(&id, LEASE_LATER).await?;
    if !said.took_over() || taken.index < gone {
        return Err(Failed::because("the lock was not taken over"));
    }
    succeeded(second).await?;
    let vanished = stage.sandbox().log().find(|event| matches!(event.kind, EventKind::Vanished));
    let since = vanished.map_or(Duration::ZERO, |event| taken.at.saturating_sub(event.at));
    Ok(format!("taken over {:.1} s after the environment was gone", since.as_secs_f64()))
}

/// The second one is granted after the keeper's release of the first one's lease, not by a takeover, and soon after the
/// first one's process ended.
async fn freed_by_the_end(
    stage: &Stage,
    first: &InvocationHandle,
    second: InvocationHandle,
    limit: Duration,
) -> Result<Shown, Failed> {
    let id = second.request_id().to_owned();
    let (taken, said) = stage.acquired(&id, limit).await?;
    if said.took_over() {
        return Err(Failed::because("the lock was taken over; it should have been freed before"));
    }
    let released = stage.released(first.request_id()).await?;
    succeeded(second).await?;
    let ended = stage.sandbox().log().find(|event| event.is_exit(&Process::Runtime));
    let ended = ended.ok_or_else(|| Failed::because("the first one's process did not end"))?;
    let ms = |from: &Event, to: &Event| to.at.saturating_sub(from.at).as_secs_f64() * 1000.0;
    Ok(format!(
        "freed {:.1} ms after the process ended, granted to the next {:.1} ms after it",
        ms(&ended, &released),
        ms(&ended, &taken)
    ))
}

/// Waits until this invocation was delivered to its handler, which then asks for the lock.
async fn waiting(stage: &Stage, invocation: &InvocationHandle) -> Result<(), Failed> {
    let id = invocation.request_id().to_owned();
    let delivered =
        |event: &Event| matches!(&event.kind, EventKind::RuntimeInvoked { request_id } if *request_id == id);
    stage.sandbox().log().wait_for(delivered, SOON).await?;
    Ok(())
}

async fn succeeded(invocation: InvocationHandle) -> Result<(), Failed> {
    match invocation.outcome().await.error() {
        None => Ok(()),
        Some(error) => Err(Failed::because(format!("the second one failed: {error}"))),
    }
}
