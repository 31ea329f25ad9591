//! Many sessions on several threads in real time, each ending in its own way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::memory_store::Fate;
use super::support::{SECOND, World, acquire};
use crate::protocol::{FailureKind, Request};
use crate::session::{Acquire, FromKeeper, ReleaseReason, ToKeeper};

const SESSIONS: u64 = 160;
const KEYS: u64 = 12;

/// Who works on which key now, and the highest token seen on it.
#[derive(Default)]
struct Work(Mutex<HashMap<u64, (bool, u64)>>);

impl Work {
    fn begin(&self, key: u64, token: u64) {
        let mut work = self.0.lock().unwrap();
        let (busy, highest) = work.entry(key).or_default();
        assert!(!std::mem::replace(busy, true), "two work on key {key}");
        assert!(token > *highest, "the token of key {key} fell");
        *highest = token;
    }

    fn end(&self, key: u64) {
        self.0.lock().unwrap().entry(key).or_default().0 = false;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn however_sessions_end_no_two_work_at_once_and_nothing_is_left_behind() {
    let world = Arc::new(World::new());
    let mut n = 0_u32;
    world.store.decide(move |_, request| {
        n += 1;
        match n % 13 {
            // A cleanup is sent a few times only: failing it could leave rows to their leases.
            _ if matches!(request, Request::Release { .. }) => Fate::USUAL,
            0 => Fate::failed(FailureKind::Throttled),
            5 => Fate { failed: Some(FailureKind::Connection), ..Fate::USUAL },
            _ => Fate { on_the_way: Duration::ZERO, on_the_way_back: Duration::from_millis(1), ..Fate::USUAL },
        }
    });
    let work = Arc::new(Work::default());
    let mut sessions = JoinSet::new();
    for n in 0..SESSIONS {
        let (world, work) = (world.clone(), work.clone());
        sessions.spawn(async move {
            let key = n % KEYS;
            let mut client = world.begin().await;
            client.acquire(Acquire { wait_ms: 30_000, ..acquire(n, &format!("k-{key}")) }).await;
            if n % 7 == 0 {
                // Gives up at some point on the way, granted or not.
                sleep(Duration::from_millis(n % 5)).await;
                return if n % 2 == 0 { client.vanish().await } else { client.cancel(n).await };
            }
            let grant = client.granted(n).await;
            work.begin(key, grant.token);
            sleep(Duration::from_millis(2)).await;
            work.end(key);
            match n % 4 {
                0 => client.vanish().await,
                1 => client.send(&ToKeeper::End).await,
                2 => client.cancel(n).await,
                _ => {
                    client.release(n, ReleaseReason::Dropped, true).await;
                    assert_eq!(client.receive().await, FromKeeper::Released { id: n });
                }
            }
        });
    }
    sessions.join_all().await;
    assert_eq!(world.keeper.quiesce(10 * SECOND).await, 0);
    world.all_ended().await;
    for key in 0..KEYS {
        assert!(world.store.is_free(&format!("k-{key}")));
    }
    assert_eq!(world.home.unsettled(), []);
}
