//! What a request on its way to DynamoDB is, told from its own bytes.

use hyper::HeaderMap;
use serde_json::Value;

/// What a request does to a lock's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Takes the row if it is free.
    Acquire,
    /// Takes the row from a holder whose lease is over.
    TakeOver,
    /// Extends a lease.
    Renew,
    /// Frees the row.
    Release,
    /// Keeps the row held, for nobody, until a minimum is over.
    Park,
    /// Takes the next number of those who wait.
    Ticket,
    /// Reads the row.
    Read,
    /// Reads the state beside the row.
    ReadState,
    /// Writes the state beside the row, in one transaction with the row's condition.
    SaveState,
    /// Frees the row and writes the state, in one transaction.
    ReleaseWithState,
    /// Anything else.
    Other,
}

/// One request as it passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passing {
    /// Counts the proxy's requests from 0.
    pub number: u64,
    /// What it does.
    pub step: Step,
    /// DynamoDB's name for the operation, as `UpdateItem`.
    pub operation: String,
    /// The lock's key, where the request names one.
    pub key: Option<String>,
    /// The owner that a write gives the row to or asks for.
    pub owner: Option<String>,
}

impl Passing {
    /// A request that is no request for a lock is a [`Step::Other`], whatever is in it.
    pub(super) fn of(number: u64, headers: &HeaderMap, body: &[u8]) -> Self {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        Self { number, step: step(&operation, &body), key: key(&body), owner: owner(&body), operation }
    }
}

fn step(operation: &str, body: &Value) -> Step {
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let (update, condition) = (text("UpdateExpression"), text("ConditionExpression"));
    match operation {
        "GetItem" if key(body).is_some_and(|key| key.ends_with(STATE)) => Step::ReadState,
        "GetItem" => Step::Read,
        "TransactWriteItems" if writes_state(body) => {
            let frees = body.pointer("/TransactItems/0/Update").is_some();
            if frees { Step::ReleaseWithState } else { Step::SaveState }
        }
        "DeleteItem" => Step::Release,
        "UpdateItem" if sets(update, "#owner") && update.contains("#version = :version") => Step::Park,
        // Who gives a row away writes its owner; whether it may be absent or free tells the two ways apart.
        "UpdateItem" if sets(update, "#owner") => taking(condition),
        "UpdateItem" if update.contains("#owner") => Step::Release,
        "UpdateItem" if sets(update, "#version") => Step::Renew,
        "UpdateItem" if update.contains("#tickets") => Step::Ticket,
        "PutItem" => taking(condition),
        _ => Step::Other,
    }
}

/// What a state's key ends with.
const STATE: &str = "#state";

/// Whether the transaction is one of a lock's row, first, and its state.
fn writes_state(body: &Value) -> bool {
    let state = body.pointer("/TransactItems/1/Update").and_then(key);
    state.is_some_and(|key| key.ends_with(STATE))
}

fn taking(condition: &str) -> Step {
    // Some formats' guards say as well what else is not on the row.
    if condition.contains("attribute_not_exists(#key)") { Step::Acquire } else { Step::TakeOver }
}

/// Whether the expression assigns to the attribute.
fn sets(expression: &str, alias: &str) -> bool {
    expression.contains(&format!("{alias} = "))
}

/// The first key attribute that is a string: a lock table's sort key, if it has one, is the same for every row.
fn key(body: &Value) -> Option<String> {
    let row = ["ConditionCheck", "Update"].iter().find_map(|kind| body.pointer(&format!("/TransactItems/0/{kind}")));
    let body = row.unwrap_or(body);
    let key = body.get("Key").or_else(|| body.get("Item"))?.as_object()?;
    let named = key.get("key").and_then(|value| value["S"].as_str());
    named.or_else(|| key.values().find_map(|value| value["S"].as_str())).map(str::to_owned)
}

