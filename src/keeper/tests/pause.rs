//! A pause of the whole process: every timer has fired when it goes on, and what came meanwhile lies unread.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{advance, sleep};
use tokio_test::{assert_pending, assert_ready_eq};

use super::support::TestClock;
use crate::keeper::tally::Tally;
use crate::keeper::wire::Wire;
use crate::protocol::{Answer, HolderInfo, Outcome, Request, Version};
use crate::session::Table;
use crate::store::{Lock, Store};

const LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(60);

/// A store whose answer is found where it is looked for once more after its timer.
#[derive(Debug)]
struct LastLook;

impl Store for LastLook {
    async fn send(&self, _: &Lock, _: Request, limit: Duration) -> Answer {
        sleep(limit).await;
        sleep(Duration::from_millis(10)).await;
        Answer::new(Outcome::written(Version::Counter(7)), None)
    }

    async fn warm_up(&self) {}

    fn drop_connections(&self) {}
}

fn wire() -> Wire {
    Wire::new(Box::new(LastLook), Arc::new(TestClock::new()), Arc::new(Tally::default()))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_there_before_the_end_of_the_pause_counts() {
    let wire = wire();
    let lock = Lock {
        table: Table::new("locks"),
        key: "a".to_owned(),
        holder: HolderInfo::default(),
        attributes: Default::default(),
    };
    let mut sending =
        tokio_test::task::spawn(wire.send(&lock, Request::Read, LIMIT, None, None, std::future::pending()));
    assert_pending!(sending.poll());
    advance(PAUSE).await;
    assert_eq!(sending.await.outcome, Outcome::written(Version::Counter(7)));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_answered_before_the_end_of_the_pause_is_not_given_up() {
    let wire = wire();
    let mut flight = wire.owe();
    flight.take_off();
    let mut quiescing = tokio_test::task::spawn(wire.quiesce(LIMIT));
    assert_pending!(quiescing.poll());
    advance(PAUSE).await;
    assert_pending!(quiescing.poll(), "given up before the answer could be read");
    drop(flight);
    assert_ready_eq!(quiescing.poll(), 0);
}
