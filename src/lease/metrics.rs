//! What a lease has taken: requests, waiting, failures and capacity.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::timeout;

use super::{Lease, given_back};
use crate::error::{Error, KeeperGone};
use crate::keeper::client::Broken;
use crate::session::Counted;

/// How long the keeper gets to tell its counts, which wait for nothing.
const COUNTED_WITHIN: Duration = Duration::from_secs(1);

/// What one lease has taken up to now, from the first attempt to get it; see [`Lease::metrics`](crate::Lease::metrics).
///
/// The keeper counts at the requests themselves, so what the handler's process did not see is in it as well. `attempts`
/// are, once nothing is under way, the one that was granted and `attempts_refused`, `attempts_unknown` and
/// `grants_undone`.
///
/// Capacity is what DynamoDB told in its answers, and **not the bill**: it tells nothing for a write whose condition did
/// not hold, although that is billed like one that was applied, nor for one that was never answered; and the release is
/// still to come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LeaseMetrics {
    /// How long was waited for the lease.
    pub waited: Duration,
    /// Writes that were sent, transactions that save a state among them.
    pub write_requests: u64,
    /// Reads that were sent: looks at a row that somebody else held, and at the lease's state.
    pub read_requests: u64,
    /// Of the writes, the attempts to take the row.
    pub attempts: u64,
    /// Attempts that were refused: by the row, which somebody else held, or by DynamoDB.
    pub attempts_refused: u64,
    /// Attempts of which it is not known whether they were applied.
    pub attempts_unknown: u64,
    /// Attempts that were applied, and whose lease was over before it could be granted.
    pub grants_undone: u64,
    /// Attempts that took the row over from a holder whose lease had ended: 1 where this lease was such a one.
    pub takeovers: u64,
    /// Renewals that were answered with success.
    pub renewals: u64,
    /// Renewals that were not.
    pub renewal_failures: u64,
    /// Writes whose condition did not hold.
    pub conditional_failures: u64,
    /// Requests that DynamoDB did not serve, or did not answer in time.
    pub request_failures: u64,
    /// Of these, releases: of attempts that were given up, and of the lease itself.
    pub cleanup_failures: u64,
    /// Write capacity units that DynamoDB said it took; `None` where it said nothing.
    pub write_capacity_units: Option<f64>,
    /// Read capacity units that DynamoDB said it took; `None` where it said nothing.
    pub read_capacity_units: Option<f64>,
}

impl LeaseMetrics {
    /// What the keeper counted, of both leases where two keys are locked together.
    pub(crate) fn new(counted: &[Counted]) -> Self {
        counted.iter().fold(Self::default(), |sum, counted| sum.and(counted))
    }

    fn and(self, counted: &Counted) -> Self {
        let units = |sum: Option<f64>, millionths: Option<u64>| match millionths {
            Some(millionths) => Some(sum.unwrap_or_default() + millionths as f64 / 1e6),
            None => sum,
        };
        Self {
            waited: self.waited + Duration::from_millis(counted.waited_ms),
            write_requests: self.write_requests + counted.write_requests,
            read_requests: self.read_requests + counted.read_requests,
            attempts: self.attempts + counted.attempts,
            attempts_refused: self.attempts_refused + counted.attempts_refused,
            attempts_unknown: self.attempts_unknown + counted.attempts_unknown,
            grants_undone: self.grants_undone + counted.grants_undone,
            takeovers: self.takeovers + counted.takeovers,
            renewals: self.renewals + counted.renewals,
            renewal_failures: self.renewal_failures + counted.renewal_failures,
            conditional_failures: self.conditional_failures + counted.conditional_failures,
            request_failures: self.request_failures + counted.request_failures,
            cleanup_failures: self.cleanup_failures + counted.cleanup_failures,
            write_capacity_units: units(self.write_capacity_units, counted.write_unit_millionths),
            read_capacity_units: units(self.read_capacity_units, counted.read_unit_millionths),
        }
    }
}

impl Lease {
    /// What this lease has taken up to now: requests, waiting, failures, and capacity as far as DynamoDB told.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # async fn f() -> Result<(), Error> {
    /// let metrics = Lease::current()?.metrics().await?;
    /// tracing::info!(waited = ?metrics.waited, writes = metrics.write_requests, renewals = metrics.renewals, "locked");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A lease that was lost has its counts still. In the modes `observe` and `off` they are zero where no lease was asked
    /// for.
    ///
    /// # Errors
    ///
    /// [`KeeperGone`] when the keeper is gone or does not answer within a second; [`NoLease`](crate::error::NoLease)
    /// once the lease was given back.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub async fn metrics(&self) -> Result<LeaseMetrics, Error> {
        let Some(link) = &self.0.link else { return Ok(LeaseMetrics::default()) };
        if link.session.is_given_back() {
            return Err(given_back());
        }
        let asked = link.session.count();
        match timeout(COUNTED_WITHIN, poll_fn(|cx| link.session.poll_counted(cx, &asked))).await {
            Ok(Ok(counted)) => Ok(LeaseMetrics::new(&counted)),
            Ok(Err(Broken::Closed)) => Err(given_back()),
            Ok(Err(Broken::Gone(reason) | Broken::Version(reason))) => Err(KeeperGone { reason }.into()),
            Err(_) => Err(KeeperGone { reason: "it did not tell its counts in time".to_owned() }.into()),
        }
    }
}
