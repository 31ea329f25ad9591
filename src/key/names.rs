//! What an event has where a path ends: the names that its author may have meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::nested::Open;
use super::path::{Segment, is_plain, quoted};

/// How many names are told, and how much of each.
const MOST_NAMES: usize = 10;
const LONGEST_NAME: usize = 48;

/// The names of the object that stands after these steps, for people; `None` where there is no object, or an empty one.
/// With `open` a step may lead into a string that holds JSON.
pub(crate) fn names(event: &str, steps: &[Segment], open: Option<Open>) -> Option<String> {
    let inside = open.filter(|_| event.trim_start().starts_with('"')).and_then(|open| open(event));
    let Some((step, rest)) = steps.split_first() else {
        return match inside {
            Some(event) => names(&event, steps, None),
            None => told(serde_json::from_str(event).ok()?),
        };
    };
    if let Some(event) = inside {
        return names(&event, steps, open);
    }
    let at: &RawValue = match step {
        Segment::Name(name) => {
            let Members(members) = serde_json::from_str(event).ok()?;
            // Of two members with one name the last one counts.
            members.into_iter().rfind(|(known, _)| known == name)?.1
        }
        Segment::Index(index) => {
            let elements: Vec<&RawValue> = serde_json::from_str(event).ok()?;
            elements.get(*index)?
        }
    };
    names(at.get(), rest, open)
}

fn told(Members(members): Members<'_>) -> Option<String> {
    let mut names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut told: Vec<_> = names.iter().take(MOST_NAMES).map(|name| format!("`{}`", short(name))).collect();
    if names.len() > MOST_NAMES {
        told.push(format!("{} more", names.len() - MOST_NAMES));
    }
    (!told.is_empty()).then(|| told.join(", "))
}

/// An object's members, as they come.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        object.deserialize_map(Self(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
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
    use crate::key::opened;

    fn name(name: &str) -> Segment {
        Segment::Name(name.to_owned())
    }

    #[test]
    fn the_names_where_a_path_ends_are_told_as_a_template_writes_them() {
        let event = r#"{"detail":{"orderId":1,"x-id":2},"Records":[{"body":"{\"id\":7}"}]}"#;
        assert_eq!(names(event, &[], None).as_deref(), Some("`Records`, `detail`"));
        assert_eq!(names(event, &[name("detail")], None).as_deref(), Some(r#"`orderId`, `["x-id"]`"#));
        let body = [name("Records"), Segment::Index(0), name("body")];
        assert_eq!(names(event, &body, None), None, "a string has no names");
        assert_eq!(names(event, &body, Some(opened)).as_deref(), Some("`id`"));
        for nothing in
            [&[name("other")][..], &[Segment::Index(0)], &[name("Records")], &[name("Records"), Segment::Index(1)]]
        {
            assert_eq!(names(event, nothing, Some(opened)), None);
        }
        assert_eq!(names("{}", &[], Some(opened)), None);
    }

    #[test]
    fn many_and_long_names_are_cut() {
        let fields: Vec<_> = (0..1_000).map(|n| format!("\"{}{n:04}\":0", "é".repeat(500))).collect();
        let told = names(&format!("{{{}}}", fields.join(",")), &[], None).unwrap();
        assert!(told.len() < 1_000 && told.ends_with("990 more"), "{told}");
    }
}
