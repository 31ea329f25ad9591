//! What a keeper counts, kept apart by the templates of the leases: a tally each, and one for what belongs to no lease.
//!
//! All of it is added to on the keeper's own thread, between two awaits. So who reads on that thread finds a moment at
//! which the counts fit together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::counts::{Counter, Counters, KeeperCounts};
use super::wording::millis;

/// How many templates are told apart. A function has a few; a client that names them after keys is not to fill memory.
const MOST_TEMPLATES: usize = 64;
/// What the leases of all further templates are counted under.
const OTHERS: &str = "(others)";
/// What leases of a client that names no template are counted under.
const UNNAMED: &str = "(unnamed)";
/// CloudWatch takes 1,024 characters for a dimension's value.
const LONGEST_NAME: usize = 1024;
/// How many values of a kind wait to be taken. They are taken once a second; beyond that only the counts go on.
const MOST_VALUES: usize = 8_192;

/// What the leases of one template came to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: Counters,
    still_held: Mutex<u64>,
    /// How long was waited by who was granted a lease, and by who was not.
    waits: Values,
    /// How long leases were held.
    holds: Values,
}

/// One lease that is held, for as long as this lives.
#[derive(Debug)]
pub(super) struct StillHeld(Arc<Tally>);

impl Tally {
    /// Counts a lease as held until what this returns is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> StillHeld {
        *self.still_held() += 1;
        StillHeld(self.clone())
    }

    pub(super) fn waited(&self, wait: Duration) {
        self.waits.add(wait);
    }

    pub(super) fn held(&self, hold: Duration) {
        self.holds.add(hold);
    }

    /// Everything as it stands; the values are the oldest ones, at most so many.
    pub(super) fn look(&self, most_values: usize) -> Look {
        Look {
            counts: self.counts.snapshot(),
            still_held: *self.still_held(),
            waits: self.waits.first(most_values),
            holds: self.holds.first(most_values),
        }
    }

    /// The values of this look were told.
    pub(super) fn take(&self, look: &Look) {
        self.waits.drop_first(look.waits.len());
        self.holds.drop_first(look.holds.len());
    }

    /// How many values wait, of the kind of which most do.
    pub(super) fn waiting(&self) -> usize {
        self.waits.len().max(self.holds.len())
    }

    fn still_held(&self) -> MutexGuard<'_, u64> {
        self.still_held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StillHeld {
    fn drop(&mut self) {
        *self.0.still_held() -= 1;
    }
}

/// A tally at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) counts: KeeperCounts,
    pub(super) still_held: u64,
    pub(super) waits: Vec<u64>,
    pub(super) holds: Vec<u64>,
}

/// Milliseconds that wait to be taken.
#[derive(Debug, Default)]
pub(super) struct Values(Mutex<Vec<u64>>);

impl Values {
    pub(super) fn add(&self, time: Duration) {
        let mut values = self.values();
        if values.len() < MOST_VALUES {
            values.push(millis(time));
        }
    }

    pub(super) fn first(&self, most: usize) -> Vec<u64> {
        self.values().iter().take(most).copied().collect()
    }

    pub(super) fn drop_first(&self, how_many: usize) {
        let mut values = self.values();
        let how_many = how_many.min(values.len());
        values.drain(..how_many);
    }

    fn len(&self) -> usize {
        self.values().len()
    }

    fn values(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All tallies of one keeper.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    /// What belongs to no lease: looks, and releases of what an earlier keeper left.
    pub(super) of_no_lease: Arc<Tally>,
    by_template: Mutex<BTreeMap<String, Arc<Tally>>>,
}

impl Tallies {
    /// The tally of the leases of this template.
    pub(super) fn of(&self, template: &str) -> Arc<Tally> {
        let name = name(template);
        let mut tallies = self.by_template();
        if let Some(tally) = tallies.get(&name) {
            return tally.clone();
        }
        let name = if tallies.len() < MOST_TEMPLATES { name } else { OTHERS.to_owned() };
        tallies.entry(name).or_default().clone()
    }

    /// Each template and its tally.
    pub(super) fn all(&self) -> Vec<(String, Arc<Tally>)> {
        self.by_template().iter().map(|(name, tally)| (name.clone(), tally.clone())).collect()
    }

    /// What all of them have counted.
    pub(super) fn sum(&self) -> KeeperCounts {
        let by_template = self.by_template();
        let all = by_template.values().chain([&self.of_no_lease]);
        all.fold(KeeperCounts::default(), |sum, tally| sum.plus(&tally.counts.snapshot()))
    }

    fn by_template(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Tally>>> {
        self.by_template.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A template as CloudWatch takes it for a dimension's value: printable ASCII, of a length, and not only blanks.
fn name(template: &str) -> String {
    let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
    let name: String = template.chars().map(printable).take(LONGEST_NAME).collect();
    if name.trim().is_empty() { UNNAMED.to_owned() } else { name }
}

impl Counters {
    /// One more request that the store could not serve.
    pub(super) fn not_served(&self, kind: crate::protocol::FailureKind) {
        self.errors.add_one();
        if kind == crate::protocol::FailureKind::Throttled {
            self.throttles.add_one();
        }
    }

    /// What a request consumed, as far as it was told.
    pub(super) fn consumed(&self, millionths: Option<u64>, is_read: bool) {
        let units: &Counter = if is_read { &self.read_unit_millionths } else { &self.write_unit_millionths };
        units.add(millionths.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_told_apart_up_to_a_bound_and_named_as_cloudwatch_takes_it() {
        let tallies = Tallies::default();
        for n in 0..MOST_TEMPLATES + 5 {
            tallies.of(&format!("t-{n:03}")).counts.granted.add_one();
        }
        let names: Vec<_> = tallies.all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), MOST_TEMPLATES + 1);
        assert_eq!(names[0], OTHERS);
        assert_eq!(tallies.of("t-999").counts.snapshot().granted, 5);
        assert_eq!(tallies.sum().granted, MOST_TEMPLATES as u64 + 5);
        assert_eq!(name("größe:{a}\n"), "gr??e:{a}?");
        assert_eq!((name(""), name(" ")), (UNNAMED.to_owned(), UNNAMED.to_owned()));
        assert_eq!(name(&"k".repeat(3_000)).len(), LONGEST_NAME);
    }

    #[test]
    fn values_wait_until_they_are_taken_and_a_lease_counts_while_it_is_held() {
        let tally = Arc::new(Tally::default());
        for ms in [5, 7, 9] {
            tally.waited(Duration::from_millis(ms));
        }
        let held = tally.hold();
        let look = tally.look(2);
        assert_eq!((look.waits.clone(), look.still_held), (vec![5, 7], 1));
        tally.take(&look);
        drop(held);
        let look = tally.look(2);
        assert_eq!((look.waits, look.still_held), (vec![9], 0));
    }
}
