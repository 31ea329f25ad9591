//! The store: rows, and the conditions under which each request changes one, as [`Request`] documents them.

use std::collections::BTreeSet;
use std::time::Duration;

use super::clock::{EPOCH, MS, Micros, SECOND};
use super::violation::Violation;
use crate::clock::Wall;
use crate::protocol::{Format, HeldRow, Hints, Mutant, Outcome, OwnerId, Request, Row, Rules, Unusable, Version};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stored {
    pub(super) version: Version,
    pub(super) lease: Duration,
    pub(super) owner: Option<OwnerId>,
    pub(super) expires_at: Option<Wall>,
    pub(super) ttl: Option<u64>,
    pub(super) hints: Hints,
    /// It is no lock's row: something wrote to it that should not have.
    pub(super) foreign: bool,
}

/// What an attempt gives the row to its owner with.
struct Give {
    owner: OwnerId,
    version: Option<Version>,
    at: Wall,
    lease: Duration,
    expires_at: Option<Wall>,
    served: Option<u64>,
}

/// The rows of one table, by key number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    pub(super) rows: Vec<Option<Stored>>,
    format: Format,
    rules: Rules,
    /// The opaque versions that rows had.
    had: BTreeSet<Version>,
}

/// Server time in whole seconds, as a front end says it whose clock is `skew` off.
pub(super) fn date(at: Micros, skew: i64) -> u64 {
    (EPOCH + at).saturating_add_signed(skew) / SECOND
}

impl Stored {
    /// A free row with hints of those who are gone.
    pub(super) fn left_free(hints: Hints) -> Self {
        let version = Version::Counter(EPOCH / MS);
        Self { version, lease: Duration::from_secs(6), owner: None, expires_at: None, ttl: None, hints, foreign: false }
    }

    fn not_a_lock() -> Self {
        Self {
            version: Version::Counter(0),
            lease: Duration::ZERO,
            owner: None,
            expires_at: None,
            ttl: None,
            hints: Hints { tickets: Some(1), ..Hints::default() },
            foreign: true,
        }
    }
}

impl Store {
    pub(super) fn new(keys: usize, format: Format, rules: Rules) -> Self {
        Self { rows: vec![None; keys], format, rules, had: BTreeSet::new() }
    }

    /// Carries out one request as one indivisible step.
    pub(super) fn apply(&mut self, key: usize, request: &Request) -> Result<Outcome, Violation> {
        let before = self.rows[key].as_ref().map(|row| (row.owner, row.version));
        let outcome = match request {
            Request::Acquire { owner, version, at, lease, expires_at, unknown, served } => {
                let in_turn = self.rules.broken(Mutant::AcquireInTurnOnly);
                let allowed = self.rows[key].as_ref().is_none_or(|row| {
                    let mine = row.owner.is_none_or(|holder| unknown.contains(&holder));
                    mine && !row.foreign && !(in_turn && is_anothers_turn(row.hints, *served))
                });
                if !allowed {
                    return Ok(Outcome::Refused { row: self.row(key) });
                }
                {
                    let (owner, version, at, lease) = (*owner, *version, *at, *lease);
                    self.take(key, Give { owner, version, at, lease, expires_at: *expires_at, served: *served })
                }
            }
            Request::TakeOver { owner, version, at, lease, expires_at, seen_owner, seen_version, served } => {
                let any_version = self.rules.broken(Mutant::TakeoverWithoutVersion);
                let allowed = self.rows[key]
                    .as_ref()
                    .is_some_and(|row| row.owner == Some(*seen_owner) && (any_version || row.version == *seen_version));
                if !allowed {
                    return Ok(Outcome::Refused { row: self.row(key) });
                }
                {
                    let (owner, version, at, lease) = (*owner, *version, *at, *lease);
                    self.take(key, Give { owner, version, at, lease, expires_at: *expires_at, served: *served })
                }
            }
            Request::Renew { owner, version, new_version, expires_at } => {
                let any_version = self.rules.broken(Mutant::RenewalWithoutVersion);
                let keep_old = expires_at.is_none() && self.rules.broken(Mutant::OldExpiresAtKept);
                let Some(row) = self.rows[key]
                    .as_mut()
                    .filter(|row| row.owner == Some(*owner) && (any_version || row.version == *version))
                else {
                    return Ok(Outcome::Refused { row: self.row(key) });
                };
                row.version = *new_version;
                row.ttl = None;
                if !keep_old {
                    row.expires_at = expires_at.map(whole_millis);
                }
                Outcome::written(*new_version)
            }
            Request::Park { owner, version, parked, new_version, lease, expires_at, at: _ } => {
                let any_version = self.rules.broken(Mutant::ParkingWithoutVersion);
                let Some(row) = self.rows[key]
                    .as_mut()
                    .filter(|row| row.owner == Some(*owner) && (any_version || row.version == *version))
                else {
                    return Ok(Outcome::Refused { row: self.row(key) });
                };
                *row = Stored {
                    version: *new_version,
                    lease: in_whole_millis(*lease),
                    owner: Some(*parked),
                    expires_at: expires_at.map(whole_millis),
                    ttl: None,
                    hints: row.hints,
                    foreign: false,
                };
                Outcome::written(*new_version)
            }
            Request::Release { owners, ttl, hold } => {
                let anyone = self.rules.broken(Mutant::ReleaseWithoutOwner);
                let Some(row) = self.rows[key]
                    .as_mut()
                    .filter(|row| row.owner.is_some_and(|holder| anyone || owners.contains(&holder)))
                else {
                    return Ok(Outcome::Refused { row: self.row(key) });
                };
                if self.format.abilities().release_deletes {
                    self.rows[key] = None;
                } else {
                    row.owner = None;
                    row.expires_at = None;
                    if ttl.is_some() {
                        row.ttl = *ttl;
                    }
                    if hold.is_some() {
                        row.hints.hold = hold.map(in_whole_millis);
                        if self.rules.broken(Mutant::ReleaseDropsVersion) {
                            row.version = Version::Counter(0);
                        }
                    }
                }
                Outcome::written(Version::Counter(0))
            }
            Request::Ticket => {
                let anywhere = self.rules.broken(Mutant::TicketOnAnyRow);
                match &mut self.rows[key] {
                    Some(row) if !row.foreign && (anywhere || row.owner.is_some()) => {
                        row.hints.tickets = Some(row.hints.tickets.unwrap_or(0) + 1);
                    }
                    // A write without a condition makes the item that it does not find.
                    row @ None if anywhere => *row = Some(Stored::not_a_lock()),
                    _ => return Ok(Outcome::Refused { row: self.row(key) }),
                }
                Outcome::Numbered { row: self.row(key) }
            }
            Request::Read => Outcome::Read { row: self.row(key) },
        };
        let Some(row) = &self.rows[key] else { return Ok(outcome) };
        if row.owner.is_some() && row.ttl.is_some() {
            return Err(Violation::HeldRowHasTtl);
        }
        let fell = match row.version {
            // Whoever is given the row, or has its lease extended, has it at a higher version.
            Version::Counter(_) => before.is_some_and(|(owner, before)| {
                let given = row.owner.is_some() && owner != row.owner;
                row.version < before || (given && row.version == before)
            }),
            // In a run these are numbered as they are made up. Others see no order in them, but of one owner's writes none
            // may undo a later one.
            version @ Version::Opaque(_) if before.is_none_or(|(_, before)| before != version) => {
                let undone = before.is_some_and(|(owner, before)| owner == row.owner && version < before);
                !self.had.insert(version) || undone
            }
            Version::Opaque(_) => false,
        };
        if fell { Err(Violation::VersionFell) } else { Ok(outcome) }
    }

