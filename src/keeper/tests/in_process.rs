//! The keeper on a thread of its own, in real time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::memory_store::{Fate, MemoryStore};
use super::support::{TestClock, acquire};
use crate::keeper::InProcess;
use crate::protocol::{Failure, FailureKind, Request};
use crate::session::{Acquire, CheckAnswer, FailKind, FromKeeper, ToKeeper, VersionRange, encode};

/// A client that blocks its thread, as a handler may.
struct Blocking(BufReader<UnixStream>);

impl Blocking {
    fn begin(keeper: &InProcess) -> Self {
        let mut client = Self(BufReader::new(keeper.connect().unwrap()));
        client.send(&ToKeeper::Begin {
            versions: VersionRange::SPOKEN,
            request_id: "r".to_owned(),
            deadline_ms: None,
            lost: vec![],
        });
        assert_eq!(client.receive(), FromKeeper::Began { version: 1 });
        client
    }

    fn send(&mut self, line: &ToKeeper) {
        self.0.get_mut().write_all(&encode(line).unwrap()).unwrap();
    }

    fn receive(&mut self) -> FromKeeper {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn acquire(&mut self, acquire: Acquire) -> FromKeeper {
        self.send(&ToKeeper::Acquire(Box::new(acquire)));
        self.receive()
    }
}

#[test]
fn a_blocked_handler_is_renewed_checked_and_freed_at_the_end() {
    let store = MemoryStore::new(TestClock::new());
    let theirs = store.clone();
    let keeper = InProcess::start_with(move || async move { Ok::<_, Failure>(theirs) }).unwrap();
    let mut client = Blocking::begin(&keeper);
    let granted = client.acquire(Acquire { lease_ms: 500, ..acquire(1, "a") });
    let FromKeeper::Granted { owner, .. } = granted else { panic!("{granted:?}") };
    std::thread::sleep(Duration::from_millis(1200));
    assert!(matches!(keeper.check(owner), CheckAnswer::Held { .. }));
    assert!(store.renewals("a") >= 4);
    drop(keeper);
    assert!(store.is_free("a"));
    assert!(matches!(client.receive(), FromKeeper::Lost { id: 1, .. }));
}

#[test]
fn a_store_that_cannot_be_made_is_told_to_who_asks() {
    let keeper = InProcess::start_with(|| async {
        Err::<MemoryStore, _>(Failure::new(FailureKind::Credentials, "no credentials anywhere"))
    })
    .unwrap();
    let refused = Blocking::begin(&keeper).acquire(acquire(1, "a"));
    let FromKeeper::Failed { kind: FailKind::Credentials, message, .. } = refused else { panic!("{refused:?}") };
    assert!(message.contains("no credentials anywhere"), "{message}");
}

#[test]
fn a_drop_is_bounded_even_where_the_store_never_answers() {
    let store = MemoryStore::new(TestClock::new());
    store.decide(|_, request| if matches!(request, Request::Release { .. }) { Fate::SWALLOWED } else { Fate::USUAL });
    let keeper = InProcess::start_with(move || async move { Ok::<_, Failure>(store) }).unwrap();
    let granted = Blocking::begin(&keeper).acquire(acquire(1, "a"));
    assert!(matches!(granted, FromKeeper::Granted { .. }));
    let began = std::time::Instant::now();
    drop(keeper);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[test]
fn the_shared_keeper_is_one_and_is_started_again_if_its_thread_died() {
    async fn no_store() -> Result<MemoryStore, Failure> {
        panic!("no store")
    }
    let start = || InProcess::shared_with(|| async { Ok::<_, Failure>(MemoryStore::new(TestClock::new())) }).unwrap();
    let broken = InProcess::shared_with(no_store).unwrap();
    while broken.is_alive() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(broken.connect().is_err());
    let one = start();
    assert!(std::sync::Arc::ptr_eq(&one, &start()));
    assert!(matches!(Blocking::begin(&one).acquire(acquire(1, "a")), FromKeeper::Granted { .. }));
}
