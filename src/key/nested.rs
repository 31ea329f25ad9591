//! JSON within a string: message bodies, and Kinesis' data in base64.
//!
//! Only objects and arrays are looked for: a text such as `17` or `"A-1"` is worth the same as a string and as JSON, and is
//! left as its sender wrote it. Neither begins with a character that base64 has, so that nothing is both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;

use super::found::decoded;

/// Looks into a JSON string: [`opened`], for who wants that. Whoever does not need not carry it along.
pub(crate) type Open = fn(&str) -> Option<String>;

/// The JSON object or array that this JSON string holds, if it does.
pub(crate) fn opened(json: &str) -> Option<String> {
    let text = decoded(json)?;
    if has_parts(&text) {
        return Some(text.into_owned());
    }
    let text = String::from_utf8(STANDARD.decode(text.as_bytes()).ok()?).ok()?;
    has_parts(&text).then_some(text)
}

fn has_parts(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_arrays_are_opened_as_they_are_or_from_base64() {
        for text in [r#"{"id":17}"#, " [1]\n"] {
            let json = |text: &str| serde_json::Value::from(text).to_string();
            assert_eq!(opened(&json(text)).as_deref(), Some(text));
            assert_eq!(opened(&json(&STANDARD.encode(text))).as_deref(), Some(text));
        }
    }

    #[test]
    fn everything_else_stays_a_string() {
        for json in [r#""""#, r#""17""#, r#""\"A-1\"""#, r#""{""#, r#""{} and more""#, r#""MTc=""#, r#""\ud800""#] {
            assert_eq!(opened(json), None, "{json}");
        }
    }
}
