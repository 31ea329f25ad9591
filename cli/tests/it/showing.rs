//! `show`: every state of a row, and what a second look tells.

use std::time::Duration;

use leasehold::protocol::Format;

use crate::stage::{Ran, Stage, program, s};

const LEASE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn free_absent_held_and_foreign_rows_are_explained() {
    let stage = Stage::new().await;
    stage.run(&["show", "orders:1"]).ended(0).says(&["there is no row"]);
    let held = stage.take("orders:1", LEASE).await;
    let version = held.version.to_string();
    let ran = stage.run(&["show", "orders:1", "--once"]).ended(0);
    let free = format!("leaseholdctl free orders:1 --if-version {version} --table locks");
    ran.says(&[
        "ship-orders (version 7)",
        "c0ffee-1",
        "orders:{detail.orderId}",
        "2023-11-14T22:13:20Z",
        "renewal is due every 10s",
        &free,
    ]);
    stage.release("orders:1", &held).await;
    stage.run(&["show", "orders:1"]).ended(0).says(&["nobody holds it", &version]);
    stage.put(&[("key", s("theirs")), ("lock_owner", s("somebody"))]).await;
    let told = stage.run(&["show", "theirs", "--json"]).ended(1).json();
    assert_eq!((&told["state"], &told["attributes"]["lock_owner"]), (&"foreign".into(), &"S  somebody".into()));
    assert!(told["problem"].as_str().unwrap().contains("it has no attribute `format`"), "{told:#}");
}

/// Runs `show` beside what happens to the row once its first look is over, by the second look's coming.
async fn watched(stage: &Stage, key: &str, happens: impl AsyncFnOnce(&Stage)) -> Ran {
    // The program's own requests tell how far it is; nothing else reads this row.
    let proxy = leasehold_sandbox::faults::FaultProxy::start(stage.dynamodb.url()).unwrap();
    let second = proxy.inject_where(2, |passing| {
        (passing.operation == "GetItem").then_some(leasehold_sandbox::faults::Fault::HoldReply)
    });
    let arguments = ["show", key, "--table", "locks", "--json", "--watch-for", "60s", "--endpoint-url", proxy.url()];
    let mut command = program(&[&arguments[..], &["--format", &stage.table.format]].concat());
    let child = tokio::task::spawn_blocking(move || command.output().unwrap());
    second.reached(crate::stage::LONG).await.unwrap();
    happens(stage).await;
    second.open();
    Ran::of(child.await.unwrap())
}

#[tokio::test]
async fn a_renewal_is_told_by_two_looks() {
    for format in Format::ALL {
        let stage = Stage::speaking(format).await;
        let mut held = stage.take("orders:1", LEASE).await;
        let ran = watched(&stage, "orders:1", async |stage| stage.renew("orders:1", &mut held).await).await;
        let told = ran.ended(0).json();
        assert_eq!(told["observed"]["came"], "renewed", "{told:#}");
        assert!(told["observed"]["renewed_within_ms"].is_u64(), "{told:#}");
    }
}

#[tokio::test]
async fn a_lock_that_passes_on_or_is_given_back_meanwhile_is_told() {
    let stage = Stage::new().await;
    let held = stage.take("orders:1", LEASE).await;
    let ran = watched(&stage, "orders:1", async |stage| {
        stage.take_over("orders:1", &held, LEASE).await;
    })
    .await;
    assert_eq!(ran.ended(0).json()["observed"]["came"], "handed_on");
    let held = stage.take("orders:2", LEASE).await;
    let ran = watched(&stage, "orders:2", async |stage| stage.release("orders:2", &held).await).await;
    assert_eq!(ran.ended(0).json()["observed"]["came"], "given_back");
}

#[tokio::test]
async fn a_holder_that_does_not_renew_is_told_as_what_that_may_mean() {
    let stage = Stage::new().await;
    stage.take("orders:1", Duration::from_millis(600)).await;
    let ran = stage.run(&["show", "orders:1"]).ended(0);
    ran.says(&["though one is due every 200ms", "gone or frozen, or its deadline comes before"]);
    stage.take("orders:2", LEASE).await;
    let ran = stage.run(&["show", "orders:2", "--watch-for", "1s"]).ended(0);
    assert!(ran.out.contains("one is due every 10s") && !ran.out.contains("gone or frozen"), "{}", ran.out);
}

#[tokio::test]
async fn a_key_that_is_only_kept_is_not_told_as_one_whose_holder_is_gone() {
    let stage = Stage::new().await;
    let held = stage.take("nightly:1", LEASE).await;
    let parked = stage.park("nightly:1", &held, Duration::from_secs(600)).await;
    let ran = stage.run(&["show", "nightly:1", "--watch-for", "1s"]).ended(0);
    let ran = ran.says(&["its work is done; `hold_at_least` keeps the key", "nobody holds it any more"]);
    assert!(!ran.out.contains("gone or frozen"), "{}", ran.out);
    assert_eq!(stage.run(&["show", "nightly:1", "--once", "--json"]).ended(0).json()["parked"], true);
    let freed = stage.run(&["free", "nightly:1", "--if-version", &parked.version.to_string()]).ended(0);
    freed.says(&["nightly:1: freed", "nobody worked under it any more"]);
}
