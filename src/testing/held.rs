//! Who holds a key at a double, and for how long.

use std::time::Duration;

use crate::clock::Mono;
use crate::protocol::{HolderInfo, OwnerId};
use crate::session::{OnCrash, RawState};

/// What is told of a holder elsewhere that goes on renewing.
const ELSEWHERES_LEASE: Duration = Duration::from_secs(30);

/// Who holds a key.
#[derive(Debug)]
pub(super) enum Held {
    Elsewhere { holder: Box<HolderInfo>, owner: OwnerId, since: Mono, until: Option<Mono> },
    Here(Lease),
}

#[derive(Debug)]
pub(super) struct Lease {
    pub(super) session: u64,
    pub(super) id: u64,
    pub(super) owner: OwnerId,
    pub(super) since: Mono,
    pub(super) length: Duration,
    pub(super) valid_until: Mono,
    pub(super) ends_at: Option<Mono>,
    /// How long it is renewed without a word of progress, and until when it is.
    pub(super) max_silence: Option<Duration>,
    pub(super) heard_until: Option<Mono>,
    pub(super) at_risk: bool,
    /// Up to when its renewals were counted.
    pub(super) counted_until: Mono,
    pub(super) on_crash: OnCrash,
    pub(super) holder: Box<HolderInfo>,
    /// What is to be left with the release.
    pub(super) on_release: Option<Option<RawState>>,
}

impl Lease {
    /// How many renewals were due since they were counted last.
    pub(super) fn renewals_due(&mut self, now: Mono) -> u64 {
        let third = self.length / 3;
        let mut due = 0;
        while now.since(self.counted_until) >= third && !third.is_zero() {
            self.counted_until = self.counted_until + third;
            due += 1;
        }
        due
    }
}

impl Held {
    pub(super) fn is_of(&self, session: u64, id: Option<u64>) -> bool {
        matches!(self, Self::Here(lease) if lease.session == session && id.is_none_or(|id| id == lease.id))
    }

    /// Who holds it, and when its lease can end.
    pub(super) fn told(&self, now: Mono) -> (HolderInfo, Duration) {
        match self {
            Self::Elsewhere { holder, until, .. } => {
                ((**holder).clone(), until.map_or(ELSEWHERES_LEASE, |until| until.since(now)))
            }
            Self::Here(lease) => ((*lease.holder).clone(), lease.length),
        }
    }
}

/// How long a lease of this length is believed in without a renewal.
pub(super) fn validity(length: Duration) -> Duration {
    length * 9 / 10
}
