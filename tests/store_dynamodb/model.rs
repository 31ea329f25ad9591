//! What each request does to a row, as the protocol says: the row afterwards and the answer.

use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{Failure, FailureKind, HeldRow, Hints, Outcome, OwnerId, Request, Row, Version};

use crate::rows::{AT, KEY, LEASE, n, s, with};
use crate::support::embedded_dynamodb::Item;

pub(crate) fn after(version: Version) -> Version {
    Version::Counter(version.counter().unwrap() + 1)
}

/// What a request does to a row: the row afterwards and the answer's version, or `None` when its condition does not hold.
pub(crate) fn model(request: &Request, row: &Row, item: Option<&Item>) -> Option<(Item, Version)> {
    let owner_on_row = item.and_then(|item| item.get("owner")).and_then(|owner| OwnerId::parse(owner.as_s().unwrap()));
    let set = |item: &mut Item, name: &str, value| drop(item.insert(name.to_owned(), value));
    let lease = |item: &mut Item, expires_at: &Option<Wall>, version: Version| {
        item.remove("ttl");
        item.remove("expires_at");
        item.extend(expires_at.map(|at| ("expires_at".to_owned(), n(at.as_millis()))));
        set(item, "version", n(version.counter().unwrap()));
    };
    let give_to = |owner: &OwnerId, expires_at: &Option<Wall>, version, parked: bool| {
        let mut item = item.cloned().unwrap_or_default();
        let holder = [
            ("function", s("orders")),
            ("version", s("$LATEST")),
            ("request_id", s("5f1c")),
            ("template", s("orders:{id}")),
            ("acquired_at", n(AT)),
        ];
        let parked = parked.then_some(("parked", AttributeValue::Bool(true)));
        let holder = holder.into_iter().chain(parked).map(|(name, value)| (name.to_owned(), value)).collect();
        let fields = [
            ("key", s(KEY)),
            ("format", s("leasehold/1")),
            ("owner", s(owner.to_string())),
            ("lease_ms", n(LEASE.as_millis())),
            ("holder", AttributeValue::M(holder)),
        ];
        fields.into_iter().for_each(|(name, value)| set(&mut item, name, value));
        lease(&mut item, expires_at, version);
        Some((item, version))
    };
    let give = |owner: &OwnerId, expires_at: &Option<Wall>, version| give_to(owner, expires_at, version, false);
    let served = |given: Option<(Item, Version)>, served: &Option<u64>| {
        given.map(|(mut item, version)| {
            item.extend(served.map(|served| ("served".to_owned(), n(served))));
            (item, version)
        })
    };
    match (request, row) {
        (Request::Acquire { owner, expires_at, served: to, .. }, Row::Absent) => {
            served(give(owner, expires_at, Version::Counter(AT + 1)), to)
        }
        (Request::Acquire { owner, expires_at, served: to, .. }, Row::Free { version, .. }) => {
            served(give(owner, expires_at, Version::Counter(version + 1)), to)
        }
        (Request::Acquire { owner, expires_at, unknown, served: to, .. }, Row::Held(held))
            if unknown.contains(&held.owner) =>
        {
            served(give(owner, expires_at, after(held.version)), to)
        }
        (Request::TakeOver { owner, expires_at, seen_owner, seen_version, served: to, .. }, Row::Held(held))
            if (held.owner, held.version) == (*seen_owner, *seen_version) =>
        {
            served(give(owner, expires_at, after(held.version)), to)
        }
        (Request::Renew { owner, version, new_version, expires_at }, Row::Held(held))
            if (held.owner, held.version) == (*owner, *version) =>
        {
            let mut item = item.cloned().unwrap();
            lease(&mut item, expires_at, *new_version);
            Some((item, *new_version))
        }
        (Request::Park { owner, version, parked, new_version, expires_at, .. }, Row::Held(held))
            if (held.owner, held.version) == (*owner, *version) =>
        {
            give_to(parked, expires_at, *new_version, true)
        }
        (Request::Release { owners, ttl, hold }, _) if owner_on_row.is_some_and(|owner| owners.contains(&owner)) => {
            let mut item = item.cloned().unwrap();
            for name in ["owner", "holder", "expires_at"] {
                item.remove(name);
            }
            item.extend(ttl.map(|ttl| ("ttl".to_owned(), n(ttl))));
            item.extend(hold.map(|hold| ("hold_ms".to_owned(), n(hold.as_millis()))));
            Some((item, Version::Counter(0)))
        }
        _ => None,
    }
}

pub(crate) fn hints(row: &Row) -> Hints {
    match row {
        Row::Free { hints, .. } => *hints,
        Row::Held(held) => held.hints,
        Row::Absent | Row::Unusable(_) => Hints::default(),
    }
}

/// What the row that this takes says of those who wait.
pub(crate) fn served(by: &Request, before: Hints) -> Hints {
    let (Request::Acquire { served, .. } | Request::TakeOver { served, .. }) = by else { return before };
    // Nobody can be served with a ticket that was not taken.
    let served = served.or(before.served).filter(|served| before.tickets.is_some_and(|tickets| *served <= tickets));
    Hints { served, ..before }
}

/// A ticket is taken of a held row alone, and changes nothing but their count. What can't be counted on fails it.
pub(crate) fn after_a_ticket(row: &Row, item: Option<Item>) -> (Outcome, Option<Item>) {
    let (Row::Held(held), Some(item)) = (row, &item) else { return (Outcome::Refused { row: row.clone() }, item) };
    if item.get("tickets").is_some_and(|tickets| !tickets.is_n()) {
        let failure = Failure::new(FailureKind::Rejected, "");
        return (Outcome::Failed(failure), Some(item.clone()));
    }
    let tickets = held.hints.tickets.unwrap_or(0) + 1;
    let hints = Hints { tickets: Some(tickets), ..held.hints };
    let row = Row::Held(HeldRow { hints, ..held.clone() });
    (Outcome::Numbered { row }, Some(with(item.clone(), &[("tickets", n(tickets))])))
}
