//! The key room's tests: its grammar, its rules for values, and what must hold for any template and event.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod parse;
mod properties;
mod resolve;

use super::{ContextValues, LockKey, Namespace, ResolveError, Template};

const CONTEXT: ContextValues<'static> =
    ContextValues { function_name: "billing", function_version: "7", tenant_id: Some("acme"), request_id: "r-1" };

fn resolve(template: &str, event: &str) -> Result<LockKey, ResolveError> {
    Template::parse(template).unwrap().resolve(None, event, &CONTEXT)
}

fn key(template: &str, event: &str) -> String {
    resolve(template, event).unwrap().into()
}

#[test]
fn a_key_has_1_to_2048_bytes_wherever_it_comes_from() {
    assert!(LockKey::new("").is_err());
    assert_eq!(LockKey::new("é".repeat(1024)).unwrap().as_str().len(), 2048);
    let error = LockKey::new("é".repeat(1024) + "x").unwrap_err();
    assert!(error.to_string().contains("2049 bytes"), "{error}");

    assert_eq!(serde_json::to_string(&LockKey::new("a\"b").unwrap()).unwrap(), r#""a\"b""#);
    assert_eq!(serde_json::from_str::<LockKey>(r#""a\"b""#).unwrap().as_str(), "a\"b");
    assert!(serde_json::from_str::<LockKey>(r#""""#).is_err());
    assert!(serde_json::from_str::<LockKey>(&format!("\"{}\"", "x".repeat(2049))).is_err());
}

#[test]
fn a_namespace_is_one_plain_word() {
    for good in ["a", "billing-prod", "Team_7.eu", &"x".repeat(255)] {
        assert_eq!(Namespace::parse(good).unwrap().as_str(), good);
    }
    for (bad, said) in [
        ("", "is empty"),
        ("a/b", "'/' at byte 1"),
        ("a*", "'*' at byte 1"),
        ("a b", "' ' at byte 1"),
        ("aé", "'é' at byte 1"),
        ("${x}", "'$' at byte 0"),
        (&*"x".repeat(256), "256 bytes"),
    ] {
        let error = Namespace::parse(bad).unwrap_err().to_string();
        assert!(error.contains(said), "{bad}: {error}");
    }
}
