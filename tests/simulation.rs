//! The protocol in a hostile, simulated world: many seeds hold, and every broken rule is noticed.
//!
//! Made for `cargo test --release --features simulation --test simulation`, where a core runs some thousand seeds a
//! second; a debug build runs fewer seeds and leaves the mutants out.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::protocol::simulation::{Violation, replay, run};
use leasehold::protocol::{Format, Mutant};

const SEEDS: u64 = if cfg!(debug_assertions) { 1_000 } else { 20_000 };

/// The lowest of the seeds at which the simulation notices that something is wrong.
fn first_violation(format: Format, mutant: Option<Mutant>) -> Option<(u64, Violation)> {
    let next = AtomicU64::new(0);
    let lowest = AtomicU64::new(SEEDS);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= lowest.load(Ordering::Relaxed) {
                        break;
                    }
                    if run(seed, format, mutant).violation.is_some() {
                        lowest.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = lowest.into_inner();
    run(seed, format, mutant).violation.filter(|_| seed < SEEDS).map(|violation| (seed, violation))
}

/// What a mutant breaks; a rule may be needed for more than one thing.
fn breaks(mutant: Mutant, format: Format) -> &'static [Violation] {
    use Violation::{
        BelievedWithoutGrant, FreeRowNotTaken, HeldRowHasTtl, MinimumNotKept, NotRecovered, Restless, TokenFell,
        TwoHolders, VersionFell,
    };
    match mutant {
        // Two writes of one owner in the wrong order are seen on the row before any contender acts on it.
        Mutant::RenewalWithoutVersion | Mutant::ParkingWithoutVersion | Mutant::ReleaseDropsVersion => &[VersionFell],
        Mutant::OneOwnerForAllAttempts if format == Format::PydynoxV1 => &[VersionFell],
        Mutant::TtlLeftOnHeldRow => &[HeldRowHasTtl],
        Mutant::SeedZero | Mutant::LowSeedNotRaised => &[TokenFell],
        Mutant::LossRevived | Mutant::BelievedWhileParking => &[BelievedWithoutGrant],
        Mutant::ParkedUnderSameOwner
        | Mutant::MinimumByLargerClock
        | Mutant::ParkedForBareRest
        | Mutant::UnknownParkingTakenForDone => &[MinimumNotKept],
        // A row that is no lock's any more, and one that nobody may take.
        Mutant::TicketOnAnyRow => &[NotRecovered],
        // Whoever waits for its turn without end asks for the row without end.
        Mutant::AcquireInTurnOnly => &[NotRecovered, FreeRowNotTaken, Restless],
        Mutant::SleepsPastTakeover => &[NotRecovered, FreeRowNotTaken],
        Mutant::FreeRowLeftToOthers | Mutant::ServedRunsAhead => &[FreeRowNotTaken],
        // A lease granted when it was over already has a lower token than the one that was granted meanwhile.
        _ => &[TwoHolders, TokenFell],
    }
}

#[test]
fn the_invariants_hold() {
    for format in Format::ALL {
        if let Some((seed, violation)) = first_violation(format, None) {
            panic!("{format}, seed {seed}: {violation}\n{}", replay(seed, format, None).1);
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "too slow without optimisation: run with --release")]
fn every_broken_rule_is_noticed_for_what_it_breaks() {
    let mut amiss = Vec::new();
    let cases = Format::ALL.into_iter().flat_map(|format| Mutant::ALL.map(|mutant| (format, mutant)));
    for (format, mutant) in cases.filter(|(format, mutant)| mutant.applies_to(*format)) {
        match first_violation(format, Some(mutant)) {
            Some((_, violation)) if breaks(mutant, format).contains(&violation) => {}
            Some((seed, violation)) => amiss.push(format!("{format}, {mutant} at seed {seed}: {violation}")),
            None => amiss.push(format!("{format}, {mutant} is not noticed within {SEEDS} seeds")),
        }
    }
    assert!(amiss.is_empty(), "{}", amiss.join("\n"));
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for (seed, format) in (0..50).flat_map(|seed| Format::ALL.map(|format| (seed, format))) {
        let report = run(seed, format, None);
        assert_eq!(report, run(seed, format, None));
        assert_eq!(report, replay(seed, format, None).0);
    }
}

#[test]
fn the_world_is_hostile_enough_to_mean_something() {
    for format in Format::ALL {
        let mut total = leasehold::protocol::simulation::Report::default();
        for seed in 0..SEEDS / 5 {
            total.add(&run(seed, format, None));
        }
        for (what, count) in [
            ("grants", total.grants),
            ("refusals", total.refusals),
            ("takeovers", total.takeovers),
            ("rows parked", total.parked),
            ("tickets", if format.abilities().hints { total.tickets } else { u64::MAX }),
            ("losses", total.losses),
            ("freezes", total.freezes),
            ("environments vanished", total.vanished),
        ] {
            assert!(count > SEEDS / 100, "{format}: only {count} {what}");
        }
        // It takes a freeze between a write and its answer, which few runs have: as many are looked at as it takes.
        let again = (0..SEEDS).map(|seed| run(seed, format, None).contended_again);
        let wanted = SEEDS / 2_000 + 1;
        let seen = again
            .scan(0, |sum, again| {
                *sum += again;
                Some(*sum)
            })
            .find(|sum| *sum >= wanted);
        assert!(seen.is_some(), "{format}: not {wanted} contended again in {SEEDS} runs");
        // Where a release deletes the row there is none to sweep.
        assert_eq!(total.sweeps > 0, !format.abilities().release_deletes, "{format}");
    }
}
