//! Random schedules against the model of the sources: whatever happens, each record ends done exactly once, or dead for
//! failures of its own.
//!
//! Only a whole environment's end is left out: no layer can report what was done in one that Lambda killed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::layer::batch::{BusyMessage, ReportBatchItemFailures};
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseLayer, OnCrash};
use serde_json::{Value, json};

use crate::model::{Queue, Shard, Source, State};
use crate::stage::{batch, dynamodb, id_of, in_group, kinesis, message, reported};

/// For each source.
const SCHEDULES: u64 = 2_600;
/// More deliveries of a message, or tries of a stream's record, than a schedule's bad luck takes.
const MOST_RECEIVES: u32 = 30;
const MOST_RETRIES: u32 = 90;
/// Only in the first of so many rounds others hold keys.
const CONTENDED_ROUNDS: u64 = 6;

/// The same numbers from the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Standard,
    Fifo,
    Kinesis,
    DynamoDb,
}

/// What a handler does with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    End,
    Fail,
    Panic,
    Hang,
    Lose,
    LoseAndEnd,
    TakeSeconds(u64),
}

impl Act {
    fn random(random: &mut Random) -> Self {
        match random.below(12) {
            0 => Self::Fail,
            1 => Self::Panic,
            2 => Self::Hang,
            3 => Self::Lose,
            4 => Self::LoseAndEnd,
            5 | 6 => Self::TakeSeconds(random.between(1, 6)),
            _ => Self::End,
        }
    }
}

#[derive(Debug)]
struct Record {
    key: String,
    line: usize,
    /// What is done with it at first; then it ends, unless it is poison and always fails.
    acts: Vec<Act>,
    is_poison: bool,
    attempts: usize,
    successes: usize,
    /// A change of visibility that was asked for.
    visible_at: Option<u64>,
}

/// What the handlers of all environments see.
struct World {
    kind: Kind,
    records: Vec<Record>,
    running: Vec<String>,
    source: Box<dyn Source>,
    turns: Random,
}

impl World {
    fn random(kind: Kind, random: &mut Random) -> Self {
        let count = random.between(1, 8) as usize;
        let (keys, lines) = (random.between(1, 4), random.between(1, 3));
        let bisects = random.one_in(2);
        let may_be_poison = matches!(kind, Kind::Standard | Kind::Fifo) || bisects;
        let keyed_by_line = random.one_in(2);
        let records = (0..count).map(|_| {
            let line = random.below(lines);
            let key = if keyed_by_line { line } else { random.below(keys) };
            Record {
                key: format!("k{key}"),
                line: if matches!(kind, Kind::Fifo) { line as usize } else { 0 },
                acts: (0..random.below(3)).map(|_| Act::random(random)).collect(),
                is_poison: may_be_poison && random.one_in(16),
                attempts: 0,
                successes: 0,
                visible_at: None,
            }
        });
        let records: Vec<_> = records.collect();
        let lines: Vec<_> = records.iter().map(|record| record.line).collect();
        let visibility = random.between(30_000, 90_000);
        let source: Box<dyn Source> = match kind {
            Kind::Standard | Kind::Fifo => Box::new(Queue::new(&lines, kind == Kind::Fifo, visibility, MOST_RECEIVES)),
            Kind::Kinesis | Kind::DynamoDb => Box::new(Shard::new(count, bisects, bisects.then_some(MOST_RETRIES))),
        };
        Self { kind, records, running: Vec::new(), source, turns: Random(random.below(u64::MAX)) }
    }

    fn is_in_order(&self) -> bool {
        self.kind != Kind::Standard
    }

    fn event(&self, index: usize) -> Value {
        let Record { key, line, .. } = &self.records[index];
        let (id, body) = (index.to_string(), json!({ "id": key }));
        match self.kind {
            Kind::Standard => message(&id, &body),
            Kind::Fifo => in_group(&format!("g{line}"), &id, &body),
            Kind::Kinesis => kinesis(&id, &body),
            Kind::DynamoDb => dynamodb(&id, key),
        }
    }

