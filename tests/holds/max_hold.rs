//! The longest hold, where no deadline ends the work.

use std::time::Duration;

use lambda_runtime::Context;
use leasehold::testing::TestKeeper;
use leasehold::{Error, Leasehold};

const MAX_HOLD: Duration = Duration::from_secs(60);

#[tokio::test]
async fn by_hand_it_ends_a_program_that_holds_on_but_not_an_invocation_with_a_deadline() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().max_hold(MAX_HOLD).reserve(Duration::from_secs(1)).test_keeper(&keeper);
    let locks = locks.build().unwrap();
    let mut context = Context::default();
    context.deadline = keeper.event_within((), Duration::from_secs(600)).context.deadline;
    let program = locks.acquire("imports:1", Duration::ZERO).await.unwrap();
    let invocation = locks.for_invocation(&context).acquire("imports:2", Duration::ZERO).await.unwrap();
    keeper.advance(MAX_HOLD - Duration::from_secs(1));
    program.ensure_held().unwrap();
    keeper.advance(Duration::from_secs(1));
    let Error::LeaseLost(lost) = program.ensure_held().unwrap_err() else { panic!() };
    assert!(lost.reason.contains("`max_hold`"), "{lost}");
    invocation.ensure_held().unwrap();
}

#[tokio::test]
async fn an_invocation_whose_deadline_is_not_known_ends_with_it_too() {
    let keeper = TestKeeper::new();
    let locks = Leasehold::builder().max_hold(MAX_HOLD).test_keeper(&keeper).build().unwrap();
    // Local emulators tell a deadline of 0, or one of 1970.
    for deadline in [0, 3_000] {
        let mut context = Context::default();
        context.deadline = deadline;
        let lease = locks.for_invocation(&context).acquire("imports:1", Duration::ZERO).await.unwrap();
        keeper.advance(MAX_HOLD);
        assert!(matches!(lease.ensure_held(), Err(Error::LeaseLost(_))), "{deadline}");
    }
}
