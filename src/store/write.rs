//! Sends one conditional write, by whichever of DynamoDB's three operations its format takes.

use std::error::Error;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException as Refusal;
use aws_sdk_dynamodb::types::{
    ConsumedCapacity, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};

use super::Lock;
use super::errors::failure;
use super::row_format::{Answers, Item, Write, primary_key};
use super::witness::Witness;
use crate::protocol::Failure;

/// What came of a write.
pub(super) enum Reply {
    /// It was applied.
    Applied {
        /// The attributes that its answer brings, where the operation tells any.
        updated: Option<Item>,
        /// What it took.
        consumed: Option<Box<ConsumedCapacity>>,
    },
    /// Its condition did not hold for this row.
    Refused(Option<Item>),
    /// There was no usable answer.
    Failed(Failure),
}

/// Sends the write once. Each asks for the row that refuses it, and for what it took.
pub(super) async fn send(client: &Client, lock: &Lock, write: Write, witness: &Witness) -> Reply {
    let (table, key) = (&lock.table, Some(primary_key(&lock.table, &lock.key)));
    let (all_old, total) = (ReturnValuesOnConditionCheckFailure::AllOld, ReturnConsumedCapacity::Total);
    match write {
        Write::Update(on) => {
            let new = match on.answers {
                Answers::Written => ReturnValue::UpdatedNew,
                Answers::Row => ReturnValue::AllNew,
                Answers::Nothing => ReturnValue::None,
            };
            let request = client.update_item().table_name(&table.name).set_key(key).update_expression(on.update());
            let request = request.condition_expression(on.condition).set_expression_attribute_names(Some(on.names));
            let request = request.set_expression_attribute_values((!on.values.is_empty()).then_some(on.values));
            let request = request.return_values(new).return_values_on_condition_check_failure(all_old);
            let sent = request.return_consumed_capacity(total).customize().interceptor(witness.clone()).send().await;
            sent.map_or_else(
                |error| unapplied(&error, witness, "UpdateItem", lock),
                |output| Reply::Applied {
                    consumed: output.consumed_capacity.map(Box::new),
                    updated: output.attributes,
                },
            )
        }
        Write::Put(item, on) => {
            let request = client.put_item().table_name(&table.name).set_item(Some(item));
            let request = request.condition_expression(on.condition).set_expression_attribute_names(Some(on.names));
            let request = request.set_expression_attribute_values((!on.values.is_empty()).then_some(on.values));
            let request = request.return_values_on_condition_check_failure(all_old);
            let sent = request.return_consumed_capacity(total).customize().interceptor(witness.clone()).send().await;
            sent.map_or_else(
                |error| unapplied(&error, witness, "PutItem", lock),
                |output| Reply::Applied { consumed: output.consumed_capacity.map(Box::new), updated: None },
            )
        }
        Write::Delete(on) => {
            let request = client.delete_item().table_name(&table.name).set_key(key);
            let request = request.condition_expression(on.condition).set_expression_attribute_names(Some(on.names));
            let request = request.set_expression_attribute_values((!on.values.is_empty()).then_some(on.values));
            let request = request.return_values_on_condition_check_failure(all_old);
            let sent = request.return_consumed_capacity(total).customize().interceptor(witness.clone()).send().await;
            sent.map_or_else(
                |error| unapplied(&error, witness, "DeleteItem", lock),
                |output| Reply::Applied { consumed: output.consumed_capacity.map(Box::new), updated: None },
            )
        }
    }
}

fn unapplied<E>(error: &SdkError<E, HttpResponse>, witness: &Witness, operation: &str, lock: &Lock) -> Reply
where
    E: MayRefuse + ProvideErrorMetadata + Error + 'static,
{
    match error.as_service_error().and_then(MayRefuse::refusal) {
        Some(refusal) => Reply::Refused(refusal.item().filter(|item| !item.is_empty()).cloned()),
        None => Reply::Failed(failure(error, witness, operation, &lock.table)),
    }
}

/// The errors of the three operations, of which one says that the condition did not hold.
trait MayRefuse {
    fn refusal(&self) -> Option<&Refusal>;
}

macro_rules! may_refuse {
    ($($error:ident),+) => {$(
        impl MayRefuse for $error {
            fn refusal(&self) -> Option<&Refusal> {
                match self {
                    Self::ConditionalCheckFailedException(refusal) => Some(refusal),
                    _ => None,
                }
            }
        }
    )+};
}

may_refuse!(UpdateItemError, PutItemError, DeleteItemError);
