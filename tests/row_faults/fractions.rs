//! A free row whose version is a fraction, which no condition can tell from an integer: the attempt is written before the
//! mistake is seen, so it is told, and freed again, in one request more.

use std::time::Duration;

use serde_json::{Value, json};

use crate::items::{Met, assert_one_line, attempt, free, n, with};
use crate::played::order;
use crate::stage::Stage;
use crate::support::fault_server::{Fault, FaultServer};

#[tokio::test]
async fn a_fraction_is_told_and_the_row_freed_again() {
    let cases = [
        ("1.5", "2.5"),
        ("0.5", "1.5"),
        ("7.0000001", "8.0000001"),
        ("4611686018427387903.5", "4611686018427387904.5"),
        ("1.0000000000000000000000000000000000001", "2.0000000000000000000000000000000000001"),
    ];
    for (version, next) in cases {
        let row = with(free(), "version", n(version));
        let Met { seen, after, .. } = attempt(&row).await;
        assert_eq!((seen.error.as_str(), seen.requests), ("MalformedRow", 2), "{version}: {seen:?}");
        let says = format!(
            "in table `locks` the row's attribute `version` is {next}, not an integer from 0 to 2^63 - 1; look at the \
             row and delete it"
        );
        assert!(seen.message.contains(&says), "{}", seen.message);
        assert_one_line(&seen.message);
        // Nobody's again. Without `ttl`, for no moment is known to be safe: it stays until somebody looks.
        let expected = with(row, "version", n(next));
        let expected = crate::items::without(expected, "ttl");
        assert_eq!(after, Some(expected), "{version}");
    }
}

/// One more than this has 39 digits, or 130 decimals: DynamoDB documents 38 digits and leaves open whether it rounds or
/// refuses.
#[tokio::test]
async fn one_more_than_a_number_of_38_digits_is_never_a_grant_that_counts_on_a_fraction() {
    for version in ["9.9999999999999999999999999999999999999", "1e-130"] {
        let Met { seen, after, .. } = attempt(&with(free(), "version", n(version))).await;
        assert_eq!(seen.error, "MalformedRow", "{version}: {seen:?}");
        assert!(!after.unwrap().contains_key("owner"), "{version}");
    }
    let refused =
        Fault::error(400, "ValidationException", "Attempting to store more than 38 significant digits in a Number");
    let server = FaultServer::always(refused);
    let stage = Stage::over(server.url());
    let layer = stage.layer::<Value>("orders:{id}").build().unwrap();
    let seen = stage.call(&layer, order()).await;
    assert_eq!((seen.error.as_str(), seen.requests), ("MalformedRow", 1), "{seen:?}");
    assert!(seen.message.contains("the row's `version` can't be counted on from: look at the row"), "{}", seen.message);
    assert_one_line(&seen.message);
}

/// An attempt whose answer was lost may have landed on the fraction, too: both are freed by the one release.
#[tokio::test]
async fn attempts_that_landed_unseen_are_freed_along_with_it() {
    let server = FaultServer::start(|number| match number {
        0 => Fault::error(500, "InternalServerError", "oops"),
        1 => Fault::answer(200, r#"{"Attributes":{"version":{"N":"3.5"}}}"#),
        _ => Fault::answer(200, "{}"),
    });
    let stage = Stage::over(server.url());
    let layer = stage.layer::<Value>("orders:{id}").max_wait(Duration::from_secs(20)).build().unwrap();
    let seen = stage.call(&layer, order()).await;
    assert_eq!((seen.error.as_str(), seen.requests), ("MalformedRow", 3), "{seen:?}");
    assert!(seen.message.contains("`version` is 3.5"), "{}", seen.message);

    let [first, second, release] = &server.seen()[..] else { panic!("{:?}", server.seen()) };
    let owner = |body: &Value| body["ExpressionAttributeValues"][":owner"]["S"].clone();
    let freed = &release.body["ExpressionAttributeValues"];
    let mut freed: Vec<_> = freed.as_object().unwrap().values().map(|value| value["S"].clone()).collect();
    let mut owners = vec![owner(&first.body), owner(&second.body)];
    freed.sort_by_key(Value::to_string);
    owners.sort_by_key(Value::to_string);
    assert_eq!(freed, owners, "{release:?}");
    assert_ne!(owners[0], json!(null));
}
