//! What a request does to a row, or to a state beside it.

use std::time::Duration;

use super::{KeptState, MemoryStore};
use crate::clock::Wall;
use crate::protocol::{HeldRow, Hints, HolderInfo, Outcome, OwnerId, Request, Row, Version};
use crate::store::{Lock, SeenState, StateItem, StateOutcome, StateRequest};

impl MemoryStore {
    pub(super) fn apply(&self, lock: &Lock, request: Request) -> Outcome {
        let mut state = self.state.lock().unwrap();
        let row = state.rows.get(&lock.key).cloned().unwrap_or(Row::Absent);
        let refused = Outcome::Refused { row: row.clone() };
        let hints = hints_of(&row);
        let owner_now = if let Row::Held(held) = &row { Some((held.owner, held.version)) } else { None };
        let serving = |served: Option<u64>| Hints { served: served.or(hints.served), ..hints };
        let mut told = Hints::default();
        let new = match request {
            Request::Read => return Outcome::Read { row },
            Request::Ticket => {
                let Row::Held(held) = row else { return refused };
                let counted = hints.tickets.unwrap_or(0) + 1;
                let hints = Hints { tickets: Some(counted).filter(|_| !hints.uncountable), ..hints };
                let row = Row::Held(HeldRow { hints, ..held });
                state.rows.insert(lock.key.clone(), row.clone());
                return Outcome::Numbered { row };
            }
            Request::Acquire { owner, version, at, lease, expires_at, unknown, served } => {
                let version = match &row {
                    Row::Held(held) if !unknown.contains(&held.owner) => return refused,
                    Row::Unusable(_) => return refused,
                    Row::Held(HeldRow { version: old, .. }) => version.unwrap_or(after(*old)),
                    Row::Free { version: old, .. } => after(Version::Counter(*old)),
                    Row::Absent => version.unwrap_or(Version::Counter(at.as_millis() + 1)),
                };
                told = serving(served);
                held(owner, version, lease, expires_at, &lock.holder, serving(served))
            }
            Request::TakeOver { owner, version, lease, expires_at, seen_owner, seen_version, served, .. } => {
                if owner_now != Some((seen_owner, seen_version)) {
                    return refused;
                }
                told = serving(served);
                let version = version.unwrap_or(after(seen_version));
                held(owner, version, lease, expires_at, &lock.holder, serving(served))
            }
            Request::Renew { owner, version, new_version, expires_at } => match row {
                Row::Held(row) if (row.owner, row.version) == (owner, version) => {
                    Row::Held(HeldRow { version: new_version, expires_at, ..row })
                }
                _ => return refused,
            },
            Request::Park { owner, version, parked, new_version, lease, expires_at, at: _ } => match row {
                Row::Held(row) if (row.owner, row.version) == (owner, version) => {
                    let holder = HolderInfo { parked: true, ..lock.holder.clone() };
                    held(parked, new_version, lease, expires_at, &holder, hints)
                }
                _ => return refused,
            },
            Request::Release { owners, hold, .. } => match &row {
                // A version that is no counter is one of a format that keeps no free rows.
                Row::Held(held) if owners.contains(&held.owner) => {
                    let hints = Hints { hold: hold.or(hints.hold), ..hints };
                    held.version.counter().map_or(Row::Absent, |version| Row::Free { version, hints })
                }
                _ => return refused,
            },
        };
        let version = match &new {
            Row::Held(held) => held.version,
            _ => Version::Counter(0),
        };
        state.rows.insert(lock.key.clone(), new);
        Outcome::Written { version, hints: told }
    }

    pub(in crate::keeper::tests) fn apply_state(&self, key: &str, request: &StateRequest) -> StateOutcome {
        let mut state = self.state.lock().unwrap();
        let kept = state.states.get(key).cloned();
        let item = kept.as_ref().map_or(StateItem::Absent, |kept| StateItem::Kept {
            counter: kept.counter,
            value: kept.write.value.clone(),
            ttl: kept.write.ttl,
        });
        let StateRequest::Write(write) = request else { return StateOutcome::Read(item) };
        if kept.as_ref().is_some_and(|kept| kept.write.id == write.id) {
            // As DynamoDB knows a token.
            return StateOutcome::Written;
        }
        let row = state.rows.get(key).cloned().unwrap_or(Row::Absent);
        let version = match &row {
            Row::Held(held) if held.owner == write.owner => held.version,
            _ => return StateOutcome::NotHeld(row),
        };
        let fits = match (write.seen, &kept) {
            (SeenState::Unread, _) | (_, None) => true,
            (SeenState::Absent, Some(_)) => false,
            (SeenState::Counter(seen), Some(kept)) => kept.counter == seen,
        };
        if !fits {
            return StateOutcome::Changed(item);
        }
        let counted_on = kept.map_or(write.at.as_millis(), |kept| kept.counter) + 1;
        let counter = write.counter().unwrap_or(counted_on);
        state.states.insert(key.to_owned(), KeptState { counter, write: write.clone() });
        if write.release.is_some() {
            let hold = write.release.and_then(|release| release.hold);
            let hints = Hints { hold: hold.or(hints_of(&row).hold), ..hints_of(&row) };
            let version = version.counter().unwrap_or_default();
            state.rows.insert(key.to_owned(), Row::Free { version, hints });
        }
        StateOutcome::Written
    }
}

fn hints_of(row: &Row) -> Hints {
    match row {
        Row::Held(held) => held.hints,
        Row::Free { hints, .. } => *hints,
        Row::Absent | Row::Unusable(_) => Hints::default(),
    }
}

fn after(version: Version) -> Version {
    version.counter().map_or(version, |counter| Version::Counter(counter + 1))
}

fn held(
    owner: OwnerId,
    version: Version,
    lease: Duration,
    expires_at: Option<Wall>,
    holder: &HolderInfo,
    hints: Hints,
) -> Row {
    Row::Held(HeldRow { owner, version, lease, expires_at, holder: Some(Box::new(holder.clone())), hints })
}