    const fn template(&self) -> &'static str {
        match self.kind {
            Kind::Standard | Kind::Fifo => "{body.id}",
            Kind::Kinesis => "{kinesis.data.id}",
            Kind::DynamoDb => "{dynamodb.Keys.id.S}",
        }
    }

    /// A handler begins with a record; what it is to do.
    fn begin(&mut self, index: usize) -> (Act, u64) {
        let states = self.source.states();
        assert_eq!(self.records[index].successes, 0, "record {index} is run again although it was done");
        let line = self.records[index].line;
        for (earlier, record) in self.records[..index].iter().enumerate().filter(|_| self.is_in_order()) {
            let is_past = record.line != line || record.successes > 0 || states[earlier] == State::Dead;
            assert!(is_past, "record {index} is run before {earlier}");
        }
        let record = &mut self.records[index];
        assert!(!self.running.contains(&record.key), "two handlers at once on {}", record.key);
        self.running.push(record.key.clone());
        let act = record.acts.get(record.attempts).copied();
        record.attempts += 1;
        (if record.is_poison { Act::Fail } else { act.unwrap_or(Act::End) }, self.turns.below(4))
    }

    fn is_over(&self) -> bool {
        !self.source.states().contains(&State::Waiting)
    }

    fn check_the_end(&self) {
        for (index, state) in self.source.states().into_iter().enumerate() {
            let record = &self.records[index];
            let behind_poison = || {
                self.kind == Kind::Fifo && self.records[..index].iter().any(|r| r.line == record.line && r.is_poison)
            };
            match state {
                State::Done => assert_eq!(record.successes, 1, "record {index} is gone from its source"),
                // What SQS received together with a message ahead of it, it counts together.
                State::Dead => assert!(
                    record.is_poison || behind_poison(),
                    "record {index} died of others' failures: {:?} {:#?}",
                    self.kind,
                    self.records
                ),
                State::Waiting => panic!("record {index} is still waiting"),
            }
        }
    }
}

/// A handler at work on a key; gone with the handler.
struct AtWork(Arc<Mutex<World>>, String);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).running.retain(|key| *key != self.1);
    }
}

async fn work(world: Arc<Mutex<World>>, keeper: TestKeeper, event: LambdaEvent<Value>) -> Result<(), Error> {
    let index: usize = id_of(&event.payload).parse()?;
    let lease = Lease::current()?;
    let (act, turns) = world.lock().unwrap().begin(index);
    let at_work = AtWork(world.clone(), lease.key().to_string());
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(turns * 7)).await;
    lease.ensure_held()?;
    match act {
        Act::End => {}
        Act::Fail => return Err("scripted".into()),
        // Without the hook, which would print it.
        Act::Panic => std::panic::resume_unwind(Box::new("scripted")),
        Act::Hang => std::future::pending().await,
        Act::Lose => {
            drop(at_work);
            keeper.lose(lease.key().as_str());
            std::future::pending().await
        }
        Act::LoseAndEnd => {
            drop(at_work);
            keeper.lose(lease.key().as_str());
            return Ok(());
        }
        Act::TakeSeconds(seconds) => keeper.advance(Duration::from_secs(seconds)),
    }
    world.lock().unwrap().records[index].successes += 1;
    Ok(())
}

fn now(keeper: &TestKeeper) -> u64 {
    keeper.event(()).unwrap().context.deadline
}