fn owner(body: &Value) -> Option<String> {
    if let Some(owner) = body.pointer("/Item/owner/S") {
        return owner.as_str().map(str::to_owned);
    }
    let values = body.get("ExpressionAttributeValues")?.as_object()?;
    let value = [":owner", ":seen_owner", ":u0"].iter().find_map(|name| values.get(*name))?;
    value["S"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passing(operation: &str, body: Value) -> Passing {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", format!("DynamoDB_20120810.{operation}").parse().unwrap());
        Passing::of(7, &headers, body.to_string().as_bytes())
    }

    #[test]
    fn every_step_of_a_lock_is_told_by_its_expressions() {
        let update = |update: &str, condition: &str| {
            json!({
                "Key": { "key": { "S": "orders:1" } },
                "UpdateExpression": update,
                "ConditionExpression": condition,
                "ExpressionAttributeValues": { ":owner": { "S": "me" } },
            })
        };
        let steps = [
            ("SET #owner = :owner, #version = if_not_exists(#version, :seed) + :one", "attribute_not_exists(#key)"),
            ("SET #owner = :owner, #version = if_not_exists(#version, :seed) + :one", "#owner = :seen_owner"),
            ("SET #version = :version REMOVE #expires_at, #ttl", "#owner = :seen_owner"),
            ("SET #owner = :owner, #version = :version REMOVE #expires_at, #ttl", "#owner = :seen_owner"),
            ("SET #ttl = :ttl REMOVE #owner, #holder", "#owner IN (:u0)"),
        ];
        let found = steps.map(|(expression, condition)| passing("UpdateItem", update(expression, condition)));
        assert_eq!(
            found.each_ref().map(|passing| passing.step),
            [Step::Acquire, Step::TakeOver, Step::Renew, Step::Park, Step::Release]
        );
        assert_eq!(found[0].key.as_deref(), Some("orders:1"));
        assert_eq!(found[0].owner.as_deref(), Some("me"));
        assert_eq!(passing("GetItem", json!({})).step, Step::Read);
        let ticket = json!({ "UpdateExpression": "ADD #tickets :tickets" });
        assert_eq!(passing("UpdateItem", ticket).step, Step::Ticket);
        assert_eq!(passing("DescribeTable", json!({})).step, Step::Other);
    }

    #[test]
    fn formats_that_put_and_delete_rows_are_told_as_well() {
        let put = |condition: &str| json!({ "Item": { "key": { "S": "k" }, "owner": { "S": "me" } }, "ConditionExpression": condition });
        let acquire = passing("PutItem", put("attribute_not_exists(#key)"));
        assert_eq!((acquire.step, acquire.owner.as_deref()), (Step::Acquire, Some("me")));
        for guard in ["#owner = :seen_owner", "attribute_not_exists(#format) AND #owner = :seen_owner"] {
            assert_eq!(passing("PutItem", put(guard)).step, Step::TakeOver);
        }
        assert_eq!(passing("DeleteItem", json!({})).step, Step::Release);
    }

    #[test]
    fn what_is_done_to_a_state_is_told_and_names_the_locks_key() {
        let item = |kind: &str, key: &str| json!({ kind: { "Key": { "key": { "S": key } } } });
        let transaction =
            |row: &str| json!({ "TransactItems": [item(row, "orders:1"), item("Update", "orders:1#state")] });
        let saves = passing("TransactWriteItems", transaction("ConditionCheck"));
        assert_eq!((saves.step, saves.key.as_deref()), (Step::SaveState, Some("orders:1")));
        let leaves = passing("TransactWriteItems", transaction("Update"));
        assert_eq!((leaves.step, leaves.key.as_deref()), (Step::ReleaseWithState, Some("orders:1")));
        let other = json!({ "TransactItems": [item("Put", "orders:1")] });
        assert_eq!(passing("TransactWriteItems", other).step, Step::Other);
        let read = passing("GetItem", json!({ "Key": { "key": { "S": "orders:1#state" } } }));
        assert_eq!(read.step, Step::ReadState);
    }

    #[test]
    fn bytes_that_are_no_request_are_other() {
        assert_eq!(Passing::of(0, &HeaderMap::new(), b"\xff{").step, Step::Other);
    }
}
