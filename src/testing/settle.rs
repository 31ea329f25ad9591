//! What becomes due at a double as time is moved on: leases end, come to be at risk or are renewed, and waits are over.

use std::time::Duration;

use super::held::{Held, validity};
use super::state::{State, Waiting};
use crate::clock::Mono;
use crate::session::FromKeeper;

/// What leases are lost by, as the keeper tells it.
const HELD_TOO_LONG: &str = "the lease was held for as long as the settings allow (`max_hold`)";
const SILENT: &str =
    "the handler told of no progress for as long as the settings allow (`max_silence`), so it was not renewed any more";
const NOT_RENEWED: &str = "no renewal was answered before the lease ended";

impl State {
    /// Does what has become due.
    pub(super) fn settle(&mut self) {
        let now = self.now();
        self.held.retain(|_, held| !matches!(held, Held::Elsewhere { until: Some(until), .. } if *until <= now));
        self.settle_leases(now);
        self.settle_waits(now);
    }

    fn settle_leases(&mut self, now: Mono) {
        let (mut said, mut over, mut due) = (Vec::new(), Vec::new(), Vec::new());
        for (key, held) in &mut self.held {
            let Held::Here(lease) = held else { continue };
            due.push((lease.session, lease.id, lease.renewals_due(now)));
            if lease.ends_at.is_some_and(|end| end <= now) {
                over.push((key.clone(), HELD_TOO_LONG));
                continue;
            }
            let is_silent = lease.heard_until.is_some_and(|until| until <= now);
            if self.renewing {
                let renewed = lease.heard_until.map_or(now, |until| until.min(now));
                lease.valid_until = lease.valid_until.max(renewed + validity(lease.length));
            }
            if self.renewing && !is_silent {
                if std::mem::take(&mut lease.at_risk) {
                    said.push((lease.session, FromKeeper::Secured { id: lease.id }));
                }
            } else if lease.valid_until <= now {
                let reason = if is_silent { SILENT } else { NOT_RENEWED };
                over.push((key.clone(), reason));
            } else if !lease.at_risk && lease.valid_until.since(now) <= validity(lease.length) / 3 {
                lease.at_risk = true;
                said.push((lease.session, FromKeeper::AtRisk { id: lease.id }));
            }
        }
        for (session, line) in said {
            self.say(session, line);
        }
        for (session, id, due) in due {
            let renewing = self.renewing;
            self.note(session, id, |counted| counted.renewed(due, renewing));
        }
        for (key, reason) in over {
            self.lose(&key, reason);
        }
    }

    fn settle_waits(&mut self, now: Mono) {
        for waiting in std::mem::take(&mut self.waiting) {
            let Waiting { session, acquire, since } = waiting;
            let waited = now.since(since);
            match self.held.get(&acquire.key) {
                // In line behind one of the same keeper: its first write takes the key.
                None => self.grant(session, &acquire, waited, 1, waited),
                Some(held) if waited >= Duration::from_millis(acquire.wait_ms) => {
                    let (holder, retry_after) = held.told(now);
                    self.refuse(session, &acquire, waited, 0, holder, retry_after);
                }
                Some(_) => self.waiting.push_back(Waiting { session, acquire, since }),
            }
        }
    }
}
