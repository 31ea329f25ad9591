//! What to do about the notes of an earlier extension: each lease goes back once nobody can believe in it any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use leasehold::keeper::Keeper;
use leasehold::protocol::Outcome;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::home::ExtensionHome;
use crate::journal::{Journal, Note};

/// How many releases are under way at once.
const AT_ONCE: usize = 8;
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How often one is tried; after that the note stays for the next extension, and the lease ends by itself.
const TRIES: u32 = 5;
/// How often it is looked after the handlers that still live.
const LOOK: Duration = Duration::from_secs(5);

/// Releases what was left behind, as soon as its handler is gone: one that lives on without yielding may still believe.
/// That is over as well once a `begin` says that its lease was lost. Looks again with each of the home's events, and now
/// and then. Returns when nothing is left.
pub async fn run(journal: Arc<Journal>, keeper: Keeper, mut left: Vec<Note>, home: Arc<ExtensionHome>) {
    let mut events = home.events();
    let mut disbelieved = HashSet::new();
    if !left.is_empty() {
        tracing::info!(notes = left.len(), "an earlier extension was killed and left leases behind");
    }
    while !left.is_empty() {
        disbelieved.extend(home.take_disbelieved());
        let over = |note: &mut Note| disbelieved.contains(&note.owner) || note.handler.is_gone();
        let gone: Vec<_> = left.extract_if(.., over).collect();
        release_all(&journal, &keeper, gone).await;
        if !left.is_empty() {
            tokio::select! {
                changed = events.changed() => if changed.is_err() { return },
                () = sleep(LOOK) => {}
            }
        }
    }
}

async fn release_all(journal: &Arc<Journal>, keeper: &Keeper, mut notes: Vec<Note>) {
    let mut releases = JoinSet::new();
    loop {
        while releases.len() < AT_ONCE
            && let Some(note) = notes.pop()
        {
            releases.spawn(release(journal.clone(), keeper.clone(), note));
        }
        match releases.join_next().await {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::error!(%error, "a release of what was left behind failed"),
            None => return,
        }
    }
}

async fn release(journal: Arc<Journal>, keeper: Keeper, note: Note) {
    let (key, owner) = (&note.lock.key, note.owner);
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    for _ in 0..TRIES {
        match keeper.release_owner(&note.lock, owner, LIMIT).await {
            Outcome::Failed(failure) => {
                tracing::warn!(%key, %owner, %failure, "a lease that was left behind can't be released");
                if !failure.kind.is_transient() {
                    return;
                }
            }
            outcome => {
                if matches!(outcome, Outcome::Written { .. }) {
                    tracing::info!(%key, %owner, reason = "left behind by an earlier extension", "released");
                }
                journal.remove(owner);
                return;
            }
        }
        sleep(backoff.failed()).await;
    }
}
