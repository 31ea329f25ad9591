//! What the events in a log add up to: by key and by reason, which metrics don't tell.

use std::collections::{BTreeMap, HashMap};

use super::line::{Event, Line};
use super::refusals::Refusals;
use super::spread::Spread;

/// More keys than this are counted together: memory has an end, and so has a report.
const KEYS: usize = 100_000;
/// As many reasons are told apart.
const REASONS: usize = 200;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) events: u64,
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    pub(super) acquired: u64,
    pub(super) at_once: u64,
    pub(super) took_over: u64,
    /// Writes sent for leases, granted or refused.
    pub(super) attempts: u64,
    /// Waits of those that were not granted with the first attempt, busy ones among them.
    pub(super) waits: Spread,
    pub(super) busy: u64,
    pub(super) failed: BTreeMap<String, u64>,
    pub(super) cancelled: u64,
    pub(super) released: BTreeMap<String, u64>,
    pub(super) not_released: u64,
    pub(super) left_to_expire: u64,
    pub(super) held: Spread,
    pub(super) lost: BTreeMap<String, u64>,
    pub(super) would_have_waited: u64,
    pub(super) would_have_refused: Refusals,
    pub(super) would_have_run_unlocked: u64,
    pub(super) would_have_lost: u64,
    keys: HashMap<String, KeyTally>,
    pub(super) keys_left_out: u64,
}

/// One key's share.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyTally {
    pub(super) acquired: u64,
    pub(super) waited: u64,
    pub(super) busy: u64,
    pub(super) waited_ms: u64,
}

impl Tally {
    pub(super) fn add(&mut self, line: Line) {
        self.events += 1;
        if let Some(at) = line.at {
            // All of one form, so that the order of texts is that of moments.
            if self.first.as_ref().is_none_or(|first| at < *first) {
                self.first = Some(at.clone());
            }
            if self.last.as_ref().is_none_or(|last| at > *last) {
                self.last = Some(at);
            }
        }
        match line.event {
            Event::Acquired { key, waited_ms, queued_ms, attempts, took_over, .. } => {
                let at_once = attempts <= 1 && queued_ms == 0;
                self.acquired += 1;
                self.attempts = self.attempts.saturating_add(attempts);
                self.at_once += u64::from(at_once);
                self.took_over += u64::from(took_over);
                if !at_once {
                    self.waits.add(waited_ms);
                }
                self.of_key(key, |of| {
                    of.acquired += 1;
                    if !at_once {
                        of.waited += 1;
                        of.waited_ms = of.waited_ms.saturating_add(waited_ms);
                    }
                });
            }
            Event::Busy { key, waited_ms, attempts, .. } => {
                self.busy += 1;
                self.attempts = self.attempts.saturating_add(attempts);
                self.waits.add(waited_ms);
                self.of_key(key, |of| {
                    of.busy += 1;
                    of.waited_ms = of.waited_ms.saturating_add(waited_ms);
                });
            }
            Event::Waiting { .. } => {}
            Event::Failed { reason, .. } => count(&mut self.failed, &reason),
            Event::Cancelled { .. } => self.cancelled += 1,
            Event::Released { held_ms, reason, .. } => {
                count(&mut self.released, &reason);
                if let Some(held_ms) = held_ms {
                    self.held.add(held_ms);
                }
            }
            Event::NotReleased { .. } => self.not_released += 1,
            Event::LeftToExpire { .. } => self.left_to_expire += 1,
            Event::Lost { reason, .. } => count(&mut self.lost, &reason),
            Event::WouldHaveWaited => self.would_have_waited += 1,
            Event::WouldHaveRefused { kind, reason } => self.would_have_refused.add(kind, reason),
            Event::WouldHaveRunUnlocked => self.would_have_run_unlocked += 1,
            Event::WouldHaveLost => self.would_have_lost += 1,
        }
    }

    fn of_key(&mut self, key: String, change: impl FnOnce(&mut KeyTally)) {
        if self.keys.len() >= KEYS && !self.keys.contains_key(&key) {
            self.keys_left_out += 1;
            return;
        }
        change(self.keys.entry(key).or_default());
    }

    /// The keys that were waited for longest in all.
    pub(super) fn contended(&self, most: usize) -> Vec<(&str, &KeyTally)> {
        let waited = self.keys.iter().filter(|(_, of)| of.waited + of.busy > 0);
        let mut keys: Vec<_> = waited.map(|(key, of)| (key.as_str(), of)).collect();
        keys.sort_by(|(a_key, a), (b_key, b)| b.waited_ms.cmp(&a.waited_ms).then(a_key.cmp(b_key)));
        keys.truncate(most);
        keys
    }
}

/// What comes after the kind of a failure differs from case to case: the kind is what is counted.
fn count(reasons: &mut BTreeMap<String, u64>, reason: &str) {
    let kind = reason.split(": ").next().unwrap_or_default();
    // A thief's id is a new one each time.
    let kind = kind.split(" to owner ").next().unwrap_or_default();
    let kind = if reasons.len() >= REASONS && !reasons.contains_key(kind) { "other reasons" } else { kind };
    *reasons.entry(kind.to_owned()).or_default() += 1;
}

pub(super) fn total(reasons: &BTreeMap<String, u64>) -> u64 {
    reasons.values().sum()
}
