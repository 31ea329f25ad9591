//! What an invocation that came to its end tells: what it held, where, and what that took.

use leasehold::{FencingToken, Lease, LeaseMetrics};
use serde::Serialize;
use uuid::Uuid;

/// The response. `leaseholdctl verify` reads it; fields are only added.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Answer {
    key: String,
    token: Option<u64>,
    environment: Uuid,
    /// By this environment's own clock.
    waited_ms: u64,
    /// Whether the row was taken from a holder whose lease was over, not freed by it.
    took_over: bool,
    renewals: u64,
    /// Writes that DynamoDB refused for their condition: billed like others, and not told in its capacity.
    writes_refused: u64,
    request_failures: u64,
    /// As far as DynamoDB told; the release is still to come.
    write_units: f64,
    read_units: f64,
}

impl Answer {
    pub(crate) fn new(lease: &Lease, metrics: LeaseMetrics, environment: Uuid) -> Self {
        Self {
            key: lease.key().to_string(),
            token: lease.token().map(FencingToken::get),
            environment,
            waited_ms: u64::try_from(metrics.waited.as_millis()).unwrap_or(u64::MAX),
            took_over: metrics.takeovers > 0,
            renewals: metrics.renewals,
            writes_refused: metrics.conditional_failures,
            request_failures: metrics.request_failures,
            write_units: metrics.write_capacity_units.unwrap_or_default(),
            read_units: metrics.read_capacity_units.unwrap_or_default(),
        }
    }
}
