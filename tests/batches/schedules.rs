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
use serde_json::Value;

use crate::model::State;
use crate::stage::{batch, id_of, reported};
use crate::world::{Act, Kind, Random, World};

/// For each source.
const SCHEDULES: u64 = 2_600;
/// Only in the first of so many rounds others hold keys.
const CONTENDED_ROUNDS: u64 = 6;

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
    keeper.event(()).context.deadline
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
    let change_visibility = {
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
        .change_visibility(change_visibility)
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
            let event = keeper.event_within(event, invocation_time);
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
