//! What is to be locked, a key in a table, checked; and one name for each row that can be.

use crate::protocol::{Format, Subject};
use crate::session::Table;

/// The longest key, in bytes: what DynamoDB takes for a partition key.
pub(super) const MAX_KEY: usize = 2048;
/// What DynamoDB takes for a sort key.
const MAX_SORT_KEY: usize = 1024;
/// DynamoDB's longest attribute name for a key; longer than any table name or ARN.
const MAX_NAME: usize = 255;
/// Checks what is to be locked.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    check_length("key", key, MAX_KEY)
}

/// One name for each row that can be locked: each part is framed by its length, so that no two rows share one.
pub(super) fn subject(table: &Table, key: &str) -> Subject {
    let (sort_name, sort_value) = table.sort_key.as_ref().map_or(("", ""), |(name, value)| (name, value));
    let mut subject = String::new();
    for part in [&table.name, &table.key_attribute, sort_name, sort_value] {
        subject.push_str(&part.len().to_string());
        subject.push(':');
        subject.push_str(part);
    }
    subject.push_str(key);
    subject.into()
}

/// Checks a table's description; answers its row format.
pub(super) fn check_table(table: &Table) -> Result<Format, String> {
    // A table's ARN names the account and the Region as well.
    check_length("table.name", &table.name, MAX_SORT_KEY)?;
    check_length("table.key_attribute", &table.key_attribute, MAX_NAME)?;
    if let Some((name, value)) = &table.sort_key {
        check_length("table.sort_key", name, MAX_NAME)?;
        check_length("table.sort_key", value, MAX_SORT_KEY)?;
    }
    let format: Format = table.format.parse().map_err(|unknown| format!("`table.format`: {unknown}"))?;
    table.misfit(format).map_or(Ok(format), |misfit| Err(format!("`table.format`: {misfit}")))
}

fn check_length(field: &str, value: &str, most: usize) -> Result<(), String> {
    match value.len() {
        1.. if value.len() <= most => Ok(()),
        length => Err(format!("`{field}` must have 1 to {most} bytes, not {length}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_never_share_a_subject() {
        let a = subject(&Table::new("locks"), "a");
        let b = subject(&Table { sort_key: Some(("a".to_owned(), String::new())), ..Table::new("locks") }, "");
        assert_ne!(a, b);
        assert_ne!(a, subject(&Table::new("lock"), "sa"));
        assert_eq!(a, subject(&Table::new("locks"), "a"));
    }
}
