//! The last things that happened to one lease, kept for the line that has to tell why it was refused or lost.
//!
//! A few dozen bytes a step and no text before somebody asks: most leases end well, and nobody does.

use std::collections::VecDeque;
use std::fmt;

use super::desk::GiveBack;
use super::lease_counts::Sort;
use super::wording::millis;
use crate::clock::Mono;
use crate::protocol::{FailureKind, Outcome, OwnerId, Request, Row};

/// How many steps are kept.
const MOST_STEPS: usize = 16;

/// The steps, oldest first.
#[derive(Debug)]
pub(super) struct Trail {
    began: Mono,
    steps: VecDeque<Noted>,
    /// How many came before those that are kept.
    forgotten: u32,
}

/// A step, and when it was.
#[derive(Debug)]
struct Noted {
    at: Mono,
    step: Step,
    /// For a look that showed the same as the ones before it: how often, and when for the last time.
    again: Option<(u32, Mono)>,
}

/// What may happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    InLine,
    Sent(Sort, Option<OwnerId>),
    Answered(&'static str, Answered),
    GivenBack(GiveBack),
    Granted,
    AtRisk,
    Secured,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answered {
    Done,
    Held(bool, OwnerId),
    Free(bool),
    Unusable,
    Failed(FailureKind),
}

impl Step {
    pub(super) fn sent(request: &Request) -> Self {
        let owner = match request {
            Request::Acquire { owner, .. } | Request::TakeOver { owner, .. } => Some(*owner),
            _ => None,
        };
        Self::Sent(Sort::of(request), owner)
    }

    /// An answer to what this names.
    pub(super) fn answered(what: &'static str, outcome: &Outcome) -> Self {
        let of_row = |refused, row: &Row| match row {
            Row::Held(held) => Answered::Held(refused, held.owner),
            Row::Free { .. } | Row::Absent => Answered::Free(refused),
            Row::Unusable(_) => Answered::Unusable,
        };
        Self::Answered(
            what,
            match outcome {
                Outcome::Written { .. } | Outcome::Numbered { .. } => Answered::Done,
                Outcome::Refused { row } => of_row(true, row),
                Outcome::Read { row } => of_row(false, row),
                Outcome::Failed(failure) => Answered::Failed(failure.kind),
            },
        )
    }
}

impl Trail {
    pub(super) fn new(began: Mono) -> Self {
        Self { began, steps: VecDeque::with_capacity(MOST_STEPS), forgotten: 0 }
    }

    pub(super) fn note(&mut self, at: Mono, step: Step) {
        if self.is_seen_again(at, &step) {
            return;
        }
        if self.steps.len() == MOST_STEPS {
            self.steps.pop_front();
            self.forgotten = self.forgotten.saturating_add(1);
        }
        self.steps.push_back(Noted { at, step, again: None });
    }

    /// Who waits looks ten times a second and mostly sees the same holder: that is one step, so that the others stay.
    fn is_seen_again(&mut self, at: Mono, step: &Step) -> bool {
        let Step::Answered(_, Answered::Held(false, owner)) = step else { return false };
        let Some(asked) = self.steps.len().checked_sub(1) else { return false };
        let Some(Noted { step: Step::Sent(Sort::Read, None), .. }) = self.steps.get(asked) else { return false };
        let Some(before) = asked.checked_sub(1).and_then(|before| self.steps.get_mut(before)) else { return false };
        if !matches!(before.step, Step::Answered(_, Answered::Held(false, seen)) if seen == *owner) {
            return false;
        }
        let times = before.again.map_or(1, |(times, _)| times).saturating_add(1);
        before.again = Some((times, at));
        self.steps.pop_back();
        true
    }
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten > 0 {
            write!(f, "{} earlier; ", self.forgotten)?;
        }
        for (n, Noted { at, step, again }) in self.steps.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{} ms {step}", millis(at.since(self.began)))?;
            if let Some((times, last)) = again {
                write!(f, ", {times} times until {} ms", millis(last.since(self.began)))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InLine => f.write_str("in line behind others of this keeper"),
            Self::Sent(sort, None) => f.write_str(sort.as_str()),
            Self::Sent(sort, Some(owner)) => write!(f, "{} as {}", sort.as_str(), Short(*owner)),
            Self::Answered(what, answered) => write!(f, "{what}: {answered}"),
            Self::GivenBack(order) => write!(f, "given back, {}", order.as_str()),
            Self::Granted => f.write_str("granted"),
            Self::AtRisk => f.write_str("at risk"),
            Self::Secured => f.write_str("secured"),
        }
    }
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = |refused: &bool| if *refused { "refused, " } else { "" };
        match self {
            Self::Done => f.write_str("written"),
            Self::Held(was, owner) => write!(f, "{}held by {}", refused(was), Short(*owner)),
            Self::Free(was) => write!(f, "{}free", refused(was)),
            Self::Unusable => f.write_str("a row that is no lock"),
            Self::Failed(kind) => write!(f, "{kind:?}"),
        }
    }
}

/// As much of an owner as tells it from the others of one line.
struct Short(OwnerId);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().get(..8).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_steps_are_kept_and_the_line_is_short() {
        let began = Mono::from_origin(Duration::from_secs(5));
        let mut trail = Trail::new(began);
        let at = |ms| began + Duration::from_millis(ms);
        trail.note(at(0), Step::Sent(Sort::Acquire, Some(OwnerId::from_u128(7 << 96))));
        trail.note(at(6), Step::Answered("acquire", Answered::Held(true, OwnerId::from_u128(9 << 96))));
        assert_eq!(trail.to_string(), "0 ms acquire as 00000007; 6 ms acquire: refused, held by 00000009");
        for ms in 10..40 {
            trail.note(at(ms), Step::Sent(Sort::Renewal, None));
        }
        let told = trail.to_string();
        assert!(told.starts_with("16 earlier; 24 ms renew; "), "{told}");
        assert!(told.ends_with("39 ms renew") && told.len() < 400, "{told}");
    }

    #[test]
    fn looks_that_show_the_same_holder_are_one_step() {
        let began = Mono::from_origin(Duration::from_secs(5));
        let mut trail = Trail::new(began);
        let at = |ms| began + Duration::from_millis(ms);
        trail.note(at(0), Step::Sent(Sort::Acquire, Some(OwnerId::from_u128(7 << 96))));
        trail.note(at(1), Step::Answered("attempt", Answered::Held(true, OwnerId::from_u128(9 << 96))));
        for (ms, owner) in [(10, 9), (20, 9), (30, 9), (40, 8), (50, 9)] {
            trail.note(at(ms), Step::Sent(Sort::Read, None));
            trail.note(at(ms + 2), Step::Answered("look", Answered::Held(false, OwnerId::from_u128(owner << 96))));
        }
        trail.note(at(60), Step::Sent(Sort::Read, None));
        assert_eq!(
            trail.to_string(),
            "0 ms acquire as 00000007; 1 ms attempt: refused, held by 00000009; 10 ms look; \
             12 ms look: held by 00000009, 3 times until 32 ms; 40 ms look; 42 ms look: held by 00000008; 50 ms look; \
             52 ms look: held by 00000009; 60 ms look"
        );
    }
}
