//! The log tells a lease's life by one line an event.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::support::{SECOND, World, acquire};
use crate::protocol::Row;
use crate::session::{Acquire, OnCrash, ReleaseReason};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Logs of this thread go here for as long as the guard lives.
    fn collect(&self) -> tracing::subscriber::DefaultGuard {
        let lines = self.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || lines.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The fields of each event about this key.
    fn about(&self, key: &str) -> Vec<Value> {
        let bytes = self.0.lock().unwrap();
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
    let lines = Lines::default();
    let _guard = lines.collect();
    let world = World::new();
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    let grant = one.take(1, "a").await;
    two.acquire(Acquire { wait_ms: 0, ..acquire(1, "a") }).await;
    two.receive().await;
    sleep(SECOND).await;
    one.vanish().await;
    world.all_ended().await;

    let (owner, token) = (grant.owner.to_string(), grant.token);
    assert_eq!(
        lines.about("a"),
        [
            json!({
                "message": "acquired", "table": "locks", "key": "a", "request_id": "r-1", "owner": owner, "token": token,
                "waited_ms": 5, "attempts": 1, "took_over": false,
            }),
            json!({
                "message": "busy", "table": "locks", "key": "a", "request_id": "r-1", "holder": "orders (request r-1)",
                "waited_ms": 5, "attempts": 1,
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
    let lines = Lines::default();
    let _guard = lines.collect();
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
        [acquired(), pair("left to expire", "crash"), acquired(), pair("released", "shutdown"),]
    );
    assert_eq!(lines.about("expires")[2]["took_over"], true);
}
