//! What becomes of a request on its way there and back.

use super::clock::{MS, Micros, SECOND};
use super::random::Random;
use super::weather::Weather;
use crate::protocol::{Failure, FailureKind};

/// One request's fate, drawn when it is sent. Times count from then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    /// When the store carries it out, if ever.
    pub(super) applied: Option<Micros>,
    /// Whether the store refuses to look at it (a throttle, a conflict).
    pub(super) turned_away: Option<FailureKind>,
    /// When the answer is back after that, if ever.
    pub(super) answered: Option<Micros>,
    /// A failure that is told without regard to whether the store carries it out, and when.
    pub(super) failed: Option<(Micros, FailureKind)>,
    /// Whether the answer has a `Date` that serves.
    pub(super) dated: bool,
    /// Whether anything at all is unusual.
    pub(super) usual: bool,
}

impl Fate {
    /// There and back without any trouble.
    pub(super) fn usual(random: &mut Random) -> Self {
        Self {
            applied: Some(random.between(MS, 20 * MS)),
            turned_away: None,
            answered: Some(random.between(MS, 20 * MS)),
            failed: None,
            dated: true,
            usual: true,
        }
    }

    /// `cut` is how long the environment is still cut off from the store.
    pub(super) fn draw(weather: &Weather, attempt: bool, cut: Option<Micros>, random: &mut Random) -> Self {
        let (low, high) = weather.latency;
        let there = random.magnitude(low, high);
        let back = random.magnitude(low, high);
        let dated = !random.chance(weather.no_date);
        let fine =
            Self { applied: Some(there), turned_away: None, answered: Some(back), failed: None, dated, usual: dated };
        if let Some(left) = cut {
            // Most of what is sent into the void stays there; some of it is delivered once the way is free again.
            let applied = random.chance(250).then(|| left + there);
            return Self { applied, answered: random.chance(500).then_some(back), usual: false, ..fine };
        }
        if attempt && random.chance(weather.stray) {
            // The connection breaks at once, and the write gets through all the same, when nobody expects it any more.
            let applied = Some(there + random.magnitude(50 * MS, weather.latest_write));
            let failed = Some((there, FailureKind::Connection));
            return Self { applied, answered: None, failed, usual: false, ..fine };
        }
        let hazards = [
            weather.lost,
            weather.late,
            weather.answer_lost,
            weather.answer_late,
            weather.refused,
            weather.server_error,
            weather.broken,
        ];
        let mut drawn = random.below(1000) as u32;
        let hazard = hazards.iter().position(|chance| {
            let hit = drawn < *chance;
            drawn = drawn.saturating_sub(*chance);
            hit
        });
        let fine = Self { usual: fine.usual && hazard.is_none(), ..fine };
        match hazard {
            None => fine,
            Some(0) => Self { applied: None, ..fine },
            Some(1) => Self { applied: Some(there + random.magnitude(50 * MS, weather.latest_write)), ..fine },
            Some(2) => Self { answered: None, ..fine },
            Some(3) => Self { answered: Some(back + random.magnitude(50 * MS, 10 * SECOND)), ..fine },
            Some(4) => {
                let kind = random.pick(&[FailureKind::Throttled, FailureKind::TransactionConflict]);
                Self { turned_away: Some(kind), ..fine }
            }
            Some(5) => Self {
                applied: random.chance(500).then_some(there),
                answered: None,
                failed: Some((there + back, FailureKind::Server)),
                ..fine
            },
            Some(_) => {
                let applied = match random.below(3) {
                    0 => None,
                    1 => Some(there),
                    _ => Some(there + random.magnitude(50 * MS, weather.latest_write)),
                };
                let failed = Some((random.magnitude(MS, 2 * there + MS), FailureKind::Connection));
                Self { applied, answered: None, failed, ..fine }
            }
        }
    }
}

/// A failure without words: nobody reads them here.
pub(super) fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: String::new() }
}