    /// DynamoDB's TTL: the row goes at some time after its `ttl`. True when it went.
    pub(super) fn sweep(&mut self, key: usize, at: Micros) -> bool {
        let due = self.rows[key].as_ref().and_then(|row| row.ttl).is_some_and(|ttl| ttl < date(at, 0));
        if due {
            self.rows[key] = None;
        }
        due
    }

    fn take(&mut self, key: usize, give: Give) -> Outcome {
        let Give { owner, version, at, lease, expires_at, served } = give;
        let seed = if self.rules.broken(Mutant::SeedZero) { 0 } else { at.as_millis() };
        let old = self.rows[key].as_ref();
        let counted = old.and_then(|row| row.version.counter()).unwrap_or(seed) + 1;
        let version = version.unwrap_or(Version::Counter(counted));
        let keep_ttl = self.rules.broken(Mutant::TtlLeftOnHeldRow);
        let keep_old = expires_at.is_none() && self.rules.broken(Mutant::OldExpiresAtKept);
        let ttl = old.and_then(|row| row.ttl).filter(|_| keep_ttl);
        let expires_at = expires_at.map(whole_millis).or_else(|| old?.expires_at.filter(|_| keep_old));
        let lease = in_whole_millis(lease);
        let mut hints = old.map(|row| row.hints).unwrap_or_default();
        hints.served = served.or(hints.served);
        self.rows[key] = Some(Stored { version, lease, owner: Some(owner), expires_at, ttl, hints, foreign: false });
        // No machine looks at the rest of them.
        Outcome::Written { version, hints: Hints { hold: hints.hold, ..Hints::default() } }
    }

    fn row(&self, key: usize) -> Row {
        match &self.rows[key] {
            None => Row::Absent,
            Some(Stored { foreign: true, .. }) => {
                Row::Unusable(Unusable::Foreign { expected: self.format, format: None })
            }
            Some(Stored { owner: None, version, hints, .. }) => {
                Row::Free { version: version.counter().unwrap_or_default(), hints: *hints }
            }
            Some(Stored { owner: Some(owner), version, lease, expires_at, hints, .. }) => Row::Held(HeldRow {
                owner: *owner,
                version: *version,
                lease: *lease,
                expires_at: *expires_at,
                holder: None,
                hints: *hints,
            }),
        }
    }
}

/// Whether who would write this to `served` comes before others that have a ticket.
fn is_anothers_turn(hints: Hints, would_serve: Option<u64>) -> bool {
    let next = hints.served.unwrap_or(0) + 1;
    hints.tickets.unwrap_or(0) >= next && would_serve.is_none_or(|ticket| ticket > next)
}

fn in_whole_millis(lease: Duration) -> Duration {
    Duration::from_millis(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

/// A row holds whole milliseconds.
fn whole_millis(wall: Wall) -> Wall {
    Wall::from_millis(wall.as_millis())
}

/// How long after `at` the row's `expires_at` is reached by server time.
pub(super) fn until_expiry(row: &Stored, at: Micros) -> Option<Micros> {
    row.expires_at.map(|expires_at| (expires_at.as_millis() * MS).saturating_sub(EPOCH + at))
}
