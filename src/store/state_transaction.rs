//! Sends what is asked about a state: a consistent read, or one transaction with the lock's row.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, ReturnConsumedCapacity};

use super::Lock;
use super::errors::failure;
use super::leasehold_state_v1::{self as format, ROW, STATE};
use super::row_format::{RowFormat, primary_key};
use super::state::{Consumed, StateOutcome, StateRequest, StateWrite, state_key};
use super::text::printable;
use super::usage::Counters;
use super::witness::Witness;
use crate::protocol::{Failure, FailureKind};

/// Sends one request, once.
pub(super) async fn send(
    client: &Client,
    rows: &dyn RowFormat,
    lock: &Lock,
    request: &StateRequest,
    witness: &Witness,
    usage: &Counters,
) -> (StateOutcome, Consumed) {
    if !rows.format().abilities().state {
        let message = format!("the row format `{}` has no place for a state", rows.format());
        return nothing(StateOutcome::Failed(Failure::new(FailureKind::Rejected, message)));
    }
    match request {
        StateRequest::Read => read(client, lock, witness, usage).await,
        StateRequest::Write(write) => transact(client, rows, lock, write, witness, usage).await,
    }
}

async fn read(client: &Client, lock: &Lock, witness: &Witness, usage: &Counters) -> (StateOutcome, Consumed) {
    let reply = client
        .get_item()
        .table_name(&lock.table.name)
        .set_key(Some(primary_key(&lock.table, &state_key(&lock.key))))
        .consistent_read(true)
        .return_consumed_capacity(ReturnConsumedCapacity::Total)
        .customize()
        .interceptor(witness.clone())
        .send()
        .await;
    match reply {
        Ok(output) => {
            let reads = usage.read(output.consumed_capacity());
            (StateOutcome::Read(format::decode(output.item())), Consumed { writes: None, reads })
        }
        Err(error) => nothing(StateOutcome::Failed(failure(&error, witness, "GetItem", &lock.table))),
    }
}

async fn transact(
    client: &Client,
    rows: &dyn RowFormat,
    lock: &Lock,
    write: &StateWrite,
    witness: &Witness,
    usage: &Counters,
) -> (StateOutcome, Consumed) {
    let operations = match format::operations(lock, write) {
        Ok(operations) => operations,
        Err(error) => return nothing(StateOutcome::Failed(Failure::new(FailureKind::Rejected, error.to_string()))),
    };
    let reply = client
        .transact_write_items()
        .set_transact_items(Some(operations))
        .client_request_token(write.id.to_string())
        .return_consumed_capacity(ReturnConsumedCapacity::Total)
        .customize()
        .interceptor(witness.clone())
        .send()
        .await;
    match reply {
        Ok(output) => (StateOutcome::Written, usage.transacted(output.consumed_capacity())),
        Err(error) => nothing(unapplied(&error, rows, lock, write, witness)),
    }
}

/// DynamoDB tells nothing of what consumed without being applied.
fn nothing(outcome: StateOutcome) -> (StateOutcome, Consumed) {
    (outcome, Consumed::default())
}

fn unapplied(
    error: &SdkError<TransactWriteItemsError, HttpResponse>,
    rows: &dyn RowFormat,
    lock: &Lock,
    write: &StateWrite,
    witness: &Witness,
) -> StateOutcome {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        let mut failure = failure(error, witness, "TransactWriteItems", &lock.table);
        if failure.kind == FailureKind::AccessDenied {
            failure.message.push_str("; to save a state it needs dynamodb:ConditionCheckItem as well");
        }
        return StateOutcome::Failed(failure);
    };
    let reasons = cancelled.cancellation_reasons();
    let refused = |at: usize| reasons.get(at).filter(|reason| code(reason) == "ConditionalCheckFailed");
    // Who sent it before and was not answered finds its own write there.
    if refused(STATE).is_some_and(|reason| format::was_written_by(reason.item(), write)) {
        return StateOutcome::Written;
    }
    if let Some(reason) = refused(ROW) {
        return StateOutcome::NotHeld(rows.decode(reason.item()));
    }
    if let Some(reason) = refused(STATE) {
        return StateOutcome::Changed(format::decode(reason.item()));
    }
    StateOutcome::Failed(cancellation(reasons, lock))
}

/// Why a transaction was cancelled whose conditions held.
fn cancellation(reasons: &[CancellationReason], lock: &Lock) -> Failure {
    let reason = reasons.iter().find(|reason| code(reason) != "None");
    let (code, message) = reason.map_or(("no reason", ""), |reason| (code(reason), reason.message().unwrap_or("")));
    let kind = match code {
        "TransactionConflict" => FailureKind::TransactionConflict,
        "ProvisionedThroughputExceeded" | "ThrottlingError" | "RequestLimitExceeded" => FailureKind::Throttled,
        _ => FailureKind::Rejected,
    };
    let (table, code, message) = (printable(&lock.table.name, 256), printable(code, 100), printable(message, 600));
    Failure::new(kind, format!("TransactWriteItems on table `{table}` was cancelled: {code} {message}"))
}

fn code(reason: &CancellationReason) -> &str {
    reason.code().unwrap_or("None")
}
