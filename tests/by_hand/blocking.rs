//! Leases of programs without a runtime.

use leasehold::session::ReleaseReason;
use leasehold::testing::{Happened, TestKeeper};

use super::{WAIT, by_hand};

#[test]
fn a_program_without_a_runtime_takes_and_gives_back() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let lease = locks.acquire_blocking("imports", WAIT).unwrap();
    lease.ensure_held().unwrap();
    assert!(lease.token().is_some());
    assert_eq!(lease.metrics().unwrap().attempts, 1);
    assert!(locks.inspect_blocking("imports").unwrap().is_held());
    lease.release().unwrap();
    assert!(!keeper.is_held("imports"));
    drop(locks.try_acquire_blocking("imports").unwrap().unwrap());
    assert!(!keeper.is_held("imports"));
    keeper.hold_elsewhere("imports");
    assert!(locks.try_acquire_blocking("imports").unwrap().is_none());
    assert_eq!(locks.acquire_blocking("imports", WAIT).unwrap_err().error_type(), "LeaseBusy");
}

#[test]
fn a_blocking_lease_that_is_lost_says_so_and_its_release_is_no_error() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire_blocking("imports", WAIT).unwrap();
    keeper.lose("imports");
    assert_eq!(lease.ensure_held().unwrap_err().error_type(), "LeaseLost");
    lease.release().unwrap();
}

#[test]
fn a_panic_under_a_blocking_lease_is_a_crash() {
    let keeper = TestKeeper::new();
    let lease = by_hand(&keeper).acquire_blocking("imports", WAIT).unwrap();
    let panicked = std::thread::spawn(move || {
        let _lease = lease;
        panic!("on purpose");
    });
    panicked.join().unwrap_err();
    let released = Happened::Released { key: "imports".to_owned(), reason: ReleaseReason::Dropped };
    assert!(keeper.happened().contains(&released));
}

/// A lease that blocking code took may come into a runtime, and go there.
#[test]
fn blocking_calls_within_a_runtime_are_refused_and_drops_are_not() {
    let keeper = TestKeeper::new();
    let locks = by_hand(&keeper);
    let (dropped, released) = (locks.acquire_blocking("a", WAIT).unwrap(), locks.acquire_blocking("b", WAIT).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let errors = [
            locks.acquire_blocking("imports", WAIT).unwrap_err(),
            locks.try_acquire_blocking("imports").unwrap_err(),
            locks.inspect_blocking("imports").unwrap_err(),
            dropped.metrics().unwrap_err(),
        ];
        let instead = ["`acquire`", "`try_acquire`", "`inspect`", "`Lease::metrics`"];
        for (error, instead) in errors.into_iter().zip(instead) {
            assert_eq!(error.error_type(), "BlockingInAsync");
            assert!(error.to_string().contains(&format!("await {instead} there")), "{error}");
        }
        drop(dropped);
        released.release().unwrap();
    });
    assert!(!keeper.is_held("a") && !keeper.is_held("b"));
    let asked = keeper.happened().into_iter().filter(|happened| matches!(happened, Happened::Asked { .. })).count();
    assert_eq!(asked, 2, "nothing was asked for within the runtime");
}