async fn run(kind: Kind, seed: u64) {
    let mut random = Random(seed);
    let keeper = TestKeeper::new();
    let world = World::random(kind, &mut random);
    let keys: Vec<_> = world.records.iter().map(|record| record.key.clone()).collect();
    let template = world.template();
    let world = Arc::new(Mutex::new(world));

    let handler = {
        let (world, keeper) = (world.clone(), keeper.clone());
        service_fn(move |event: LambdaEvent<Value>| work(world.clone(), keeper.clone(), event))
    };
    let makes_visible = random.one_in(2);
    let when_busy = {
        let (world, keeper) = (world.clone(), keeper.clone());
        move |busy: BusyMessage| {
            let at = now(&keeper) + u64::try_from(busy.visibility_timeout()).unwrap() * 1_000;
            let index: usize = busy.message_id.parse().unwrap();
            if makes_visible {
                world.lock().unwrap().records[index].visible_at = Some(at);
            }
            std::future::ready(Ok::<_, Error>(()))
        }
    };
    let layer = LeaseLayer::builder(template)
        .reserve(random.millis(500, 3_000))
        .max_wait(random.millis(0, 3_000))
        .on_crash(if random.one_in(4) { OnCrash::Expire } else { OnCrash::Release })
        .test_keeper(&keeper)
        .per_record(ReportBatchItemFailures)
        .concurrency(random.between(1, 3) as usize)
        .when_busy(when_busy)
        .build()
        .unwrap();
    let service = layer.layer(handler);
    let invocation_time = random.millis(5_000, 30_000);
    let environments = if matches!(kind, Kind::Standard | Kind::Fifo) { random.between(1, 2) } else { 1 };
    let most = random.between(1, 6) as usize;

    for round in 0.. {
        if world.lock().unwrap().is_over() {
            break;
        }
        assert!(round < 10_000, "this does not end");
        if round < CONTENDED_ROUNDS && random.one_in(3) {
            let key = &keys[random.below(keys.len() as u64) as usize];
            keeper.hold_elsewhere_for(key, random.millis(500, 20_000));
        }
        if !matches!(kind, Kind::Standard | Kind::Fifo) {
            // A shard is polled again and again; what failed is not tried in the very same moment.
            keeper.advance(Duration::from_secs(1));
        }
        let mut invocations = Vec::new();
        for _ in 0..environments {
            let mut locked = world.lock().unwrap();
            let received = locked.source.receive(now(&keeper), most);
            if received.is_empty() {
                continue;
            }
            let event = batch(received.iter().map(|index| locked.event(*index)));
            let event = keeper.event_within(event, invocation_time).unwrap();
            let (mut service, world) = (service.clone(), world.clone());
            invocations.push(async move {
                let answer = service.call(event).await.map(reported).ok();
                let failed: Option<Vec<usize>> =
                    answer.map(|failed| failed.iter().map(|id| id.parse().unwrap()).collect());
                let mut world = world.lock().unwrap();
                world.source.answer(&received, failed.as_deref());
                for index in received {
                    if let (Some(at), State::Waiting) =
                        (world.records[index].visible_at.take(), world.source.states()[index])
                    {
                        world.source.make_visible(index, at);
                    }
                }
            });
        }
        if invocations.is_empty() {
            keeper.advance(Duration::from_secs(1));
        }
        futures_util::future::join_all(invocations).await;
    }
    world.lock().unwrap().check_the_end();
}

/// Each record ends done exactly once, or dead for its own failures.
fn run_all(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for seed in 0..SCHEDULES {
        let run = std::panic::AssertUnwindSafe(|| runtime.block_on(run(kind, seed)));
        assert!(std::panic::catch_unwind(run).is_ok(), "{kind:?}, seed {seed}");
    }
}

#[test]
fn each_message_of_a_standard_queue_ends_done_once_or_dead_by_itself() {
    run_all(Kind::Standard);
}

#[test]
fn each_message_of_a_fifo_queue_ends_done_once_or_dead_with_its_group() {
    run_all(Kind::Fifo);
}

#[test]
fn each_kinesis_record_ends_done_once_or_dead_by_itself() {
    run_all(Kind::Kinesis);
}

#[test]
fn each_table_streams_record_ends_done_once_or_dead_by_itself() {
    run_all(Kind::DynamoDb);
}
