//! The expressions that are written, and which answers are believed.

use super::*;
use crate::session::Table;

fn lock() -> Lock {
    Lock {
        table: Table::new("locks"),
        key: "orders:1".into(),
        holder: HolderInfo::default(),
        attributes: Default::default(),
    }
}

fn v(counter: u64) -> Version {
    Version::Counter(counter)
}

fn acquire(unknown: Vec<OwnerId>) -> Expressions {
    let request = Request::Acquire {
        owner: OwnerId::from_u128(1),
        version: None,
        at: Wall::from_millis(1_000),
        lease: Duration::from_secs(30),
        expires_at: None,
        unknown,
        served: None,
    };
    LeaseholdV1.encode(&lock(), &request).unwrap().expressions().clone()
}

#[test]
fn an_acquire_without_unknown_attempts_lists_none() {
    let update = acquire(vec![]);
    assert_eq!(
        update.condition,
        "attribute_not_exists(#key) OR (#format = :format AND attribute_type(#version, :number) \
         AND #version BETWEEN :low AND :high AND attribute_not_exists(#owner))"
    );
    assert_eq!(
        update.update(),
        "SET #format = :format, #owner = :owner, #lease_ms = :lease_ms, #holder = :holder, \
         #version = if_not_exists(#version, :seed) + :one REMOVE #expires_at, #ttl"
    );
}

#[test]
fn every_alias_and_every_value_is_used_and_every_one_used_is_given() {
    let owner = OwnerId::from_u128(1);
    let (at, lease, expires_at) = (Wall::from_millis(1), Duration::from_secs(1), Some(Wall::from_millis(2)));
    let (served, hold) = (Some(6), Some(lease));
    let requests = [
        Request::Acquire { owner, version: None, at, lease, expires_at, unknown: vec![owner], served: Some(6) },
        Request::Acquire { owner, version: None, at, lease, expires_at: None, unknown: vec![], served: None },
        Request::TakeOver {
            owner,
            version: None,
            at,
            lease,
            expires_at,
            seen_owner: owner,
            seen_version: v(3),
            served,
        },
        Request::Renew { owner, version: v(3), new_version: v(4), expires_at },
        Request::Renew { owner, version: v(3), new_version: v(4), expires_at: None },
        Request::Park { owner, version: v(3), parked: owner, new_version: v(4), at, lease, expires_at },
        Request::Park { owner, version: v(3), parked: owner, new_version: v(4), at, lease, expires_at: None },
        Request::Release { owners: vec![owner], ttl: Some(9), hold },
        Request::Release { owners: vec![owner], ttl: None, hold: None },
        Request::Release { owners: vec![], ttl: None, hold: None },
        Request::Ticket,
    ];
    for request in requests {
        let write = LeaseholdV1.encode(&lock(), &request).unwrap();
        let update = write.expressions();
        let text = format!("{} {}", update.update(), update.condition);
        let words: Vec<_> = text.split(|c: char| !(c.is_alphanumeric() || "#:_".contains(c))).collect();
        let mut used: Vec<_> = words.iter().filter(|word| word.starts_with(['#', ':'])).copied().collect();
        used.sort_unstable();
        used.dedup();
        let mut given: Vec<_> = update.names.keys().chain(update.values.keys()).map(String::as_str).collect();
        given.sort_unstable();
        assert_eq!(used, given, "{request:?}");
    }
}

#[test]
fn a_long_list_of_unknown_attempts_stays_within_the_limits_of_an_expression() {
    let unknown: Vec<_> = (0..1_000).map(OwnerId::from_u128).collect();
    let update = acquire(unknown);
    assert!(update.condition.len() < 4_096, "{}", update.condition.len());
    assert_eq!(update.condition.matches("#owner IN (").count(), 4);
    assert!(update.values.values().any(|v| *v == text(OwnerId::from_u128(999))), "the newest are kept");
}

#[test]
fn only_an_acquisition_can_meet_a_version_that_no_condition_sees() {
    let (owner, at, lease) = (OwnerId::from_u128(1), Wall::from_millis(5), Duration::from_secs(30));
    let acquire = Request::Acquire { owner, version: None, at, lease, expires_at: None, unknown: vec![], served: None };
    let renew = Request::Renew { owner, version: v(7), new_version: v(8), expires_at: None };
    let with = |value| Item::from([("version".to_owned(), value)]);
    let fraction = with(AttributeValue::N("2.5".into()));
    let found = "is 2.5, not an integer from 0 to 2^63 - 1".to_owned();
    let expected = Unusable::Malformed { attribute: "version".to_owned(), found };
    assert_eq!(LeaseholdV1.broken(&acquire, Some(&fraction)), Some(expected));
    assert_eq!(LeaseholdV1.broken(&renew, Some(&fraction)), None);
    for none in [None, Some(Item::new()), Some(with(number(8))), Some(with(AttributeValue::S("8".into())))] {
        assert_eq!(LeaseholdV1.broken(&acquire, none.as_ref()), None, "{none:?}");
    }
}

#[test]
fn a_write_whose_answer_does_not_bring_the_version_it_must_have_is_not_believed() {
    let owner = OwnerId::from_u128(1);
    let renew = Request::Renew { owner, version: v(7), new_version: v(8), expires_at: None };
    let with = |value| Item::from([("version".to_owned(), value)]);
    let written = |item: Option<&Item>| LeaseholdV1.written(&renew, item);
    assert_eq!(written(Some(&with(number(8)))), Ok(v(8)));
    for odd in [None, Some(Item::new()), Some(with(number(9))), Some(with(AttributeValue::S("8".into())))] {
        assert!(written(odd.as_ref()).is_err(), "{odd:?}");
    }
    let release = Request::Release { owners: vec![owner], ttl: None, hold: None };
    assert_eq!(LeaseholdV1.written(&release, None), Ok(v(0)));
}
