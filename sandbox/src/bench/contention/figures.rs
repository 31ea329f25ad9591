//! What a run of contention comes to.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::statistics::{Times, ratio},
    contender::{End, Told},
};

/// The figures of a course, run once or several times.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub(super) rounds: usize,
    /// How many wanted the key, in all rounds.
    pub(super) came: usize,
    /// From the first that came to the last row freed; of all rounds together.
    pub(super) total: Duration,
    /// What it takes at least to serve those that were served, one after the other, as they came.
    pub(super) minimum: Duration,
    /// From a release to the next grant, where somebody was waiting.
    pub(super) handovers: Times,
    /// From coming to the grant.
    pub(super) waits: Times,
    /// The longest wait of somebody from the first half, as a multiple of that of the last in line.
    pub(super) fairness: f64,
    pub(super) held: usize,
    pub(super) gave_up: usize,
    pub(super) killed: usize,
}

/// Of those who held the key.
#[derive(Debug, Clone, Copy)]
struct Turn {
    came: Instant,
    granted: Instant,
    releasing: Instant,
    freed: Instant,
}

impl Turn {
    fn of(told: &Told) -> Option<Self> {
        match told.end {
            End::Held { granted, releasing, freed } => Some(Self { came: told.came, granted, releasing, freed }),
            End::GaveUp(_) | End::Killed => None,
        }
    }
}

impl Figures {
    /// Of these rounds, where each contender holds the key for so long and a request takes so long.
    pub(super) fn of(rounds: &[Vec<Told>], hold: Duration, request: Duration) -> Self {
        let mut total = Duration::ZERO;
        let mut least = Duration::ZERO;
        let mut turns = Vec::new();
        for told in rounds {
            let mut of_round: Vec<_> = told.iter().filter_map(Turn::of).collect();
            of_round.sort_unstable_by_key(|turn| turn.came);
            let first = told.iter().map(|told| told.came).min();
            let last = of_round.iter().map(|turn| turn.freed).max();
            total += first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
            least += minimum(first, &of_round, hold + 2 * request);
            turns.push(of_round);
        }
        let count = |wanted: fn(&End) -> bool| rounds.iter().flatten().filter(|told| wanted(&told.end)).count();
        Self {
            rounds: rounds.len(),
            came: rounds.iter().map(Vec::len).sum(),
            total,
            minimum: least,
            fairness: fairness(&turns),
            waits: turns.iter().flatten().map(|turn| turn.granted - turn.came).collect(),
            held: turns.iter().map(Vec::len).sum(),
            handovers: turns.into_iter().flat_map(handovers).collect(),
            gave_up: count(|end| matches!(end, End::GaveUp(_))),
            killed: count(|end| matches!(end, End::Killed)),
        }
    }

    /// The total as a multiple of the least.
    pub(super) fn over_minimum(&self) -> f64 {
        ratio(self.total, self.minimum)
    }
}

/// From the first that came to the end of the last turn, if each begins as soon as it is there and the one before is over.
fn minimum(first: Option<Instant>, turns: &[Turn], each: Duration) -> Duration {
    let Some(first) = first else { return Duration::ZERO };
    let over = turns.iter().fold(first, |over, turn| over.max(turn.came) + each);
    over - first
}

fn handovers(mut turns: Vec<Turn>) -> Vec<Duration> {
    turns.sort_unstable_by_key(|turn| turn.granted);
    let pairs = turns.windows(2).filter_map(|pair| match pair {
        // Who came when the key was free had nobody to get it from.
        [before, after] if after.came < before.freed => Some(after.granted.saturating_duration_since(before.releasing)),
        _ => None,
    });
    pairs.collect()
}

