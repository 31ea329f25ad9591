//! The item format `leasehold-state/1`: a state beside its lock's row, in the same table.
//!
//! | attribute | type | |
//! |---|---|---|
//! | `key` (settable) | S | the lock's key and `#state` |
//! | `format` | S | `leasehold-state/1` |
//! | `counter` | N | one higher with every write |
//! | `value` | S | the state's JSON; none where it was taken away |
//! | `owner` | S | the holder that wrote it |
//! | `write` | S | the transaction that wrote it |
//! | `written_at` | N | when, by that holder's wall clock, in epoch milliseconds; for people |
//! | `ttl` | N | epoch seconds for DynamoDB's TTL; only with a retention, or where there is no state |

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ReturnValuesOnConditionCheckFailure as OnFailure, TransactWriteItem, Update,
};

use super::Lock;
use super::attributes::{MAX_FOUND, kind, malformed, natural, required};
use super::row_format::{Expressions, Item, number, primary_key, text};
use super::state::{SeenState, StateItem, StateWrite, state_key};
use super::text::printable;
use crate::protocol::{Format, Unusable};
use crate::session::RawState;

/// What `format` says on an item of this format. No row format has this name, so that a lock whose key happens to be a
/// state's meets a foreign row, and the other way round.
pub(super) const FORMAT: &str = "leasehold-state/1";

/// No counter comes near it: it begins with epoch milliseconds.
const HIGHEST: u64 = 1 << 62;

/// The position of the lock's row in a transaction, and that of the state.
pub(super) const ROW: usize = 0;
/// See [`ROW`].
pub(super) const STATE: usize = 1;

/// The transaction's two operations, the lock's row first.
pub(super) fn operations(lock: &Lock, write: &StateWrite) -> Result<Vec<TransactWriteItem>, BuildError> {
    let all_old = OnFailure::AllOld;
    let (table, key) = (&lock.table.name, primary_key(&lock.table, &lock.key));
    let row = TransactWriteItem::builder();
    let row = if write.release.is_some() {
        let on = release(lock, write);
        let update = Update::builder().table_name(table).set_key(Some(key)).update_expression(on.update());
        let update = update.condition_expression(on.condition).set_expression_attribute_names(Some(on.names));
        let update = update.set_expression_attribute_values(Some(on.values));
        row.update(update.return_values_on_condition_check_failure(all_old.clone()).build()?)
    } else {
        let mut on = Expressions::default();
        let (owner, me) = (on.name("owner"), on.value("me", text(write.owner)));
        let check = ConditionCheck::builder().table_name(table).set_key(Some(key));
        let check = check.condition_expression(format!("{owner} = {me}"));
        let check = check.set_expression_attribute_names(Some(on.names));
        let check = check.set_expression_attribute_values(Some(on.values));
        row.condition_check(check.return_values_on_condition_check_failure(all_old.clone()).build()?)
    };
    let on = change(lock, write);
    let state = Update::builder().table_name(table).set_key(Some(primary_key(&lock.table, &state_key(&lock.key))));
    let state = state.update_expression(on.update()).condition_expression(on.condition);
    let state = state.set_expression_attribute_names(Some(on.names));
    let state = state.set_expression_attribute_values(Some(on.values));
    let state = TransactWriteItem::builder().update(state.return_values_on_condition_check_failure(all_old).build()?);
    Ok(vec![row.build(), state.build()])
}

/// The release as the row's own format writes it.
fn release(lock: &Lock, write: &StateWrite) -> Expressions {
    let (ttl, hold) = write.release.map_or((None, None), |release| (release.ttl, release.hold));
    super::leasehold_v1::release(lock, &[write.owner], ttl, hold)
}

fn change(lock: &Lock, write: &StateWrite) -> Expressions {
    let mut update = Expressions::default();
    update.set("format", AttributeValue::S(FORMAT.to_owned()));
    match write.counter() {
        Some(counter) => update.set("counter", number(counter)),
        None => {
            let (counter, one) = (update.name("counter"), update.value("one", number(1)));
            let seed = update.value("seed", number(write.at.as_millis()));
            update.set_to("counter", &format!("if_not_exists({counter}, {seed}) + {one}"));
        }
    }
    update.set("owner", text(write.owner));
    update.set("write", text(write.id));
    update.set("written_at", number(write.at.as_millis()));
    update.set_or_remove("value", write.value.as_ref().map(|value| AttributeValue::S(value.get().to_owned())));
    update.set_or_remove("ttl", write.ttl.map(number));
    let absent = format!("attribute_not_exists({})", update.name_as("key", &lock.table.key_attribute));
    let seen = match write.seen {
        SeenState::Absent => {
            update.condition = absent;
            return update;
        }
        SeenState::Unread => {
            let type_name = update.value("number", AttributeValue::S("N".to_owned()));
            format!("attribute_type(#counter, {type_name})")
        }
        SeenState::Counter(seen) => format!("#counter = {}", update.value("seen", number(seen))),
    };
    // Once it was seen it may be swept meanwhile, by its retention; who holds the lock is the only one to write it.
    update.condition = format!("{absent} OR (#format = :format AND {seen})");
    update
}

/// What an item means. Total: whatever stands in it, the answer is a [`StateItem`].
pub(super) fn decode(item: Option<&Item>) -> StateItem {
    let Some(item) = item.filter(|item| !item.is_empty()) else { return StateItem::Absent };
    let found = match item.get("format") {
        Some(AttributeValue::S(format)) if format == FORMAT => {
            return ours(item).unwrap_or_else(StateItem::Unusable);
        }
        Some(AttributeValue::S(format)) => Some(printable(format, MAX_FOUND)),
        Some(other) => Some(format!("({})", kind(other))),
        None => None,
    };
    StateItem::Unusable(Unusable::Foreign { expected: Format::LeaseholdV1, format: found })
}

fn ours(item: &Item) -> Result<StateItem, Unusable> {
    let counter = required(item, "counter", natural)?;
    if counter > HIGHEST {
        return Err(malformed("counter", format!("is {counter}, too high to count on from")));
    }
    let value = item.get("value").map(state).transpose().map_err(|found| malformed("value", found))?.flatten();
    // DynamoDB sweeps by it whatever it says; what is no moment ends nothing.
    let ttl = item.get("ttl").and_then(|ttl| natural(ttl).ok());
    Ok(StateItem::Kept { counter, value, ttl })
}

fn state(value: &AttributeValue) -> Result<Option<RawState>, String> {
    let AttributeValue::S(json) = value else {
        return Err(format!("is {}, not a string", kind(value)));
    };
    if json.len() > RawState::MAX_BYTES {
        return Err(format!("has {} bytes, more than {}", json.len(), RawState::MAX_BYTES));
    }
    let state = RawState::parse(json).map_err(|error| format!("is no JSON: {error}"))?;
    Ok(state.unless_null())
}

/// Whether the transaction of this write put the item there.
pub(super) fn was_written_by(item: Option<&Item>, write: &StateWrite) -> bool {
    item.and_then(|item| item.get("write")) == Some(&text(write.id))
}
