//! Transactions that are written only while the lease is held.

use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsError, TransactWriteItemsOutput};
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason, TransactWriteItem};
use thiserror::Error as ThisError;
use tokio::time::sleep;
use uuid::Uuid;

use super::Lease;
use crate::error::{Error, LeaseLost, LockRowInTransaction, TransactionFull};
use crate::key::LockKey;
use crate::session::Table;

/// DynamoDB takes this many operations in one transaction.
const MOST_OPERATIONS: usize = 100;

/// A renewal that was in the way is over in a few milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(160);

impl Lease {
    /// Adds the condition "this lease is held" to a transaction, as its last operation: DynamoDB itself checks the owner
    /// in the moment of the write, whatever clocks and handlers believe.
    ///
    /// This is the strongest fence there is, where the work is in DynamoDB tables of the lock table's Region and account.
    /// A holder that was paused past its lease can't write. The function's role needs `dynamodb:ConditionCheckItem` on the
    /// lock table. Where a second key is locked beside the layer's own (`also`), its row is checked too. In the modes
    /// `observe` and `off` nothing is added where there is no lease.
    ///
    /// ```
    /// use aws_sdk_dynamodb::Client;
    /// use aws_sdk_dynamodb::types::{TransactWriteItem, Update};
    /// use leasehold::Lease;
    /// use leasehold::error::TransactionError;
    ///
    /// async fn reserve_stock(client: &Client, update: Update) -> Result<(), TransactionError> {
    ///     let work = client.transact_write_items().transact_items(TransactWriteItem::builder().update(update).build());
    ///     Lease::current()?.guard_transaction(work)?.send().await?;
    ///     Ok(())
    /// }
    /// # let _ = reserve_stock;
    /// ```
    ///
    /// # Errors
    ///
    /// [`TransactionFull`] when no operation fits in any more, and [`LockRowInTransaction`] when one of them works on the
    /// lock's own row: DynamoDB takes one operation an item.
    pub fn guard_transaction(&self, work: TransactWriteItemsFluentBuilder) -> Result<GuardedTransaction, Error> {
        let operations = work.get_transact_items().as_deref().unwrap_or_default();
        let checks = self.condition_checks();
        if checks.is_empty() {
            return Ok(GuardedTransaction { lease: self.clone(), ours: Vec::new(), request: work });
        }
        if operations.len() + checks.len() > MOST_OPERATIONS {
            return Err(TransactionFull { operations: operations.len() }.into());
        }
        for (_, key) in &checks {
            let row = Row { table: self.table(), key: key.as_str() };
            if let Some(index) = operations.iter().position(|operation| row.is_worked_on_by(operation)) {
                return Err(LockRowInTransaction { key: (*key).clone(), index }.into());
            }
        }
        let ours = checks.iter().zip(operations.len()..).map(|((_, key), index)| (index, (*key).clone())).collect();
        // The same token for each time that it is sent: a transaction that was written unheard is not written twice.
        let token = work.get_client_request_token().clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let checks = checks.into_iter().map(|(check, _)| TransactWriteItem::builder().condition_check(check).build());
        let request = checks.fold(work, TransactWriteItemsFluentBuilder::transact_items).client_request_token(token);
        Ok(GuardedTransaction { lease: self.clone(), ours, request })
    }
}

/// A transaction under a lease; see [`Lease::guard_transaction`].
#[derive(Clone, Debug)]
#[must_use = "nothing is written until it is sent"]
pub struct GuardedTransaction {
    lease: Lease,
    /// The indexes of our conditions, behind the work's own operations, whose indexes stay as they were; and their keys.
    ours: Vec<(usize, LockKey)>,
    request: TransactWriteItemsFluentBuilder,
}

