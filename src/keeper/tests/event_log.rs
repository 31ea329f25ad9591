//! The log tells a lease's life by one line an event.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::support::{SECOND, World, acquire};
use crate::protocol::Row;
use crate::session::{Acquire, OnCrash, ReleaseReason};

thread_local! {
    /// What this thread logged, if it cares.
    static LINES: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to the lines of the thread that logs.
struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.as_mut().map(|lines| lines.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of this thread's test. There is one subscriber for all threads: those that come and go with a test leave
/// stale interest behind in the others' callsites.
struct Lines;

impl Lines {
    fn collect() -> Self {
        static SUBSCRIBED: Once = Once::new();
        SUBSCRIBED.call_once(|| {
            let subscriber = tracing_subscriber::fmt().json().with_writer(|| ThisThread).finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        LINES.set(Some(Vec::new()));
        Self
    }

    /// The fields of each event about this key.
    fn about(&self, key: &str) -> Vec<Value> {
        let bytes = LINES.with_borrow(Clone::clone).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        events
            .filter(|event| event["target"] == "leasehold::keeper")
            .map(|event| event["fields"].clone())
            .filter(|fields| fields["key"] == key)
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn acquired_busy_and_released_carry_what_an_observer_asks_for() {
    let lines = Lines::collect();
    let world = World::new();
    let elsewhere = world.elsewhere();
    let (mut one, mut two) = (world.begin().await, elsewhere.begin().await);
    let grant = one.take(1, "a").await;
    two.acquire(Acquire { wait_ms: 0, ..acquire(1, "a") }).await;
    two.receive().await;
    sleep(SECOND).await;
    one.vanish().await;
    world.all_ended().await;

    let (owner, token) = (grant.owner.to_string(), grant.token);
    let told = lines.about("a");
    let trail = told[1]["trail"].as_str().unwrap();
    assert!(trail.ends_with(&format!("; 5 ms attempt: refused, held by {}", &owner[..8])), "{trail}");
    assert_eq!(
        told,
        [
            json!({
                "message": "acquired", "table": "locks", "key": "a", "request_id": "r-1", "owner": owner, "token": token,
                "waited_ms": 5, "queued_ms": 0, "attempts": 1, "took_over": false,
            }),
            json!({
                "message": "busy", "table": "locks", "key": "a", "request_id": "r-1", "holder": "orders (request r-1)",
                "waited_ms": 5, "attempts": 1, "trail": trail,
            }),
            json!({
                "message": "released", "table": "locks", "key": "a", "request_id": "r-1", "owner": owner, "token": token,
                "held_ms": 1010, "reason": "crash",
            }),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_way_to_the_end_is_told_by_its_name() {
    let lines = Lines::collect();
    let world = World::new();
    let mut client = world.begin().await;
    client.take(1, "finished").await;
    client.release(1, ReleaseReason::Finished, true).await;
    client.receive().await;
    client.take(2, "lost").await;
    world.store.put("lost", Row::Absent);
    sleep(30 * SECOND).await;
    client.acquire(Acquire { on_crash: OnCrash::Expire, ..acquire(3, "expires") }).await;
    sleep(SECOND).await;
    client.vanish().await;
    world.all_ended().await;
    sleep(30 * SECOND).await;
    let mut next = world.begin().await;
    next.acquire(Acquire { wait_ms: 60_000, ..acquire(4, "expires") }).await;
    assert!(next.granted(4).await.waited_ms > 0);
    world.keeper.drain(SECOND).await;

    let told = |key: &str| -> Vec<_> {
        lines.about(key).iter().map(|event| (event["message"].to_string(), event["reason"].to_string())).collect()
    };
    let pair = |message: &str, reason: &str| (format!("{message:?}"), format!("{reason:?}"));
    let acquired = || ("\"acquired\"".to_owned(), "null".to_owned());
    assert_eq!(told("finished"), [acquired(), pair("released", "finished")]);
    assert_eq!(told("lost"), [acquired(), pair("lost", "the row was deleted")]);
    assert_eq!(
        told("expires"),
        [
            acquired(),
            pair("left to expire", "crash"),
            ("\"waiting\"".to_owned(), "null".to_owned()),
            acquired(),
            pair("released", "shutdown"),
        ]
    );
    assert_eq!(lines.about("expires")[3]["took_over"], true);
}

#[tokio::test(start_paused = true)]
async fn a_refused_and_a_lost_lease_tell_their_last_steps_in_one_line() {
    let lines = Lines::collect();
    let world = World::new();
    let mut client = world.begin().await;
    let grant = client.take(1, "stepped").await;
    let elsewhere = world.elsewhere();
    let mut second = elsewhere.begin().await;
    second.acquire(Acquire { wait_ms: 80, ..acquire(1, "stepped") }).await;
    second.receive().await;
    world.store.put("stepped", Row::Absent);
    sleep(30 * SECOND).await;

    let told = lines.about("stepped");
    let trail = |message: &str| {
        let line = told.iter().find(|line| line["message"] == message).unwrap();
        line["trail"].as_str().unwrap().to_owned()
    };
    let holder = &grant.owner.to_string()[..8];
    let busy = trail("busy");
    assert!(busy.starts_with("0 ms acquire as "), "{busy}");
    assert!(busy.contains(&format!("; 5 ms attempt: refused, held by {holder}; ")), "{busy}");
    assert!(busy.contains(" ms look; ") && busy.contains(&format!(" ms look: held by {holder}")), "{busy}");
    let lost = trail("lost");
    let end = "5 ms attempt: written; 5 ms granted; 10000 ms renew; 10005 ms renew: refused, free; 10005 ms at risk";
    assert!(lost.ends_with(end), "{lost}");
}
