//! One contender: comes, waits, holds, gives back, and tells when.

use std::{future::pending, time::Duration};

use leasehold::{
    keeper::Keeper,
    session::{FromKeeper, ReleaseReason, ToKeeper},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::super::line_client::{Asked, LineClient, unexpected};
use crate::Error;

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    /// When it came.
    pub(super) came: Instant,
    pub(super) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Held {
        granted: Instant,
        /// When the release was asked for.
        releasing: Instant,
        /// When the row was free.
        freed: Instant,
    },
    GaveUp(Instant),
    Killed,
}

/// What one does.
#[derive(Debug, Clone)]
pub(super) struct Errand {
    pub(super) asked: Asked,
    pub(super) starts: Instant,
    pub(super) hold: Duration,
    /// How long after it came it is killed: its handler is, and its keeper reads end of file.
    pub(super) killed_after: Option<Duration>,
}

pub(super) async fn contend(keeper: Keeper, errand: Errand) -> Result<Told, Error> {
    sleep_until(errand.starts).await;
    let came = Instant::now();
    let mut client = LineClient::of(&keeper, None).await?;
    client.acquire(1, &errand.asked).await?;
    let killed = async {
        match errand.killed_after {
            Some(after) => sleep(after).await,
            None => pending().await,
        }
    };
    let line = tokio::select! {
        line = client.hear() => line?,
        () = killed => return Ok(Told { came, end: End::Killed }),
    };
    let end = match line {
        FromKeeper::Granted { .. } => {
            let granted = Instant::now();
            sleep(errand.hold).await;
            let releasing = Instant::now();
            let reason = ReleaseReason::Finished;
            client.say(&ToKeeper::Release { id: 1, reason, wait: true, hold_at_least_ms: None }).await?;
            match client.hear().await? {
                FromKeeper::Released { .. } => End::Held { granted, releasing, freed: Instant::now() },
                other => return Err(unexpected("released", &other)),
            }
        }
        FromKeeper::Busy { .. } => End::GaveUp(Instant::now()),
        other => return Err(unexpected("granted", &other)),
    };
    Ok(Told { came, end })
}