/// Of rounds of turns in the order in which they came. The last in line are the last tenth of each round, at least one: a
/// single one may be lucky, which is why few contenders have several rounds.
fn fairness(rounds: &[Vec<Turn>]) -> f64 {
    let wait = |turn: &Turn| turn.granted - turn.came;
    let longest = |of: fn(&[Turn]) -> &[Turn]| rounds.iter().flat_map(|turns| of(turns)).map(wait).max();
    let first = longest(|turns| &turns[..turns.len() / 2]);
    let last = longest(|turns| &turns[turns.len() - turns.len().div_ceil(10)..]);
    ratio(first.unwrap_or_default(), last.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Who came, was granted, asked for the release and had freed it, in milliseconds.
    fn told(zero: Instant, turns: &[[u32; 4]]) -> Vec<Told> {
        let at = |ms: u32| zero + ms * MS;
        let turn = |[came, granted, releasing, freed]: &[u32; 4]| Told {
            came: at(*came),
            end: End::Held { granted: at(*granted), releasing: at(*releasing), freed: at(*freed) },
        };
        turns.iter().map(turn).collect()
    }

    #[test]
    fn a_perfect_queue_takes_the_serial_minimum() {
        let zero = Instant::now();
        // Requests of 5 ms, holds of 20 ms, three at once: the next write arrives just as the row is free.
        let told = told(zero, &[[0, 5, 25, 30], [0, 35, 55, 60], [0, 65, 85, 90]]);
        let figures = Figures::of(&[told], 20 * MS, 5 * MS);
        assert_eq!((figures.total, figures.minimum, figures.over_minimum()), (90 * MS, 90 * MS, 1.0));
        assert_eq!((figures.handovers.len(), figures.handovers.median()), (2, 10 * MS));
        assert_eq!((figures.waits.longest(), figures.held, figures.gave_up, figures.killed), (65 * MS, 3, 0, 0));
    }

    #[test]
    fn nobody_is_charged_for_a_key_that_nobody_wanted() {
        let zero = Instant::now();
        let told = told(zero, &[[0, 5, 25, 30], [500, 505, 525, 530]]);
        let figures = Figures::of(&[told], 20 * MS, 5 * MS);
        assert_eq!((figures.total, figures.minimum), (530 * MS, 530 * MS));
        assert_eq!(figures.handovers.len(), 0, "nobody waited");
    }

    #[test]
    fn who_came_early_and_waits_longer_than_the_last_in_line_is_treated_unfairly() {
        let zero = Instant::now();
        let fair = told(zero, &[[0, 5, 25, 30], [1, 35, 55, 60], [2, 65, 85, 90], [3, 95, 115, 120]]);
        assert!(Figures::of(&[fair], 20 * MS, 5 * MS).fairness < 1.0);
        let unfair = told(zero, &[[0, 5, 25, 30], [1, 95, 115, 120], [2, 35, 55, 60], [3, 65, 85, 90]]);
        let fairness = Figures::of(&[unfair], 20 * MS, 5 * MS).fairness;
        assert!((fairness - 94.0 / 62.0).abs() < 1e-9, "{fairness}");
    }

    #[test]
    fn rounds_are_added_up_and_what_lies_between_them_is_not() {
        let zero = Instant::now();
        let first = told(zero, &[[0, 5, 25, 30], [0, 35, 55, 60]]);
        let second = told(zero, &[[900, 935, 955, 960], [901, 906, 926, 931]]);
        let figures = Figures::of(&[first, second], 20 * MS, 5 * MS);
        assert_eq!((figures.rounds, figures.came, figures.held), (2, 4, 4));
        assert_eq!((figures.total, figures.minimum), (120 * MS, 120 * MS));
        assert_eq!((figures.handovers.len(), figures.waits.longest()), (2, 35 * MS));
        assert!((figures.fairness - 1.0).abs() < 1e-9, "the last of one round waited as long: {}", figures.fairness);
    }

    #[test]
    fn who_gave_up_or_was_killed_is_counted_and_not_charged_for() {
        let zero = Instant::now();
        let mut told = told(zero, &[[0, 5, 25, 30]]);
        told.push(Told { came: zero, end: End::GaveUp(zero + 20 * MS) });
        told.push(Told { came: zero, end: End::Killed });
        let figures = Figures::of(&[told], 20 * MS, 5 * MS);
        assert_eq!((figures.held, figures.gave_up, figures.killed), (1, 1, 1));
        assert_eq!(figures.minimum, 30 * MS);
        assert_eq!(Figures::of(&[], 20 * MS, 5 * MS).over_minimum(), 0.0);
    }
}
