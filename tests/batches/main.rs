//! Per-record locks in batches, with the test double for a keeper: each rule by itself, and random schedules against a
//! model of the sources.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod events;
mod keys;
mod lines;
mod loss;
mod misuse;
mod model;
mod modes;
mod queues;
mod schedules;
mod stage;
mod time;
mod types;
mod visibility;
mod whole;
mod world;
