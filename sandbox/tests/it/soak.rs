//! The soak, shortened: it holds, and its witness notices functions that break the lock on purpose.

use leasehold_sandbox::soak::{self, Broken, Figures, Plan};

use crate::*;

async fn run(directory: &tempfile::TempDir, change: impl FnOnce(&mut Plan)) -> Figures {
    let mut plan = Plan {
        environments: 6,
        jobs: 6,
        keys: 2,
        lease: Duration::from_millis(500),
        // What is broken on purpose ends a soak long before this.
        duration: Some(LONG * 5),
        invocations: None,
        seed: 1,
        request_faults: 5.0,
        process_faults: 5.0,
        fronts: 10.0,
        broken: None,
        logs: directory.path().join("logs"),
    };
    change(&mut plan);
    soak::run(&plan, &soak::build().await.unwrap(), &mut |_| {}).await.unwrap()
}

fn overlaps(figures: &Figures) -> usize {
    figures.breaks.iter().filter(|broken| broken.invariant == "one holder at a time").count()
}

#[tokio::test]
async fn a_short_soak_breaks_nothing_and_its_figures_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let figures = run(&directory, |plan| plan.invocations = Some(300)).await;
    assert_eq!(figures.breaks, [], "{figures}");
    assert_eq!(figures.ended(), 300, "{figures}");
    assert!(figures.faults() > 0 && figures.process_faults.values().sum::<u64>() > 0, "{figures}");
    // Every success, and every key in the quiet at the end, was witnessed.
    assert!(figures.claims >= figures.invocations["ok"] + 2, "{figures}");
    let table = figures.to_string();
    assert!(table.contains("| invariant breaks "), "{table}");
    assert_eq!(figures.to_json()["ended"], 300);
    // Whatever was killed: the keepers' own lines add up, which is one of the invariants. What a killed one had not told
    // yet is missing from them.
    let metrics = &figures.metrics;
    assert!(metrics.keepers >= 6 && (1..=figures.granted).contains(&metrics.of("Acquired")), "{figures}");
}

#[tokio::test]
async fn the_metrics_add_up_and_tell_of_every_request_that_the_proxy_saw() {
    let directory = tempfile::tempdir().unwrap();
    let nothing_is_killed = |plan: &mut Plan| {
        plan.invocations = Some(200);
        plan.process_faults = 0.0;
        plan.fronts = 0.0;
    };
    let figures = run(&directory, nothing_is_killed).await;
    assert_eq!(figures.breaks, [], "{figures}");
    let of = |name: &str| figures.metrics.of(name);
    assert!(figures.faults() > 0 && of("Contended") > 0 && of("AttemptsUnknown") > 0, "{figures}");
    assert_eq!((of("StillHeld"), of("AttemptsPending")), (0, 0), "{figures}");
    // The keys that the quiet takes once more are among them.
    assert_eq!(of("Acquired"), figures.granted, "{figures}");
    assert_eq!(of("Takeovers"), figures.takeovers, "{figures}");
    assert_eq!(of("Lost"), figures.losses(), "{figures}");
    assert_eq!(of("Acquired"), of("Released") + of("Lost") + of("CrashReleases"), "{figures}");
}

#[tokio::test]
async fn work_without_the_lock_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let figures = run(&directory, |plan| plan.broken = Some(Broken::Unlocked)).await;
    assert!(overlaps(&figures) > 0, "{figures}");
}

#[tokio::test]
async fn work_beyond_a_lost_lease_is_noticed_by_the_next_holders_claim() {
    let directory = tempfile::tempdir().unwrap();
    let overstay = |plan: &mut Plan| {
        plan.broken = Some(Broken::Overstay);
        plan.process_faults = 40.0;
    };
    let figures = run(&directory, overstay).await;
    assert!(overlaps(&figures) > 0, "{figures}");
    let key = figures.breaks[0].key.clone().unwrap();
    assert!(soak::story(&directory.path().join("logs"), &key).unwrap().len() > 1);
}
