//! An `acquire` line becomes terms that hold for its invocation, or a message that names what can't be served.

use super::*;
use crate::clock::{Clock as _, ManualClock};
use crate::protocol::{Format, HolderInfo, ServerTime};
use crate::session::{PollingMs, Table};

fn now() -> Now {
    ManualClock::at(Wall::from_millis(1_800_000_000_000)).now()
}

fn invocation(deadline_ms: Option<u64>, managed: bool) -> Invocation {
    Invocation::new(ServerTime::new().begin(), deadline_ms, managed, now())
}

fn acquire() -> Acquire {
    Acquire {
        id: 1,
        key: "k".to_owned(),
        table: Table::new("locks"),
        lease_ms: 30_000,
        wait_ms: 2_000,
        answer_within_ms: None,
        polling: None,
        on_crash: OnCrash::Release,
        server_time: true,
        max_hold_ms: 900_000,
        max_silence_ms: None,
        state_retention_ms: None,
        attributes: Default::default(),
        holder: HolderInfo::default(),
    }
}

#[test]
fn a_known_deadline_caps_the_lease_and_ends_renewal() {
    let invocation = invocation(Some(1_800_000_007_000), false);
    let terms = Terms::read(acquire(), &invocation, now()).unwrap();
    assert_eq!(terms.settings.lease, Duration::from_secs(10));
    assert_eq!(terms.renewals.until, now().mono + Duration::from_secs(9));
    assert_eq!(terms.renewals.covered_by, Some(now().mono + Duration::from_secs(9)));
    assert_eq!(terms.renewals.then, LossReason::Expired);
}

#[test]
fn the_capped_lease_is_believed_until_the_work_is_over() {
    for remaining_ms in [0, 1, 7, 999, 1_234, 12_345] {
        let invocation = invocation(Some(1_800_000_000_000 + remaining_ms), false);
        let terms = Terms::read(acquire(), &invocation, now()).unwrap();
        let believed = terms.settings.lease * 90 / 100;
        assert!(believed >= Duration::from_millis(remaining_ms) + SHUTDOWN_GRACE, "{remaining_ms}");
        assert!(believed <= Duration::from_millis(remaining_ms + 1) + SHUTDOWN_GRACE, "{remaining_ms}");
    }
}

#[test]
fn no_deadline_an_emulators_deadline_and_managed_instances_hold_until_max_hold() {
    for (deadline, managed) in [(None, false), (Some(0), false), (Some(4_000), false), (Some(1_800_000_007_000), true)]
    {
        let terms = Terms::read(acquire(), &invocation(deadline, managed), now()).unwrap();
        assert_eq!(terms.settings.lease, Duration::from_secs(30));
        assert_eq!(terms.renewals.until, now().mono + Duration::from_secs(900));
        assert_eq!((terms.renewals.then, terms.renewals.covered_by), (LossReason::MaxHold, None));
    }
}

#[test]
fn silence_ends_renewals_before_whatever_else_does() {
    let seconds = Duration::from_secs;
    let asked = Acquire { max_silence_ms: Some(10_000), ..acquire() };
    for (deadline_ms, other) in [(None, LossReason::MaxHold), (Some(1_800_000_060_000), LossReason::Expired)] {
        let terms = Terms::read(asked.clone(), &invocation(deadline_ms, false), now()).unwrap();
        let silent = terms.renewals_after(now().mono + seconds(3));
        assert_eq!((silent.until, silent.then), (now().mono + seconds(13), LossReason::MaxSilence));
        assert_eq!(silent.covered_by, terms.renewals.covered_by);
        let late = terms.renewals_after(terms.renewals.until - seconds(9));
        assert_eq!((late.until, late.then), (terms.renewals.until, other));
    }
    let without = Terms::read(acquire(), &invocation(None, false), now()).unwrap();
    assert_eq!(without.renewals_after(now().mono), without.renewals);
}

#[test]
fn the_budget_never_waits_past_the_latest_answer() {
    let asked = Acquire { answer_within_ms: Some(500), ..acquire() };
    let terms = Terms::read(asked, &invocation(None, false), now()).unwrap();
    assert_eq!(terms.budget.stop, now().mono + Duration::from_millis(500));
    assert_eq!(terms.budget.latest, Some(now().mono + Duration::from_millis(500)));
}

#[test]
fn a_setting_that_cannot_be_served_is_named() {
    let sorted =
        |name: &str, value: &str| Table { sort_key: Some((name.to_owned(), value.to_owned())), ..Table::new("locks") };
    let bad = [
        ("key", Acquire { key: String::new(), ..acquire() }),
        ("key", Acquire { key: "k".repeat(2049), ..acquire() }),
        ("key", Acquire { key: "k#state".to_owned(), ..acquire() }),
        ("table.name", Acquire { table: Table::new(""), ..acquire() }),
        (
            "table.key_attribute",
            Acquire { table: Table { key_attribute: String::new(), ..Table::new("locks") }, ..acquire() },
        ),
        ("table.sort_key", Acquire { table: sorted("", "x"), ..acquire() }),
        ("table.sort_key", Acquire { table: sorted("sk", ""), ..acquire() }),
        ("table.format", Acquire { table: Table { format: "java/1".to_owned(), ..Table::new("locks") }, ..acquire() }),
        ("table.format", Acquire { table: sorted("sk", "x").speaking(Format::PydynoxV1), ..acquire() }),
        ("state_retention_ms", Acquire { state_retention_ms: Some(0), ..acquire() }),
        ("attributes", Acquire { attributes: [("owner".to_owned(), "me".to_owned())].into(), ..acquire() }),
        (
            "attributes",
            Acquire {
                attributes: [("team".to_owned(), "a".to_owned())].into(),
                table: Table::new("locks").speaking(Format::PydynoxV1),
                ..acquire()
            },
        ),
        ("lease_ms", Acquire { lease_ms: 499, ..acquire() }),
        ("lease_ms", Acquire { lease_ms: u64::MAX, ..acquire() }),
        ("max_hold_ms", Acquire { max_hold_ms: 0, ..acquire() }),
        ("max_silence_ms", Acquire { max_silence_ms: Some(0), ..acquire() }),
        ("polling", Acquire { polling: Some(PollingMs { first: 0, max: 10 }), ..acquire() }),
        ("polling", Acquire { polling: Some(PollingMs { first: 20, max: 10 }), ..acquire() }),
        ("polling", Acquire { polling: Some(PollingMs { first: 20, max: u64::MAX }), ..acquire() }),
    ];
    for (field, acquire) in bad {
        let message = Terms::read(acquire, &invocation(None, false), now()).unwrap_err();
        assert!(message.contains(&format!("`{field}`")), "{message}");
    }
}

#[test]
fn the_largest_numbers_are_served_without_overflow() {
    let most = u64::MAX;
    let asked = Acquire {
        wait_ms: most,
        answer_within_ms: Some(most),
        max_hold_ms: most,
        max_silence_ms: Some(most),
        lease_ms: 86_400_000,
        ..acquire()
    };
    let terms = Terms::read(asked, &invocation(Some(most), false), now()).unwrap();
    assert_eq!(terms.settings.lease, Settings::MAX_LEASE);
}
