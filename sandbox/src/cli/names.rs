//! What the command line takes for a table's name and for an endpoint: it is told here what is wrong, not by a request.

use http::Uri;

/// A table's name, as DynamoDB takes it.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn table(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if (3..=255).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no table's name: 3 to 255 letters, digits, `_`, `-` and `.`"))
}

/// An endpoint's URL.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let uri: Option<Uri> = text.parse().ok();
    let has_host = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    };
    if uri.as_ref().is_some_and(has_host) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no URL of an endpoint: write one such as http://localhost:8000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_endpoints_are_what_dynamodb_takes() {
        for good in ["locks", "a.b-C_9", &"x".repeat(255)] {
            assert_eq!(table(good).as_deref(), Ok(good));
        }
        for bad in ["", "ab", "a b c", "tab/le", "löcks", &"x".repeat(256)] {
            assert!(table(bad).is_err(), "{bad}");
        }
        assert!(endpoint("http://localhost:8000").is_ok() && endpoint("https://host/path").is_ok());
        for bad in ["", "localhost:8000", "host", "ftp://host", "http://"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }
}
