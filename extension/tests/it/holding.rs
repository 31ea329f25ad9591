//! The loop with its clock in the test's hands: on a clock that stands still, whoever waits for a moment waits forever.

use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{ManualClock, Wall};
use leasehold::keeper::{Home as _, Keeper, KeeperOptions, MetricLines, SessionId};
use leasehold::protocol::{Answer, Failure, FailureKind, Outcome, Request};
use leasehold::store::{Lock, Store};
use leasehold_extension::api::{Api, Endpoint};
use leasehold_extension::home::ExtensionHome;
use leasehold_extension::journal::Journal;
use leasehold_extension::logging::Lines;
use leasehold_extension::metrics::Metrics;
use leasehold_extension::next_loop;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::fake_api::FakeApi;
use crate::soon;

const NOW_MS: u64 = 1_800_000_000_000;
const A: SessionId = SessionId(1);

/// Tells when a connection is made ahead, which is never done.
#[derive(Debug)]
struct NoStore {
    warmed: mpsc::UnboundedSender<()>,
}

impl Store for NoStore {
    async fn send(&self, _: &Lock, _: Request, _: Duration) -> Answer {
        Answer::new(Outcome::Failed(Failure::new(FailureKind::Rejected, "none")), None)
    }

    async fn warm_up(&self) {
        self.warmed.send(()).unwrap();
        std::future::pending().await
    }

    fn drop_connections(&self) {}
}

struct Loop {
    api: FakeApi,
    clock: ManualClock,
    home: Arc<ExtensionHome>,
    warmed: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<next_loop::Shutdown>,
}

impl Loop {
    async fn start(freezes: bool) -> Self {
        let api = FakeApi::start().await;
        let clock = ManualClock::at(Wall::from_millis(NOW_MS));
        let journal = Arc::new(Journal::new("/nowhere/held".into()));
        let home = Arc::new(ExtensionHome::new(Arc::new(clock.clone()), journal, freezes));
        let (sender, warmed) = mpsc::unbounded_channel();
        let store = NoStore { warmed: sender };
        let keeper = Keeper::new(store, Arc::new(clock.clone()), home.clone(), KeeperOptions::default());
        let next = Api::new(Endpoint::parse(api.address()).unwrap(), "the-identifier".to_owned());
        let at_home = home.clone();
        let metrics = Metrics::new(&keeper, MetricLines::Off, None, Lines::to(std::io::sink));
        let task = tokio::spawn(async move { next_loop::run(next, &at_home, &keeper, &metrics).await });
        Self { api, clock, home, warmed, task }
    }

    /// Waits until the loop knows of the invocation.
    async fn invoke(&mut self, request_id: &str) {
        let next = self.api.next().await;
        let mut events = self.home.events();
        next.invoke(request_id, NOW_MS + 3_000);
        soon(events.changed()).await.unwrap();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn without_a_layer_nothing_is_waited_for() {
    let mut it = Loop::start(true).await;
    it.invoke("r1").await;
    it.invoke("r2").await;
    it.api.next().await;
}

#[tokio::test]
async fn after_a_hello_a_session_is_waited_for_until_50_ms_are_over() {
    let mut it = Loop::start(true).await;
    it.home.hello();
    it.invoke("r").await;
    it.clock.advance(Duration::from_millis(49));
    it.home.hello();
    tokio::task::yield_now().await;
    assert!(it.api.is_quiet());
    it.clock.advance(Duration::from_millis(1));
    it.home.hello();
    it.api.next().await;
}

#[tokio::test]
async fn the_session_that_was_waited_for_is_held_for() {
    let mut it = Loop::start(true).await;
    it.home.hello();
    it.invoke("r").await;
    it.home.session_began(A, "r");
    it.clock.advance(Duration::from_secs(1));
    assert!(it.home.may_answer_before_write(A));
    it.home.hello();
    tokio::task::yield_now().await;
    assert!(it.api.is_quiet());
    it.home.session_ended(A, "r");
    let next = it.api.next().await;
    it.home.session_began(A, "r2");
    assert!(!it.home.may_answer_before_write(A), "Next is out");
    next.shutdown();
    assert_eq!(soon(&mut it.task).await.unwrap().reason, "spindown");
}

#[tokio::test]
async fn in_overtime_nothing_is_waited_for() {
    let mut it = Loop::start(true).await;
    it.home.session_began(A, "r");
    it.invoke("r").await;
    it.clock.advance(Duration::from_millis(4_500));
    it.home.hello();
    it.api.next().await;
}

#[tokio::test]
async fn where_nothing_freezes_nothing_is_waited_for() {
    let mut it = Loop::start(false).await;
    it.home.hello();
    it.home.session_began(A, "r");
    assert!(it.home.may_answer_before_write(A));
    it.invoke("r").await;
    it.api.next().await;
}

#[tokio::test]
async fn after_a_long_freeze_a_connection_is_made_while_the_handler_reads_its_event() {
    let mut it = Loop::start(true).await;
    it.clock.advance(Duration::from_secs(31));
    it.invoke("r").await;
    soon(it.warmed.recv()).await.unwrap();
}

#[tokio::test]
async fn a_freeze_while_a_connection_is_made_does_not_keep_the_next_one_from_being_made() {
    let mut it = Loop::start(true).await;
    for request_id in ["a", "b"] {
        it.clock.advance(Duration::from_secs(31));
        it.invoke(request_id).await;
        soon(it.warmed.recv()).await.unwrap();
    }
}
