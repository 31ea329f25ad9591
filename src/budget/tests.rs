//! Every case of the budget's arithmetic, and what must hold for any.

use std::time::Duration;

use proptest::prelude::*;

use super::{Budget, DEFAULT_MAX_WAIT, Deadline, DeadlineTooClose};
use crate::clock::{Mono, Now, Wall};

const NOW: Now = Now { mono: Mono::from_origin(ms(5_000)), wall: Wall::from_millis(1_800_000_000_000) };

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn in_ms(n: u64) -> Deadline {
    Deadline::Known(NOW.wall + ms(n))
}

#[test]
fn a_deadline_before_2020_is_unknown() {
    for unknown in [0, 1, 86_400_000, 1_577_836_799_999] {
        assert_eq!(Deadline::from_epoch_ms(unknown), Deadline::Unknown);
    }
    for known in [1_577_836_800_000, 1_800_000_000_000, u64::MAX] {
        assert_eq!(Deadline::from_epoch_ms(known), Deadline::Known(Wall::from_millis(known)));
    }
}

#[test]
fn the_wait_is_what_the_reserve_leaves_and_max_wait_at_most() {
    for (remaining, reserve, max_wait, stop, latest) in [
        // max_wait is the smaller
        (30_000, Some(5_000), 2_000, 2_000, 25_000),
        // what the reserve leaves is
        (6_000, Some(5_000), 2_000, 1_000, 1_000),
        // both the same
        (7_000, Some(5_000), 2_000, 2_000, 2_000),
        // nothing reserved
        (50, Some(0), 2_000, 50, 50),
        (1, Some(0), 2_000, 1, 1),
        // one attempt, whose answer still counts until latest
        (30_000, Some(5_000), 0, 0, 25_000),
        // 80 % by default
        (10_000, None, 2_000, 2_000, 2_000),
        (30_000, None, 2_000, 2_000, 6_000),
        (50, None, 2_000, 10, 10),
        (5, None, 2_000, 1, 1),
    ] {
        let budget = Budget::plan(NOW, in_ms(remaining), reserve.map(ms), ms(max_wait));
        let kept = ms(reserve.unwrap_or(remaining / 5 * 4));
        let expected = Budget {
            stop: NOW.mono + ms(stop),
            latest: Some(NOW.mono + ms(latest)),
            reserve: Some(kept),
            reserve_defaulted: reserve.is_none(),
        };
        assert_eq!(budget, Ok(expected), "{remaining} {reserve:?} {max_wait}");
    }
}

#[test]
fn the_default_reserve_leaves_a_fifth_even_of_a_millisecond() {
    let budget = Budget::plan(NOW, in_ms(1), None, DEFAULT_MAX_WAIT);
    assert_eq!(budget.map(|budget| budget.wait(NOW)), Ok(Duration::from_micros(200)));
}

#[test]
fn a_deadline_within_the_reserve_is_too_close() {
    for (remaining, reserve) in
        [(0, None), (0, Some(0)), (5_000, Some(5_000)), (4_999, Some(5_000)), (1, Some(u64::MAX))]
    {
        let error = DeadlineTooClose::new(ms(remaining), ms(reserve.unwrap_or(0)));
        for max_wait in [Duration::ZERO, DEFAULT_MAX_WAIT, Duration::MAX] {
            assert_eq!(Budget::plan(NOW, in_ms(remaining), reserve.map(ms), max_wait), Err(error));
        }
    }
    let past = Deadline::Known(NOW.wall - ms(1));
    let error = DeadlineTooClose::new(Duration::ZERO, ms(7));
    assert_eq!(Budget::plan(NOW, past, Some(ms(7)), DEFAULT_MAX_WAIT), Err(error));
    assert!(error.to_string().contains("raise the function's timeout or lower the reserve"), "{error}");
}

#[test]
fn a_reserve_that_no_invocation_can_have_is_told_apart_from_one_that_came_late() {
    let error = DeadlineTooClose::new(ms(2_999), ms(5_000));
    let every = error.of_invocations_with(ms(3_000));
    assert!(every.is_of_every_invocation());
    let said = every.to_string();
    assert!(said.contains("the reserve of 5s is longer") && said.contains("3s were left when it began"), "{said}");
    let late = error.of_invocations_with(ms(30_000));
    assert!(!late.is_of_every_invocation() && !error.is_of_every_invocation());
    let said = late.to_string();
    assert!(said.contains("2.999s are left") && said.contains("up to 30s, so this one came late"), "{said}");
}

#[test]
fn without_a_deadline_only_max_wait_bounds() {
    for (reserve, max_wait) in [(None, 2_000), (Some(5_000), 2_000), (None, 0)] {
        let budget = Budget::plan(NOW, Deadline::Unknown, reserve.map(ms), ms(max_wait));
        let expected = Budget { stop: NOW.mono + ms(max_wait), latest: None, reserve: None, reserve_defaulted: false };
        assert_eq!(budget, Ok(expected));
    }
}

#[test]
fn a_wall_clock_stepped_later_changes_nothing() {
    let plan = |wall| {
        let budget = Budget::plan(NOW, in_ms(6_000), Some(ms(5_000)), ms(2_000));
        let later = Now { mono: NOW.mono + ms(300), wall };
        budget.map(|budget| (budget.wait(later), budget.answer_within(later)))
    };
    for wall in [Wall::default(), NOW.wall, NOW.wall + ms(900_000)] {
        assert_eq!(plan(wall), Ok((ms(700), Some(ms(700)))));
    }
}

#[test]
fn when_its_time_is_over_a_budget_has_none_left() {
    let budget = Budget::plan(NOW, in_ms(9_000), Some(ms(5_000)), ms(2_000));
    let left = |after| {
        let later = Now { mono: NOW.mono + ms(after), ..NOW };
        budget.map(|budget| (budget.wait(later), budget.answer_within(later)))
    };
    assert_eq!(left(2_000), Ok((Duration::ZERO, Some(ms(2_000)))));
    assert_eq!(left(60_000), Ok((Duration::ZERO, Some(Duration::ZERO))));
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0u64..20_000).prop_map(Duration::from_millis),
        (0u64..10).prop_map(Duration::from_nanos),
        any::<Duration>(),
    ]
}

proptest! {
    #[test]
    fn any_clock_and_setting_gives_a_budget_within_both_bounds(
        mono in duration(), wall in duration(), deadline in prop::option::of(duration()),
        reserve in prop::option::of(duration()), max_wait in duration(),
    ) {
        let now = Now { mono: Mono::from_origin(mono), wall: Wall::from_epoch(wall) };
        let deadline = deadline.map_or(Deadline::Unknown, |deadline| Deadline::Known(Wall::from_epoch(deadline)));
        match Budget::plan(now, deadline, reserve, max_wait) {
            Ok(budget) => {
                prop_assert!(budget.stop >= now.mono);
                prop_assert!(budget.wait(now) <= max_wait);
                prop_assert!(budget.latest.is_none_or(|latest| budget.stop <= latest));
                prop_assert_eq!(budget.latest.is_none(), deadline == Deadline::Unknown);
                if let (Some(within), Some(kept), Some(remaining)) =
                    (budget.answer_within(now), budget.reserve, deadline.remaining(now.wall))
                {
                    prop_assert!(kept < remaining && within <= remaining - kept);
                    prop_assert_eq!(kept, reserve.unwrap_or(kept));
                }
            }
            Err(error) => {
                prop_assert!(error.reserve >= error.remaining);
                prop_assert_eq!(Some(error.remaining), deadline.remaining(now.wall));
            }
        }
    }
}
