//! `free`: only what was looked at is freed.

use std::time::Duration;

use leasehold::protocol::{Format, Row, Version};
use leasehold_sandbox::faults::{Fault, FaultProxy};

use crate::stage::{LONG, Ran, Stage, program};

const LEASE: Duration = Duration::from_secs(30);

async fn row(stage: &Stage, key: &str) -> Row {
    stage.store.look(&stage.table, key, LONG).await.unwrap().found.row
}

#[tokio::test]
async fn a_lock_is_freed_at_the_version_that_was_seen_and_keeps_its_token() {
    for format in Format::ALL {
        let stage = Stage::speaking(format).await;
        let held = stage.take("orders:1", LEASE).await;
        let ran = stage.run(&["free", "orders:1", "--if-version", &held.version.to_string()]).ended(0);
        ran.says(&["orders:1: freed", "with its next renewal, within about 10s", "two may work on the key"]);
        match (row(&stage, "orders:1").await, held.version) {
            (Row::Free { version, .. }, Version::Counter(counter)) => {
                assert_eq!(version, counter);
                assert!(stage.rows().await[0].contains_key("ttl"), "{:?}", stage.rows().await);
            }
            (Row::Absent, Version::Opaque(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn another_version_frees_nothing() {
    for format in Format::ALL {
        let stage = Stage::speaking(format).await;
        let mut held = stage.take("orders:1", LEASE).await;
        let old = held.version.to_string();
        stage.renew("orders:1", &mut held).await;
        let before = stage.rows().await;
        for version in [old.as_str(), "1", "", "0a1b2c3d-0000-4000-8000-0123456789ab"] {
            let ran = stage.run(&["free", "orders:1", "--if-version", version, "--json"]).ended(1);
            let told = ran.json();
            assert_eq!((&told["freed"], &told["version"]), (&false.into(), &held.version.to_string().into()));
            assert_eq!(stage.rows().await, before);
        }
    }
}

#[tokio::test]
async fn why_a_version_frees_nothing_is_told_by_what_it_is() {
    let stage = Stage::new().await;
    let mut held = stage.take("orders:1", LEASE).await;
    let old = held.version.to_string();
    stage.renew("orders:1", &mut held).await;
    for (version, says) in [
        (old.as_str(), "it was renewed, so its holder is alive"),
        ("9000000000000000000", "and never was at 9000000000000000000: is this the key, the table"),
        ("abc", "\"abc\" is no version of this format"),
    ] {
        stage.run(&["free", "orders:1", "--if-version", version]).ended(1).says(&["nothing was freed", says]);
    }
}

#[tokio::test]
async fn keys_that_no_lock_can_have_are_no_questions_for_dynamodb() {
    let stage = Stage::new().await;
    let long = "k".repeat(2_049);
    for (key, says) in [("", "the key is empty"), (long.as_str(), "2049 bytes")] {
        for command in [vec!["free", key, "--if-version", "1"], vec!["show", key]] {
            let ran = stage.run(&command).ended(2);
            assert!(ran.err.contains(says), "{}", ran.err);
        }
    }
}

#[tokio::test]
async fn what_nobody_holds_can_not_be_freed() {
    let stage = Stage::new().await;
    stage.run(&["free", "orders:1", "--if-version", "1"]).ended(1).says(&["nothing was freed", "there is no row"]);
    let held = stage.take("orders:1", LEASE).await;
    stage.release("orders:1", &held).await;
    let version = held.version.to_string();
    stage.run(&["free", "orders:1", "--if-version", &version]).ended(1).says(&["nobody holds it"]);
}

/// The row changes between the program's look and its write: the write itself is conditional.
#[tokio::test]
async fn a_renewal_and_a_takeover_that_come_between_look_and_write_are_respected() {
    for format in Format::ALL {
        for takeover in [false, true] {
            let stage = Stage::speaking(format).await;
            let mut held = stage.take("orders:1", LEASE).await;
            let proxy = FaultProxy::start(stage.dynamodb.url()).unwrap();
            let write = proxy.inject_where(1, |passing| (passing.operation != "GetItem").then_some(Fault::HoldRequest));
            let version = held.version.to_string();
            let lock = ["free", "orders:1", "--if-version", &version, "--table", "locks", "--format", format.name()];
            let mut command = program(&[&lock[..], &["--endpoint-url", proxy.url()]].concat());
            let child = tokio::task::spawn_blocking(move || command.output().unwrap());
            write.reached(LONG).await.unwrap();
            if takeover {
                held = stage.take_over("orders:1", &held, LEASE).await;
            } else {
                stage.renew("orders:1", &mut held).await;
            }
            write.open();
            Ran::of(child.await.unwrap()).ended(1).says(&["nothing was freed", &held.version.to_string()]);
            assert!(matches!(row(&stage, "orders:1").await, Row::Held(row) if row.version == held.version));
        }
    }
}

/// What the holder's next renewal meets.
#[tokio::test]
async fn a_holder_that_goes_on_finds_its_row_freed() {
    let stage = Stage::new().await;
    let held = stage.take("orders:1", LEASE).await;
    stage.run(&["free", "orders:1", "--if-version", &held.version.to_string()]).ended(0);
    let next = stage.take("orders:1", LEASE).await;
    assert!(next.version > held.version, "the next token is higher");
    assert_ne!(next.owner, held.owner);
}
