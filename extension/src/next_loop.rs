//! The loop that calls Next: holds it, calls it, and goes on whatever the API answers, until SHUTDOWN.

use std::time::Duration;

use leasehold::keeper::Keeper;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api::{Api, Event};
use crate::backoff::Backoff;
use crate::hold::Step;
use crate::home::ExtensionHome;
use crate::metrics::Metrics;

/// The delay after a first failure.
const FIRST_DELAY: Duration = Duration::from_millis(10);
/// The longest delay: for this long an invocation may find the extension not listening.
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// A handler that asks for its lock at once has done so by then, and its request makes the connection. One that still reads
/// its event finds it made.
const READING: Duration = Duration::from_millis(5);

/// The end of the environment, as it was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Why.
    pub reason: String,
    /// When the extension has to be gone, in milliseconds since the Unix epoch; 0 where that is unknown.
    pub deadline_ms: u64,
}

/// Calls Next until it answers SHUTDOWN; after that it must not be called again.
///
/// # Cancellation
///
/// An event that was under way is lost.
pub async fn run(mut api: Api, home: &ExtensionHome, keeper: &Keeper, metrics: &Metrics) -> Shutdown {
    let mut failures = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    // Events that are not known come well-formed, but possibly without end.
    let mut unknown = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
    let mut warming = JoinSet::new();
    loop {
        hold_next(home, keeper).await;
        metrics.pause(home.held_next()).await;
        tracing::debug!("calling Next");
        let answer = api.next().await;
        if answer.is_ok() {
            failures.succeeded();
        }
        match answer {
            Ok(Event::Invoke { request_id, deadline_ms }) => {
                unknown.succeeded();
                tracing::debug!(%request_id, deadline_ms, "invocation");
                home.invoked(request_id, deadline_ms);
                while warming.try_join_next().is_some() {}
                // Beside one that is still at it: that one may come from before a freeze, and what it makes is given up.
                let keeper = keeper.clone();
                warming.spawn(async move {
                    sleep(READING).await;
                    keeper.warm_up_after_silence().await;
                });
            }
            Ok(Event::Shutdown { reason, deadline_ms }) => return Shutdown { reason, deadline_ms },
            Ok(Event::Unknown { name }) => {
                let delay = unknown.failed();
                if unknown.is_worth_a_line() {
                    tracing::warn!(event = name, "an event that this release does not know; Next is called again");
                }
                sleep(delay).await;
            }
            Err(error) => {
                let delay = failures.failed();
                if failures.is_worth_a_line() {
                    tracing::warn!(%error, "Next brought no event; it is called again on a new connection");
                }
                sleep(delay).await;
            }
        }
    }
}

/// Waits until Next may be called.
async fn hold_next(home: &ExtensionHome, keeper: &Keeper) {
    if !home.freezes() {
        return;
    }
    let mut events = home.events();
    loop {
        // Before the step is asked for, so that what happens after it is not taken for seen.
        events.mark_unchanged();
        match home.step() {
            Step::Next => return,
            Step::Wait { until } => {
                let limit = until.map_or(Duration::MAX, |until| until.since(home.now()));
                // Whichever it was: the hold is asked again, and takes no harm from it.
                let _ = timeout(limit, events.changed()).await;
            }
            Step::Settle { until } => {
                let limit = until.since(home.now());
                tokio::select! {
                    _ = keeper.quiesce(limit) => home.settled_writes(),
                    _ = events.changed() => {}
                }
            }
        }
    }
}
