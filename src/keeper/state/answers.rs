//! What the store answers about a state, and what follows from it.

use std::time::Duration;

use super::{Ask, Current, FIRST_PAUSE, NotLeft, States, Told};
use crate::clock::Now;
use crate::keeper::wording;
use crate::protocol::{Failure, Unusable};
use crate::session::{FailKind, FromKeeper};
use crate::store::{SeenState, StateAnswer, StateItem, StateOutcome};

/// DynamoDB knows a `ClientRequestToken` for ten minutes, from when the transaction was done; this is counted from when
/// it was first sent.
const TOKEN_SERVES: Duration = Duration::from_secs(9 * 60 + 30);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How often a state that was changed under its holder is looked at anew.
const MOST_CHANGES: u32 = 3;

impl States {
    /// The store's answer to the request under way.
    pub(in crate::keeper) fn handle_answer(&mut self, now: Now, answer: StateAnswer) -> Told {
        let is_left = self.current.as_ref().is_some_and(|current| matches!(current.ask, Ask::Leave { .. }));
        let mut told = self.handle_the_answer(now, answer);
        if is_left && let Some(FromKeeper::StateFailed { kind, message, .. }) = told.line.take() {
            let not_left = if kind == FailKind::Unconfirmed { NotLeft::Unknown } else { NotLeft::No };
            told.not_left = Some(not_left(message));
        }
        told
    }

    fn handle_the_answer(&mut self, now: Now, answer: StateAnswer) -> Told {
        let Some(mut current) = self.current.take() else { return Told::default() };
        current.in_flight = false;
        let call = current.ask.call();
        let line = match answer.outcome {
            StateOutcome::Read(item) => return self.found(now, answer.date, current, item),
            StateOutcome::Written => {
                self.seen = current.write.and_then(|write| write.counter()).map(SeenState::Counter);
                FromKeeper::StateSaved { id: self.id, call }
            }
            StateOutcome::NotHeld(row) => {
                let message = "DynamoDB found another owner on the lock's row, or none, and wrote nothing";
                let line = Some(self.failed(call, FailKind::NotHeld, message));
                return Told { line, not_held: Some(row), not_left: None };
            }
            StateOutcome::Changed(StateItem::Unusable(unusable)) => self.unusable(call, &unusable),
            StateOutcome::Changed(_) if current.changes < MOST_CHANGES => {
                // Somebody put it back by hand, or an earlier write of this lease's came late. It is this holder's to
                // write, whatever stands there.
                self.seen = None;
                let changes = current.changes + 1;
                self.current = Some(Current { write: None, since: None, unknown: false, changes, ..current });
                return Told::default();
            }
            StateOutcome::Changed(_) => {
                let message = "the state was changed again and again by somebody who does not hold the lock";
                self.failed(call, FailKind::Rejected, message)
            }
            StateOutcome::Failed(failure) => return self.failed_once(now, current, &failure),
        };
        Told::line(line)
    }

    fn found(&mut self, now: Now, date: Option<u64>, current: Current, item: StateItem) -> Told {
        let call = current.ask.call();
        let (seen, value) = match item {
            StateItem::Unusable(unusable) => {
                return Told::line(self.unusable(call, &unusable));
            }
            StateItem::Absent => (SeenState::Absent, None),
            StateItem::Kept { counter, value, ttl } => {
                // DynamoDB sweeps within a few days of it, not at once.
                let moment = date.unwrap_or(now.wall.as_millis() / 1000);
                (SeenState::Counter(counter), value.filter(|_| ttl.is_none_or(|ttl| moment < ttl)))
            }
        };
        self.seen = Some(seen);
        if matches!(current.ask, Ask::Load { .. }) {
            return Told::line(FromKeeper::State { id: self.id, call, value });
        }
        self.current = Some(Current { pause: FIRST_PAUSE, next: now.mono, ..current });
        Told::default()
    }

    /// It is sent again, the same, unless that is of no use any more.
    fn failed_once(&mut self, now: Now, mut current: Current, failure: &Failure) -> Told {
        let call = current.ask.call();
        current.unknown |= current.write.is_some() && failure.kind.may_have_landed();
        let serves = current.since.is_none_or(|since| now.mono.since(since) < TOKEN_SERVES);
        if failure.kind.is_transient() && serves {
            current.next = now.mono + current.pause;
            current.pause = (current.pause * 2).min(LONGEST_PAUSE);
            self.current = Some(current);
            return Told::default();
        }
        let line = if current.unknown {
            // Whether it was applied, the next one has to find out.
            self.seen = None;
            let message = format!("an attempt had no answer, and then: {failure}");
            self.failed(call, FailKind::Unconfirmed, message)
        } else {
            self.failed(call, wording::kind(failure.kind), failure.to_string())
        };
        Told::line(line)
    }

    fn unusable(&self, call: u64, unusable: &Unusable) -> FromKeeper {
        let (kind, found) = match unusable {
            Unusable::Foreign { format, .. } => {
                let format = format.as_ref().map_or("no format".to_owned(), |format| format!("the format `{format}`"));
                (
                    FailKind::ForeignRow,
                    format!(
                        "an item of {format}, which is left alone: give these locks keys, or a table, of their own"
                    ),
                )
            }
            Unusable::Malformed { attribute, found } => {
                let advice = "look at the item and delete it once nobody works on its key";
                (FailKind::MalformedRow, format!("an item whose `{attribute}` {found}; {advice}"))
            }
        };
        self.failed(call, kind, format!("where the state is to be (the lock's key and `#state`) stands {found}"))
    }
}
