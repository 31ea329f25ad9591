//! A wall clock that is set back or forth while a lease is held or waited for. The extension's clock, and no other, is read
//! with an offset here; the extension that ships has no such clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    next::Cause,
    stage::{Row, Stage, program, with_extension},
    steps::{FIRST, Step, event},
};

const LEASE: Duration = Duration::from_secs(3);
const HOUR_MS: i64 = 3_600_000;
/// The name of the file that sets a skewed clock.
const FILE: &str = "wall-offset-ms";

async fn skewed() -> Stage {
    Stage::warm(with_extension("staged", "skewed-extension", LEASE).await).await
}

/// Sets this environment's wall clock.
fn set(stage: &Stage, environment: usize, offset_ms: i64) {
    let file = stage.environment(environment).tmp().unwrap().join(FILE);
    // In one step: half a number would be another one.
    let new = file.with_extension("new");
    std::fs::write(&new, offset_ms.to_string()).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[tokio::test]
async fn the_extension_that_ships_has_no_such_clock() {
    let knows_the_file = async |name: &str| {
        let bytes = std::fs::read(program(name).await).unwrap();
        bytes.windows(FILE.len()).any(|window| window == FILE.as_bytes())
    };
    assert!(knows_the_file("skewed-extension").await);
    assert!(!knows_the_file("leasehold").await);
}

fn now_us() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[tokio::test]
async fn a_holder_whose_clock_is_set_back_keeps_its_lease() {
    let stage = skewed().await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    let Row::Held { owner } = stage.row().await else { panic!("{}", stage.timeline()) };
    let second = stage.environment(1).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    set(&stage, 0, -HOUR_MS);
    tokio::time::sleep(2 * LEASE).await;
    assert!(stage.has_said("acquired", &second_id).is_none(), "{}", stage.timeline());
    stage.open(0, FIRST, "work");
    stage.open(1, "second", "work");
    assert!(first.outcome().await.is_success(), "{}", stage.timeline());
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    Cause::Freed("finished").check(&stage, &id, Some(&owner), &second_id, LEASE).await;
}

#[tokio::test]
async fn a_holder_whose_clock_is_set_forth_stops_believing_before_anybody_takes_over() {
    let stage = skewed().await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    let Row::Held { owner } = stage.row().await else { panic!("{}", stage.timeline()) };
    let second = stage.environment(1).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    set(&stage, 0, HOUR_MS);
    stage.open(1, "second", "work");
    assert_eq!(first.outcome().await.error_type(), Some("LeaseLost"), "{}", stage.timeline());
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    let lost = stage.said_at("lost", &id).await;
    assert!(lost <= stage.said_at("acquired", &second_id).await, "{}", stage.timeline());
    Cause::Freed("finished").check(&stage, &id, Some(&owner), &second_id, LEASE).await;
}

#[tokio::test]
async fn a_contender_whose_clock_is_set_forth_takes_over_no_earlier() {
    let stage = skewed().await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    stage.environment(0).freeze().await.unwrap();
    let second = stage.environment(1).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    set(&stage, 1, HOUR_MS);
    stage.open(1, "second", "work");
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    Cause::Observed.check(&stage, &id, None, &second_id, LEASE).await;
    stage.environment(0).thaw().await.unwrap();
    assert_eq!(first.outcome().await.error_type(), Some("LeaseLost"), "{}", stage.timeline());
}

#[tokio::test]
async fn a_contender_whose_clock_is_set_back_watches_for_a_whole_lease_again() {
    let stage = skewed().await;
    let first = stage.reach(Step::Running).await.first;
    let id = first.request_id().to_owned();
    stage.environment(0).freeze().await.unwrap();
    let second = stage.environment(1).start_invocation(event("second"));
    let second_id = second.request_id().to_owned();
    stage.said("waiting", &second_id).await;
    tokio::time::sleep(LEASE / 3).await;
    let stepped = now_us();
    set(&stage, 1, -HOUR_MS);
    stage.open(1, "second", "work");
    assert!(second.outcome().await.is_success(), "{}", stage.timeline());
    Cause::Observed.check(&stage, &id, None, &second_id, LEASE).await;
    let after = Duration::from_micros(stage.said_at("acquired", &second_id).await.saturating_sub(stepped));
    assert!(after >= LEASE, "taken {after:?} after the step\n{}", stage.timeline());
    stage.environment(0).thaw().await.unwrap();
    assert_eq!(first.outcome().await.error_type(), Some("LeaseLost"), "{}", stage.timeline());
}
