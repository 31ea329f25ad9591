//! What must never be, by name.

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// Two holders of one key may believe it at the same time.
    #[error("two holders may believe the same key")]
    TwoHolders,
    /// A fencing token is not higher than the one before it.
    #[error("a fencing token is not higher than the last one")]
    TokenFell,
    /// A fencing token was given out in a row format that has none, or none in one that has.
    #[error("a grant with a fencing token that the row format has not, or without the one that it has")]
    TokenOutOfPlace,
    /// A row's version went down while the row lived; where versions are no counters, an earlier write of its owner undid a
    /// later one, or a version came back.
    #[error("a row's version fell, or an earlier one came back")]
    VersionFell,
    /// A held row has a `ttl` and could be swept.
    #[error("a held row has a `ttl`")]
    HeldRowHasTtl,
    /// A lease is believed that was never granted, or was released, lost or given up.
    #[error("a lease is believed that is not granted, or is over")]
    BelievedWithoutGrant,
    /// What was granted is not what the holder believes.
    #[error("a grant says another validity than its holder believes")]
    WrongValidity,
    /// A loss was told that no risk was told before.
    #[error("a loss came without a warning")]
    LossWithoutRisk,
    /// An acquisition ended twice.
    #[error("an acquisition had more than one end")]
    TwoEnds,
    /// An acquisition is over and nobody was told how.
    #[error("an acquisition ended without a word")]
    NoEnd,
    /// A machine is not finished but waits for nothing.
    #[error("a machine waits for nothing")]
    Stuck,
    /// A machine never comes to rest.
    #[error("more events than any honest run has")]
    Restless,
    /// An acquisition took longer than its budget.
    #[error("an acquisition went over its budget")]
    OverBudget,
    /// A renewal was sent after a release.
    #[error("a renewal was sent after a release")]
    RenewedAfterRelease,
    /// Somebody was granted a key before the minimum of the lease that was parked there was over, or the key was freed.
    #[error("a parked key was given away before its minimum was over")]
    MinimumNotKept,
    /// A contender that nothing disturbed let a row be free for longer than any way of waiting may.
    #[error("a contender that waited left the row free for too long")]
    FreeRowNotTaken,
    /// An abandoned row was not recovered in time.
    #[error("an abandoned row was not recovered in time")]
    NotRecovered,
}
