//! The extension's life: bound, registered, held and drained. It ends with SHUTDOWN or a signal and never by itself.
//!
//! The order matters. The socket is bound before the registration, because Lambda starts the runtime only after that
//! and a handler must find it. Registering comes next, because the runtime waits for it; the connection to DynamoDB is
//! made while the runtime starts, and the first Next waits for it, so that the init phase pays for it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, Wall};
use leasehold::keeper::{Keeper, KeeperOptions, MetricLines};
use leasehold::store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api::{self, Api, Endpoint};
use crate::backoff::Backoff;
use crate::crowd::Told;
use crate::home::ExtensionHome;
use crate::journal::Journal;
use crate::logging::Lines;
use crate::metrics::Metrics;
use crate::next_loop::{self, Shutdown};
use crate::settings::Settings;
use crate::socket::Bound;
use crate::supervise::supervise;
use crate::{peer, recovery, socket};

/// How long the first Next waits for the connection to DynamoDB.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long giving leases back may take where no deadline is known: Lambda gives 2 s.
const DRAIN: Duration = Duration::from_millis(1_500);
/// A drain ends this long before the deadline; the process has to be gone by then.
const DRAIN_MARGIN: Duration = Duration::from_millis(150);
/// What a drain gets whose deadline has passed already, by this host's clock.
const SHORTEST_DRAIN: Duration = Duration::from_millis(100);
/// The longest drain, whatever the deadline says.
const LONGEST_DRAIN: Duration = Duration::from_secs(10);

/// Runs the extension until Lambda ends it, or a signal does. `clock` is what leases are counted by; `lines` is where
/// metrics go.
pub async fn run(settings: Settings, store: impl Store, clock: Arc<dyn Clock>, lines: Lines) {
    let journal = Arc::new(Journal::new(settings.journal()));
    let home = Arc::new(ExtensionHome::new(clock.clone(), journal.clone(), !settings.managed_instances));
    let options = KeeperOptions { managed_instances: settings.managed_instances };
    let keeper = Keeper::new(store, clock.clone(), home.clone(), options);
    let which = settings.metrics.clone().unwrap_or_else(|problem| {
        tracing::warn!("LEASEHOLD_METRICS: {problem}; the usual metrics are written");
        MetricLines::default()
    });
    let metrics = Metrics::new(&keeper, which, settings.function.clone(), lines);

    let listener = bind(&settings).await;
    // Its notes are another keeper's where one lives there.
    let recovers = listener.is_some();
    let mut background = JoinSet::new();
    let settings = Arc::new(settings);
    background.spawn(serve(settings.clone(), listener, home.clone(), keeper.clone()));
    background.spawn({
        let metrics = metrics.clone();
        async move { metrics.follow().await }
    });

    let lambda = async {
        let (endpoint, id) = register(&settings).await;
        if recovers {
            let left = journal.left_behind();
            background.spawn(recovery::run(journal, keeper.clone(), left, home.clone()));
        }
        warm_up(&mut background, &keeper).await;
        follow(endpoint, id, home, keeper.clone(), metrics.clone()).await
    };
    let limit = tokio::select! {
        // From here on a signal is waited for; before it is, it would end the process and leave what is held.
        biased;
        () = told_to_end() => DRAIN,
        shutdown = lambda => {
            tracing::debug!(reason = shutdown.reason, "shutdown");
            drain_limit(clock.now().wall, shutdown.deadline_ms)
        }
    };
    let drained = keeper.drain(limit).await;
    if drained.failed > 0 || drained.left > 0 {
        tracing::warn!(?drained, "not every lease could be given back: those end by themselves");
    } else {
        tracing::debug!(?drained, "drained");
    }
    metrics.end();
    keeper.stop();
}

async fn bind(settings: &Settings) -> Option<Bound> {
    let bound = socket::bind(&settings.socket).await;
    bound.inspect_err(|error| tracing::error!(%error, "no handler can reach this keeper")).ok()
}

