//! What happened, a line an event: written only when a seed is replayed.

use std::cell::RefCell;
use std::fmt::Write as _;

use super::clock::{EPOCH, MS, Micros, micros};
use super::network::Fate;
use super::store::Stored;
use crate::clock::{Mono, Wall};
use crate::protocol::{Hints, Outcome, OwnerId, Request, Row};

#[derive(Debug, Default)]
pub(super) struct Trace(Option<RefCell<String>>);

impl Trace {
    pub(super) fn on() -> Self {
        Self(Some(RefCell::default()))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn into_text(self) -> String {
        self.0.map(RefCell::into_inner).unwrap_or_default()
    }

    pub(super) fn line(&self, at: Micros, clocks: Option<(usize, Mono, i64)>, text: &str, rows: &[Option<Stored>]) {
        let Some(lines) = &self.0 else { return };
        let mut lines = lines.borrow_mut();
        let clocks = clocks.map_or_else(String::new, |(keeper, mono, ahead)| {
            let mono = micros(mono.since(Mono::default())) as f64 / 1e6;
            format!("K{keeper} mono {mono:.6} wall {:+.6}", ahead as f64 / 1e6)
        });
        let rows: Vec<String> = rows.iter().map(row).collect();
        // Writing to a string can't fail.
        let _ = writeln!(lines, "{:>14.6}  {clocks:<42} {text}\n{:58}[{}]", at as f64 / 1e6, "", rows.join("] ["));
    }
}

/// Owners are numbered in a run.
pub(super) fn owner(id: &OwnerId) -> String {
    let text = id.to_string().replace('-', "");
    u128::from_str_radix(&text, 16).map_or(text, |number| format!("#{number}"))
}

fn wall(wall: &Option<Wall>) -> String {
    wall.map_or_else(|| "-".to_owned(), |wall| format!("{:.3}", (wall.as_millis() as f64 - (EPOCH / MS) as f64) / 1e3))
}

pub(super) fn row(row: &Option<Stored>) -> String {
    match row {
        None => "absent".to_owned(),
        Some(row) => {
            let held = row.owner.as_ref().map_or_else(
                || "free".to_owned(),
                |id| format!("{} lease {:?} expires {}", owner(id), row.lease, wall(&row.expires_at)),
            );
            let ttl = row.ttl.map_or_else(String::new, |ttl| format!(" ttl {ttl}"));
            let foreign = if row.foreign { " FOREIGN" } else { "" };
            let Hints { tickets, served, hold, .. } = row.hints;
            let number = |hint: Option<u64>| hint.map_or("-".to_owned(), |number| number.to_string());
            let hints = format!("{}/{} {:?}", number(served), number(tickets), hold.unwrap_or_default());
            format!("v{} {held}{ttl} {hints}{foreign}", row.version)
        }
    }
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Written { version, .. } => format!("written, version {version}"),
        Outcome::Refused { row } => format!("refused, {}", found(row)),
        Outcome::Numbered { row } => format!("has a ticket, {}", found(row)),
        Outcome::Read { row } => format!("read, {}", found(row)),
        Outcome::Failed(failure) => format!("failed, {:?}", failure.kind),
    }
}

fn found(row: &Row) -> String {
    match row {
        Row::Held(held) => format!("{} v{}", owner(&held.owner), held.version),
        row => format!("{row:?}"),
    }
}

pub(super) fn request(request: &Request) -> String {
    let list = |owners: &[OwnerId]| owners.iter().map(owner).collect::<Vec<_>>().join(", ");
    match request {
        Request::Acquire { owner: me, expires_at, unknown, served, .. } => {
            let (me, at) = (owner(me), wall(expires_at));
            format!("Acquire {me} expires {at} replacing [{}] served {served:?}", list(unknown))
        }
        Request::TakeOver { owner: me, expires_at, seen_owner, seen_version, served, .. } => {
            let (me, seen) = (owner(me), owner(seen_owner));
            format!("TakeOver {me} expires {} from {seen} v{seen_version} served {served:?}", wall(expires_at))
        }
        Request::Renew { owner: me, version, new_version, expires_at } => {
            format!("Renew {} v{version} to v{new_version} expires {}", owner(me), wall(expires_at))
        }
        Request::Park { owner: me, version, parked, new_version, lease, expires_at, .. } => {
            let (me, parked) = (owner(me), owner(parked));
            format!("Park {me} v{version} as {parked} v{new_version} for {lease:?} expires {}", wall(expires_at))
        }
        Request::Release { owners, ttl, hold } => format!("Release [{}] ttl {ttl:?} hold {hold:?}", list(owners)),
        Request::Ticket => "Ticket".to_owned(),
        Request::Read => "Read".to_owned(),
    }
}

pub(super) fn fate(fate: &Fate) -> String {
    if fate.usual {
        return "usual way".to_owned();
    }
    let after =
        |micros: Option<Micros>| micros.map_or("never".to_owned(), |after| format!("{:.3} s", after as f64 / 1e6));
    format!(
        "applied after {}, answered after {}, turned away {:?}, failed {:?}, dated {}",
        after(fate.applied),
        after(fate.answered),
        fate.turned_away,
        fate.failed,
        fate.dated
    )
}
