//! What an event has where a path ends: the names that its author may have meant.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::nested::opened;
use super::path::{Segment, is_plain, quoted};

/// How many names are told, and how much of each.
const MOST_NAMES: usize = 10;
const LONGEST_NAME: usize = 48;

/// The names of the object that stands after these steps, for people; `None` where there is no object, or an empty one.
/// With `into_strings` a step may lead into a string that holds JSON.
pub(crate) fn names(event: &str, steps: &[Segment], into_strings: bool) -> Option<String> {
    let inside = |json: &str| (into_strings && json.trim_start().starts_with('"')).then(|| opened(json)).flatten();
    let Some((step, rest)) = steps.split_first() else {
        return match inside(event) {
            Some(event) => names(&event, steps, false),
            None => told(&serde_json::from_str(event).ok()?),
        };
    };
    if let Some(event) = inside(event) {
        return names(&event, steps, true);
    }
    let at: &RawValue = match step {
        Segment::Name(name) => {
            let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(event).ok()?;
            fields.remove(name)?
        }
        Segment::Index(index) => {
            let elements: Vec<&RawValue> = serde_json::from_str(event).ok()?;
            elements.get(*index)?
        }
    };
    names(at.get(), rest, into_strings)
}

fn told(fields: &BTreeMap<String, &RawValue>) -> Option<String> {
    if fields.is_empty() {
        return None;
    }
    let mut told: Vec<_> = fields.keys().take(MOST_NAMES).map(|name| format!("`{}`", short(name))).collect();
    if fields.len() > MOST_NAMES {
        told.push(format!("{} more", fields.len() - MOST_NAMES));
    }
    Some(told.join(", "))
}

/// As a template would write it, but for what is cut off.
fn short(name: &str) -> String {
    let mut name = if is_plain(name) { name.to_owned() } else { format!("[{}]", quoted(name)) };
    if name.len() > LONGEST_NAME {
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
        name.push('…');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Segment {
        Segment::Name(name.to_owned())
    }

    #[test]
    fn the_names_where_a_path_ends_are_told_as_a_template_writes_them() {
        let event = r#"{"detail":{"orderId":1,"x-id":2},"Records":[{"body":"{\"id\":7}"}]}"#;
        assert_eq!(names(event, &[], false).as_deref(), Some("`Records`, `detail`"));
        assert_eq!(names(event, &[name("detail")], false).as_deref(), Some(r#"`orderId`, `["x-id"]`"#));
        let body = [name("Records"), Segment::Index(0), name("body")];
        assert_eq!(names(event, &body, false), None, "a string has no names");
        assert_eq!(names(event, &body, true).as_deref(), Some("`id`"));
        for nothing in
            [&[name("other")][..], &[Segment::Index(0)], &[name("Records")], &[name("Records"), Segment::Index(1)]]
        {
            assert_eq!(names(event, nothing, true), None);
        }
        assert_eq!(names("{}", &[], true), None);
    }

    #[test]
    fn many_and_long_names_are_cut() {
        let fields: Vec<_> = (0..1_000).map(|n| format!("\"{}{n:04}\":0", "é".repeat(500))).collect();
        let told = names(&format!("{{{}}}", fields.join(",")), &[], false).unwrap();
        assert!(told.len() < 1_000 && told.ends_with("990 more"), "{told}");
    }
}