/// Serves the socket; one that could not be bound is tried again, for what is in its way may go.
async fn serve(settings: Arc<Settings>, mut bound: Option<Bound>, home: Arc<ExtensionHome>, keeper: Keeper) {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    let bound = loop {
        if let Some(bound) = bound {
            break Arc::new(Mutex::new(bound));
        }
        sleep(backoff.failed()).await;
        bound = bind(&settings).await;
    };
    supervise("socket", || {
        let (bound, home, keeper) = (bound.clone(), home.clone(), keeper.clone());
        async move {
            let session = |stream, peer, told: Told| {
                let keeper = keeper.clone();
                async move {
                    tokio::select! {
                        biased;
                        () = keeper.serve_telling(stream, peer, |opening| told.opened(opening)) => {}
                        // Not served any further counts as a crash of the handler, which it is.
                        () = peer::gone(peer) => {}
                    }
                }
            };
            socket::serve(&mut *bound.lock().await, home.events(), session).await;
        }
    })
    .await;
}

/// Registers, however often that has to be tried: an extension that gives up ends its environment.
async fn register(settings: &Settings) -> (Endpoint, String) {
    let endpoint = match &settings.endpoint {
        Ok(endpoint) => endpoint.clone(),
        Err(error) => {
            tracing::error!(%error, "the extension can't be registered");
            return pending().await;
        }
    };
    let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        match api::register(&settings.name, settings.events()).await {
            Ok(id) => {
                tracing::debug!(id, "registered");
                return (endpoint, id);
            }
            Err(error) => {
                let delay = backoff.failed();
                if backoff.is_worth_a_line() {
                    let error = api::chain(error.as_ref());
                    tracing::error!(error, name = settings.name, "the extension can't be registered yet");
                }
                sleep(delay).await;
            }
        }
    }
}

/// Opens the connection to DynamoDB. Where that takes long it goes on in the background.
async fn warm_up(background: &mut JoinSet<()>, keeper: &Keeper) {
    let keeper = keeper.clone();
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    background.spawn(async move {
        keeper.warm_up().await;
        drop(done);
    });
    // The end of its task is the news, whether it went well or panicked.
    if timeout(WARM_UP, is_done).await.is_err() {
        tracing::debug!("the connection to DynamoDB is not there yet");
    }
}

/// Calls Next until SHUTDOWN.
async fn follow(
    endpoint: Endpoint,
    id: String,
    home: Arc<ExtensionHome>,
    keeper: Keeper,
    metrics: Metrics,
) -> Shutdown {
    supervise("next", || {
        let api = Api::new(endpoint.clone(), id.clone());
        let (home, keeper, metrics) = (home.clone(), keeper.clone(), metrics.clone());
        async move { next_loop::run(api, &home, &keeper, &metrics).await }
    })
    .await
}

/// How long leases may be given back for.
fn drain_limit(now: Wall, deadline_ms: u64) -> Duration {
    if deadline_ms == 0 {
        return DRAIN;
    }
    let left = Wall::from_millis(deadline_ms).since(now);
    left.saturating_sub(DRAIN_MARGIN).clamp(SHORTEST_DRAIN, LONGEST_DRAIN)
}

/// Waits for a signal to end. Lambda sends none; people and local tools do.
async fn told_to_end() {
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    match (terminate, interrupt) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "signals can't be waited for: they end the extension at once");
            pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_ends_before_the_deadline() {
        let now = Wall::from_millis(1_800_000_000_000);
        let limit = |deadline_ms| drain_limit(now, deadline_ms).as_millis();
        assert_eq!(limit(1_800_000_002_000), 1_850);
        assert_eq!(limit(1_800_000_000_200), 100);
        assert_eq!(limit(1_799_999_999_000), 100, "passed");
        assert_eq!(limit(1_800_009_000_000), 10_000);
        assert_eq!(limit(0), 1_500, "unknown");
    }
}
