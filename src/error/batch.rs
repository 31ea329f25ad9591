//! What is wrong with a batch, or with one record's time.

use std::time::Duration;

use thiserror::Error;

/// The event is no batch whose records can be reported one by one. Nothing was done.
#[derive(Debug, Error)]
#[error(
    "the event is no batch of SQS messages, Kinesis records or DynamoDB stream records: {reason}; send it to a function \
     without `per_record`, or correct the event source mapping"
)]
#[non_exhaustive]
pub struct NotABatch {
    /// What is wrong with it, for people.
    pub reason: String,
}

/// None of a batch's records has a key and the handler's type. Nothing was done.
///
/// One such record among others is reported by itself; where they are all like that, it is the template, the closure or
/// the handler's type that is wrong.
#[derive(Debug, Error)]
#[error(
    "none of the batch's records ({records}) can be worked on; the key and the handler are for a single record: under \
     `per_record` neither sees the whole event; of the first record: {first}"
)]
#[non_exhaustive]
pub struct NoUsableRecord {
    /// How many records the batch has.
    pub records: usize,
    /// What is wrong with the first of them.
    #[source]
    pub first: Box<super::Error>,
}

/// The handler of one record was still at work when that record's share of the invocation's time was over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the handler of this record was ended after {share:?}, its share of the invocation's time: set `reserve` to what one \
     record needs, raise the function's timeout or `concurrency`, or lower the batch size"
)]
#[non_exhaustive]
pub struct RecordOutOfTime {
    /// How long it had.
    pub share: Duration,
}
