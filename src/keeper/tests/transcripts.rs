//! The transcripts of every released session version, replayed against the keeper: what it answers must be what stands in
//! them, field by field.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::memory_store::Fate;
use super::support::{Client, SECOND, START_MS, World};
use crate::clock::{Clock as _, Wall};
use crate::protocol::Hints;
use crate::protocol::{FailureKind, HeldRow, HolderInfo, OwnerId, Request, Row, Version};
use crate::session::{FromKeeper, ToKeeper};

#[allow(unreachable_pub, reason = "the layer's tests share it")]
#[path = "../../../tests/transcripts/read.rs"]
mod read;

use self::read::{Line, Names, Step};

/// One replay.
struct Replay {
    world: World,
    connections: HashMap<u64, Client>,
    names: Names,
    key: String,
}

impl Replay {
    async fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Then(what) => self.then(&what).await,
            Step::Layer(on, Line::Says(line)) => {
                if let Some(key) = line.get("key") {
                    key.as_str().unwrap().clone_into(&mut self.key);
                }
                let deadline_ms = self.world.clock.now().wall.as_millis() + 60_000;
                let line = format!("{}\n", self.names.fill(&line, deadline_ms));
                let world = &self.world;
                let client = self.connections.entry(on).or_insert_with(|| world.connect());
                client.send_bytes(line.as_bytes()).await;
                Ok(())
            }
            Step::Layer(on, Line::Connects) => {
                self.connections.insert(on, self.world.connect());
                Ok(())
            }
            Step::Layer(on, Line::HangsUp) => {
                self.connections.remove(&on).unwrap().vanish().await;
                Ok(())
            }
            Step::Keeper(on, Line::Says(expected)) => match self.connections.get_mut(&on).unwrap().next_json().await {
                Some(said) => self.names.compare(&expected, &said).map_err(|wrong| format!("{wrong}, in {said}")),
                None => Err(format!("it hung up instead of {expected}")),
            },
            Step::Keeper(on, _) => {
                let said = self.connections.remove(&on).unwrap().next_json().await;
                said.map_or(Ok(()), |said| Err(format!("{said} instead of hanging up")))
            }
        }
    }

    /// What happens around the session.
    async fn then(&mut self, what: &str) -> Result<(), String> {
        let (world, key) = (&self.world, self.key.as_str());
        match what {
            // It is the layer's own affair, and what it says next tells of it.
            "the handler works"
            | "the handler makes progress"
            | "the handler answers"
            | "the invocation is dropped" => {}
            "another holds the key" | "another keeps the key" => {
                let holder = HolderInfo {
                    function: "billing".to_owned(),
                    request_id: "r-other".to_owned(),
                    parked: what == "another keeps the key",
                    ..Default::default()
                };
                world.store.put(
                    "orders:A-17",
                    Row::Held(HeldRow {
                        owner: OwnerId::from_u128(9),
                        version: Version::Counter(START_MS),
                        lease: 30 * SECOND,
                        expires_at: Some(Wall::from_millis(START_MS + 30_000)),
                        holder: Some(Box::new(holder)),
                        hints: Hints::default(),
                    }),
                );
            }
            "DynamoDB throttles" => world.store.decide(|_, _| Fate::failed(FailureKind::Throttled)),
            "the row is deleted" => world.store.put(key, Row::Absent),
            "no renewal is answered" => world.store.decide(|_, request| match request {
                Request::Renew { .. } => Fate { applied: false, ..Fate::slow(Duration::MAX) },
                _ => Fate::USUAL,
            }),
            "renewals are answered again" => world.store.decide(|_, _| Fate::USUAL),
            "the row is free" => {
                world.all_ended().await;
                assert!(world.store.is_free(key));
            }
            "the row is kept" => {
                world.all_ended().await;
                let Row::Held(held) = world.store.row(key) else { return Err("it is not held".to_owned()) };
                assert!(held.holder.is_some_and(|holder| holder.parked));
            }
            "the row is held" => {
                world.all_ended().await;
                assert!(world.store.owner(key).is_some());
            }
            other => return Err(format!("nobody knows how to do this: {other}")),
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_keeper_says_what_stands_in_the_transcripts_of_version_1() {
    let mut wrong = Vec::new();
    for (name, steps) in read::all() {
        let (names, key) = (Names::default(), String::new());
        let mut replay = Replay { world: World::new(), connections: HashMap::new(), names, key };
        replay.world.home.answers_before_write.store(name != "release_wait", std::sync::atomic::Ordering::Relaxed);
        for (at, step) in steps.into_iter().enumerate() {
            if let Err(what) = replay.step(step).await {
                // The first line of the file tells what it is about.
                wrong.push(format!("{name}.jsonl:{}: {what}", at + 2));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The types of the messages in the transcripts, and the variants of those that have some.
#[test]
fn every_message_has_its_transcript() {
    let (mut seen, mut names) = (BTreeSet::new(), Names::default());
    for (_, steps) in read::all() {
        for step in steps {
            let (Step::Layer(_, Line::Says(line)) | Step::Keeper(_, Line::Says(line))) = &step else { continue };
            let filled = names.fill(line, START_MS);
            // All of them are messages of this release, but for the one that is about those that are not.
            match step {
                Step::Keeper(..) => drop(serde_json::from_value::<FromKeeper>(filled).unwrap()),
                _ if line["type"] == "prolong" => continue,
                _ => drop(serde_json::from_value::<ToKeeper>(filled).unwrap()),
            }
            for field in ["type", "reason", "on_crash", "state"] {
                let text = line.get(field).and_then(Value::as_str).filter(|text| !text.starts_with('<'));
                seen.extend(text.map(|text| format!("{field} {text}")));
            }
            if line["type"] == "error" {
                seen.insert(format!("error {}", line["kind"].as_str().unwrap()));
            }
        }
    }
    let expected = "type hello,type begin,type check,type acquire,type progress,type release,type end,type began,type granted,type busy,\
        type failed,type load_state,type state,type save_state,type state_saved,type state_failed,type released,type inspect,type inspected,\
        type count,type counted,type at_risk,type secured,type lost,type checked,type error,reason finished,\
        reason dropped,reason cancelled,on_crash release,on_crash expire,state held,state lost,state unknown,state absent,state free,\
        error versions,error message,error order,error silence";
    for expected in expected.split(',') {
        assert!(seen.contains(expected), "no transcript has {expected}");
    }
}
