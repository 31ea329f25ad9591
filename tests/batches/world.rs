//! A random schedule's records and their source, what handlers do with them, and what must hold whenever one begins.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model::{Queue, Shard, Source, State};
use crate::stage::{dynamodb, in_group, kinesis, message};

/// More deliveries of a message, or tries of a stream's record, than a schedule's bad luck takes.
const MOST_RECEIVES: u32 = 30;
const MOST_RETRIES: u32 = 90;

/// The same numbers from the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Standard,
    Fifo,
    Kinesis,
    DynamoDb,
}

/// What a handler does with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    End,
    Fail,
    Panic,
    Hang,
    Lose,
    LoseAndEnd,
    TakeSeconds(u64),
}

impl Act {
    pub(crate) fn random(random: &mut Random) -> Self {
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
pub(crate) struct Record {
    pub(crate) key: String,
    line: usize,
    /// What is done with it at first; then it ends, unless it is poison and always fails.
    acts: Vec<Act>,
    is_poison: bool,
    attempts: usize,
    pub(crate) successes: usize,
    /// A change of visibility that was asked for.
    pub(crate) visible_at: Option<u64>,
}

/// What the handlers of all environments see.
pub(crate) struct World {
    kind: Kind,
    pub(crate) records: Vec<Record>,
    pub(crate) running: Vec<String>,
    pub(crate) source: Box<dyn Source>,
    turns: Random,
}

impl World {
    pub(crate) fn random(kind: Kind, random: &mut Random) -> Self {
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

    pub(crate) fn event(&self, index: usize) -> Value {
        let Record { key, line, .. } = &self.records[index];
        let (id, body) = (index.to_string(), json!({ "id": key }));
        match self.kind {
            Kind::Standard => message(&id, &body),
            Kind::Fifo => in_group(&format!("g{line}"), &id, &body),
            Kind::Kinesis => kinesis(&id, &body),
            Kind::DynamoDb => dynamodb(&id, key),
        }
    }

    pub(crate) const fn template(&self) -> &'static str {
        match self.kind {
            Kind::Standard | Kind::Fifo => "{body.id}",
            Kind::Kinesis => "{kinesis.data.id}",
            Kind::DynamoDb => "{dynamodb.Keys.id.S}",
        }
    }

    /// A handler begins with a record; what it is to do.
    pub(crate) fn begin(&mut self, index: usize) -> (Act, u64) {
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

    pub(crate) fn is_over(&self) -> bool {
        !self.source.states().contains(&State::Waiting)
    }

    pub(crate) fn check_the_end(&self) {
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
