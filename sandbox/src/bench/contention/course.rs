//! One run of contention: how many want the key, when they come, and what is drawn for them.

use std::time::Duration;

use fastrand::Rng;

/// How many of a hundred are killed in the course in which some are.
const KILLED: f64 = 0.2;
/// How long the others wait at most: longer than any of them has to.
const PATIENT: Duration = Duration::from_secs(600);
/// How long they wait in the course that has a budget, as the layer's `max_wait` is by default.
const BUDGET: Duration = Duration::from_secs(2);
const HOLD: Duration = Duration::from_millis(20);
const LONG_HOLD: Duration = Duration::from_millis(200);
const SPREAD: Duration = Duration::from_secs(1);

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) contenders: usize,
    pub(super) hold: Duration,
    pub(super) spread: Duration,
    pub(super) killed: f64,
    pub(super) wait: Duration,
    pub(super) one_keeper: bool,
    /// Whether it is one of those that there are goals for.
    pub(super) plain: bool,
}

impl Course {
    /// The courses for these numbers of contenders: each at once and spread, and one of them in every other way.
    pub(super) fn all(numbers: &[usize]) -> Vec<Self> {
        let mut courses = Vec::new();
        for contenders in numbers.iter().copied() {
            courses.push(Self::new(contenders, "at_once", "at once"));
            let spread = Self::new(contenders, "spread", "spread over a second");
            courses.push(Self { spread: SPREAD, ..spread });
        }
        // Fifty, where they are among them.
        let usual = numbers.iter().copied().find(|number| *number == 50);
        let Some(contenders) = usual.or_else(|| numbers.iter().copied().max()) else { return courses };
        let other = |id: &str, what: &str| Self { plain: false, ..Self::new(contenders, id, what) };
        courses.extend([
            Self { hold: LONG_HOLD, ..other("long_holds", "at once, holds of 200 ms") },
            Self { killed: KILLED, ..other("killed", "at once, 20 % of the waiters killed") },
            Self { wait: BUDGET, ..other("budget", "at once, each waits 2 s at most") },
            Self { one_keeper: true, ..other("one_keeper", "at once, in one keeper") },
        ]);
        courses
    }

    fn new(contenders: usize, id: &str, what: &str) -> Self {
        Self {
            id: format!("{contenders}.{id}"),
            what: format!("{contenders} {what}"),
            contenders,
            hold: HOLD,
            spread: Duration::ZERO,
            killed: 0.0,
            wait: PATIENT,
            one_keeper: false,
            plain: true,
        }
    }

    /// When each comes, after the beginning, in order.
    pub(super) fn starts(&self, dice: &mut Rng) -> Vec<Duration> {
        let mut starts: Vec<_> = (0..self.contenders).map(|_| self.spread.mul_f64(dice.f64())).collect();
        starts.sort_unstable();
        starts
    }

    /// Who is killed, and how long after it came, unless it has the key by then.
    pub(super) fn kills(&self, request: Duration, dice: &mut Rng) -> Vec<Option<Duration>> {
        let count = (self.contenders as f64 * self.killed).round() as usize;
        let mut victims = vec![None; self.contenders];
        let mut places: Vec<_> = (0..self.contenders).collect();
        dice.shuffle(&mut places);
        let half = (self.hold + 2 * request).mul_f64(self.contenders as f64 / 2.0);
        for place in places.into_iter().take(count) {
            victims[place] = Some(half.mul_f64(dice.f64()));
        }
        victims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_starts_and_victims() {
        let courses = Course::all(&[2, 50]);
        assert_eq!(courses.len(), 2 * 2 + 4);
        let draw = |course: &Course| {
            let mut dice = Rng::with_seed(7);
            (course.starts(&mut dice), course.kills(Duration::from_millis(6), &mut dice))
        };
        for course in &courses {
            let (starts, kills) = draw(course);
            assert_eq!(draw(course), (starts.clone(), kills.clone()));
            assert!(starts.is_sorted() && starts.iter().all(|start| *start <= course.spread));
            let victims = kills.iter().flatten().count();
            assert_eq!(victims, if course.id == "50.killed" { 10 } else { 0 }, "{}", course.id);
        }
    }
}
