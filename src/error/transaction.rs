//! What keeps a transaction from being guarded by the lease.

use thiserror::Error;

use crate::key::LockKey;

/// The transaction has no room for the lease's condition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the transaction has {operations} operations and DynamoDB takes 100, of which the lease's condition is one: split it, \
     or write less"
)]
#[non_exhaustive]
pub struct TransactionFull {
    /// How many there are.
    pub operations: usize,
}

/// An operation of the transaction works on the lock's own row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "operation {index} of the transaction works on the row of the lock `{key}`, and DynamoDB takes one operation an item: \
     leave the row to the lease, which checks it"
)]
#[non_exhaustive]
pub struct LockRowInTransaction {
    /// What is locked.
    pub key: LockKey,
    /// Which operation, from 0.
    pub index: usize,
}
