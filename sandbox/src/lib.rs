//! A local Lambda: functions and extensions run as real processes, with freeze, timeout, kill and reset.
//!
//! Made for the tests and the demo of `leasehold`, and for trying a function of your own with its extension: what
//! `cargo lambda watch` leaves out is what a lock has to survive. A [`Sandbox`] serves the Runtime API and the Extensions
//! API to each of its environments, starts and freezes and ends their processes as Lambda does, and notes every step in a
//! [`Log`] that tests can wait on. An embedded DynamoDB is included.
//!
//! | file | what it is for |
//! |---|---|
//! | `builder`, `settings` | what a user may choose |
//! | `sandbox`, `pool` | who owns everything; which environment takes an invocation |
//! | `environment` | one environment's life |
//! | `api` | its two HTTP APIs |
//! | `process` | real processes, their groups, outputs and ends |
//! | `dynamodb` | the embedded DynamoDB, tables and rows |
//! | `faults` | a proxy in front of DynamoDB that loses, delays and answers wrongly |
//! | `lambda_api` | a stack's functions behind Lambda's and CloudFormation's own APIs |
//! | `demo`, `soak`, `bench` | what leasehold does, shown; what it withstands, counted; what it costs, measured |
//! | `event`, `names`, `log`, `timeline` | what happened, to be asserted and to be read |
//! | `invocation`, `error` | what callers ask and get |
//!
//! The behaviour follows AWS's documentation and its own local emulator; nothing here ran on AWS itself. Not imitated are
//! limits on the processor, and on memory but behind [`LambdaApi`], the Telemetry API, SnapStart, and internal extensions.
#![forbid(unsafe_code)]

mod api;
pub mod bench;
mod builder;
pub mod demo;
mod dynamodb;
mod environment;
mod error;
mod event;
pub mod faults;
mod invocation;
mod lambda_api;
mod log;
mod names;
mod pool;
mod process;
mod sandbox;
mod settings;
pub mod soak;
mod task;
mod timeline;

pub use rustix::process::Signal;

pub use self::{
    builder::SandboxBuilder,
    dynamodb::{EmbeddedDynamoDb, LockTable, Row, Tables},
    environment::Environment,
    error::Error,
    event::{Event, EventKind},
    invocation::{Invocation, InvocationError, InvocationHandle, Outcome, Response},
    lambda_api::{LambdaApi, Stack, StackFunction},
    log::{Log, Step},
    names::{EnvironmentId, Exit, Process, ShutdownReason, Stream},
    sandbox::Sandbox,
    settings::{DynamoDb, InvokeOrder, Overflow, Reinit},
    timeline::{Line, Timeline},
};
