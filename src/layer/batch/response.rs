//! What Lambda is told about a batch.

use serde::Serialize;

/// The records that are to come back; all others are done.
///
/// It serializes to what Lambda reads of a function with `ReportBatchItemFailures`.
///
/// ```
/// use leasehold::layer::batch::{BatchItemFailure, BatchResponse};
///
/// let failed = BatchItemFailure { item_identifier: "059f36b4".to_owned() };
/// let response = BatchResponse { batch_item_failures: vec![failed] };
/// assert_eq!(serde_json::to_string(&response)?, r#"{"batchItemFailures":[{"itemIdentifier":"059f36b4"}]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResponse {
    /// Empty where every record is done. A stream's batch has at most one: Lambda goes on from there.
    pub batch_item_failures: Vec<BatchItemFailure>,
}

/// A record that is to come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    /// An SQS message's id, or a stream record's sequence number.
    pub item_identifier: String,
}
