//! The rows that are left in the end, looked at without the product's own reader.

use std::collections::BTreeMap;

use super::Break;
use crate::Row;

/// Every row is free and well-formed, and its version is not below the highest token that was given on its key.
pub(super) fn check(rows: &[Row], highest: &BTreeMap<String, u64>) -> Vec<Break> {
    let mut breaks = Vec::new();
    for row in rows {
        let key = row.get("key").and_then(|value| value.as_s().ok()).map(String::as_str).unwrap_or_default();
        let mut broken = |what: String| breaks.push(Break::new("rows stay well-formed", Some(key), what));
        let number = |name: &str| row.get(name).and_then(|value| value.as_n().ok()?.parse::<u64>().ok());
        let format = row.get("format").and_then(|value| value.as_s().ok());
        if format.map(String::as_str) != Some("leasehold/1") {
            broken(format!("format is {format:?}"));
        }
        match number("version") {
            None => broken(format!("version is {:?}", row.get("version"))),
            Some(version) => {
                if let Some(token) = highest.get(key).filter(|token| version < **token) {
                    broken(format!("version {version} is below the token {token} that was given"));
                }
            }
        }
        if number("lease_ms").is_none() {
            broken(format!("lease_ms is {:?}", row.get("lease_ms")));
        }
        for name in ["owner", "holder", "expires_at"] {
            if let Some(value) = row.get(name) {
                broken(format!("is not free: {name} is {value:?}"));
            }
        }
        if row.contains_key("ttl") && number("ttl").is_none() {
            broken(format!("ttl is {:?}", row.get("ttl")));
        }
    }
    breaks
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;

    use super::*;

    fn row(pairs: &[(&str, AttributeValue)]) -> Row {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn a_free_row_is_well_and_others_are_not() {
        let (s, n) = (|text: &str| AttributeValue::S(text.to_owned()), |text: &str| AttributeValue::N(text.to_owned()));
        let free = row(&[("key", s("k")), ("format", s("leasehold/1")), ("version", n("7")), ("lease_ms", n("1000"))]);
        let highest = BTreeMap::from([("k".to_owned(), 7)]);
        assert_eq!(check(std::slice::from_ref(&free), &highest), []);
        assert_eq!(check(std::slice::from_ref(&free), &BTreeMap::from([("k".to_owned(), 8)])).len(), 1);
        for (name, value) in [("owner", s("me")), ("version", s("7")), ("lease_ms", s("x")), ("format", s("other"))] {
            let mut broken = free.clone();
            broken.insert(name.to_owned(), value);
            assert_eq!(check(&[broken], &highest).len(), 1, "{name}");
        }
    }
}