impl GuardedTransaction {
    /// Sends it. Where nothing but a renewal of the lease's own row was in the way, it is sent again with the same
    /// `ClientRequestToken`, for as long as the lease is valid.
    ///
    /// # Errors
    ///
    /// [`TransactionError::Lease`] with `LeaseLost` when DynamoDB found that the lease is not held, and nothing was
    /// written. All else is DynamoDB's own answer, unchanged: its cancellation reasons have the indexes of your
    /// operations, with one more behind them.
    ///
    /// # Cancellation
    ///
    /// When it is dropped, the transaction may be written or not. Build it with a `client_request_token` of your own to
    /// be able to send it again.
    pub async fn send(self) -> Result<TransactWriteItemsOutput, TransactionError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.request.clone().send().await {
                Ok(output) => return Ok(output),
                Err(error) => error,
            };
            match Ours::of(&error, &self.ours) {
                Ours::NotHeld(key) => {
                    let reason = "DynamoDB found another owner on its row, or none, and wrote nothing".to_owned();
                    return Err(Error::from(LeaseLost { key: key.clone(), reason }).into());
                }
                Ours::InTheWay => {
                    self.lease.ensure_held()?;
                    tracing::debug!(key = %self.lease.key(), "a renewal was in a transaction's way; it is sent again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Ours::Fine => return Err(TransactionError::DynamoDb(Box::new(error))),
            }
        }
    }
}

/// What became of a transaction under a lease.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum TransactionError {
    /// The lease is not held any more, or the transaction can't be guarded. Nothing was written.
    #[error(transparent)]
    Lease(#[from] Error),
    /// What DynamoDB, or the way there, said.
    #[error("the transaction failed: {}", aws_sdk_dynamodb::error::DisplayErrorContext(.0))]
    DynamoDb(Box<SdkError<TransactWriteItemsError, HttpResponse>>),
}

impl TransactionError {
    /// Why DynamoDB cancelled the transaction, in the order of its operations; empty for any other failure.
    #[must_use]
    pub fn cancellation_reasons(&self) -> &[CancellationReason] {
        match self {
            Self::DynamoDb(error) => reasons(error),
            Self::Lease(_) => &[],
        }
    }
}

/// What a cancelled transaction says about our condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ours<'a> {
    NotHeld(&'a LockKey),
    /// Writes of the keeper's came between, and it is all that did.
    InTheWay,
    Fine,
}

impl<'a> Ours<'a> {
    fn of(error: &SdkError<TransactWriteItemsError, HttpResponse>, ours: &'a [(usize, LockKey)]) -> Self {
        let reasons = reasons(error);
        let code = |index: usize| reasons.get(index).and_then(CancellationReason::code).unwrap_or("None");
        if let Some((_, key)) = ours.iter().find(|(index, _)| code(*index) == "ConditionalCheckFailed") {
            return Self::NotHeld(key);
        }
        let in_the_way = ours.iter().any(|(index, _)| code(*index) == "TransactionConflict");
        let is_ours = |index: usize| ours.iter().any(|(ours, _)| *ours == index);
        let others_fine = (0..reasons.len()).all(|index| is_ours(index) || code(index) == "None");
        if in_the_way && others_fine { Self::InTheWay } else { Self::Fine }
    }
}

fn reasons(error: &SdkError<TransactWriteItemsError, HttpResponse>) -> &[CancellationReason] {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => cancelled.cancellation_reasons(),
        _ => &[],
    }
}

/// The lock's own row.
struct Row<'a> {
    table: &'a Table,
    key: &'a str,
}

impl Row<'_> {
    fn is_worked_on_by(&self, operation: &TransactWriteItem) -> bool {
        let worked_on = [
            operation.put().map(|put| (put.table_name(), put.item())),
            operation.update().map(|update| (update.table_name(), update.key())),
            operation.delete().map(|delete| (delete.table_name(), delete.key())),
            operation.condition_check().map(|check| (check.table_name(), check.key())),
        ];
        worked_on.into_iter().flatten().any(|(table, attributes)| {
            let has =
                |name: &str, value: &str| matches!(attributes.get(name), Some(AttributeValue::S(s)) if s == value);
            let sort_key = self.table.sort_key.as_ref().is_none_or(|(name, value)| has(name, value));
            table_name(table) == table_name(&self.table.name) && has(&self.table.key_attribute, self.key) && sort_key
        })
    }
}

/// A table's name, out of its ARN where it was given so.
fn table_name(table: &str) -> &str {
    table.split_once(":table/").map_or(table, |(_, name)| name)
}
