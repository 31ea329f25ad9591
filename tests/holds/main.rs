//! The shape of a hold, with a keeper in memory: silence, a second key, hashed keys, and what ends a handler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod also;
mod hashed;
mod max_hold;
mod silence;

use std::time::Duration;

use leasehold::testing::{Happened, TestKeeper};
use leasehold::{InvocationError, LeaseLayer, LeaseLayerBuilder};
use serde_json::Value;

fn layer(template: &str, keeper: &TestKeeper) -> LeaseLayerBuilder<Value> {
    LeaseLayer::builder(template).reserve(Duration::from_secs(5)).test_keeper(keeper)
}

/// What the layer refused with.
fn refusal<R: std::fmt::Debug, E: std::fmt::Debug>(answer: Result<R, InvocationError<E>>) -> leasehold::Error {
    match answer {
        Err(InvocationError::Lease { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

/// What was asked for and given back, in its order.
fn asked_and_released(keeper: &TestKeeper) -> Vec<String> {
    let told = |happened| match happened {
        Happened::Asked { key } => Some(format!("asked {key}")),
        Happened::Released { key, .. } => Some(format!("released {key}")),
        _ => None,
    };
    keeper.happened().into_iter().filter_map(told).collect()
}
