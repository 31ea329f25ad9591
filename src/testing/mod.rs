//! A test double for handlers under a layer: a keeper in memory, on a clock that stands until it is moved.
//!
//! With it a unit test shows what a handler does when its lease is granted, busy, late, at risk or lost, or when DynamoDB
//! is out of reach: without DynamoDB, a socket, a thread or a real second of waiting. The layer, the session and the
//! handler are the real ones; only the keeper is played.
//!
//! ```
//! use std::time::Duration;
//!
//! use lambda_runtime::tower::{Layer as _, service_fn};
//! use lambda_runtime::{Error, LambdaEvent};
//! use leasehold::testing::TestKeeper;
//! use leasehold::{InvocationError, Lease, LeaseLayer};
//! use serde_json::{Value, json};
//!
//! async fn ship(event: LambdaEvent<Value>) -> Result<Value, Error> {
//!     let lease = Lease::current()?;
//!     lease.ensure_held()?;
//!     Ok(json!({ "shipped": event.payload["id"] }))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keeper = TestKeeper::new();
//! let layer = LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(5)).test_keeper(&keeper).build()?;
//! let mut service = layer.layer(service_fn(ship));
//!
//! // Nobody holds it.
//! let response = keeper.invoke(&mut service, json!({ "id": 17 })).await.unwrap();
//! assert_eq!(response, json!({ "shipped": 17 }));
//! assert!(!keeper.is_held("orders:17"), "given back");
//!
//! // Somebody else does, for longer than the wait. No real time passes.
//! keeper.hold_elsewhere("orders:17");
//! let refused = keeper.invoke(&mut service, json!({ "id": 17 })).await;
//! assert!(matches!(refused, Err(InvocationError::Lease { error: leasehold::Error::LeaseBusy(_), .. })));
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! Keeper and layer read the double's own clock. It moves when [`TestKeeper::advance`] moves it, and by as much as an
//! acquisition waits for a holder elsewhere. An invocation that waits for a lease of the same test's, of another
//! invocation that runs beside it, waits until that one gives it back or the clock has been moved past its wait.
//! `end_before_deadline` is a timer of Tokio's: pause and advance Tokio's clock to see it.

mod acquisition;
mod connection;
mod event;
mod held;
mod keeper;
mod left;
mod look;
mod settle;
mod state;

pub(crate) use self::connection::Connection;
pub use self::event::{Answer, Happened};
pub use self::keeper::TestKeeper;
pub use crate::session::{FailKind, ReleaseReason};
