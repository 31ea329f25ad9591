//! Rows as big as DynamoDB takes them.

use crate::items::{KEY, Met, assert_refused, attempt, free, held, item, n, s, with};
use crate::support::embedded_dynamodb::Item;

/// The limit of an item, names and values together.
const LIMIT: usize = 400 * 1024;

/// Fills a row up so that it has this many bytes less than the limit. Text and names count their bytes; what else is on
/// these rows is less than 400 bytes.
fn filled(row: Item, left: usize) -> Item {
    with(row, "photo", s("x".repeat(LIMIT - 400 - left)))
}

#[tokio::test]
async fn a_foreign_row_of_400_kb_is_told_like_any_other() {
    let row = filled(item(&[("key", s(KEY))]), 0);
    assert_refused("foreign", &attempt(&row).await, "ForeignRow", "it has no attribute `format`");
}

#[tokio::test]
async fn a_held_row_of_400_kb_is_waited_for_like_any_other() {
    let row = filled(held(), 0);
    assert_refused("held", &attempt(&row).await, "LeaseBusy", "is held by billing");
}

#[tokio::test]
async fn a_free_row_with_room_left_is_taken_and_keeps_what_else_stands_on_it() {
    let row = filled(free(), 2_000);
    let Met { seen, after, .. } = attempt(&row).await;
    assert_eq!((seen.error.as_str(), seen.requests), ("none", 2), "{}", seen.message);
    let after = after.unwrap();
    assert_eq!((&after["photo"], &after["version"]), (&row["photo"], &n(1_800_000_000_001_u64)));
}

#[tokio::test]
async fn a_free_row_without_room_for_a_holder_is_told_and_left_as_it_is() {
    let row = with(free(), "photo", s("x".repeat(LIMIT - 130)));
    let says = "the row has reached DynamoDB's limit of 400 KB by what else was put on it: remove that, or delete the row \
                once nobody works on its key";
    assert_refused("full", &attempt(&row).await, "MalformedRow", says);
}
