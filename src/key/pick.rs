//! One pass over an event's raw JSON that fills every slot of a template.
//!
//! The pass always goes to the event's end: a name may stand a second time after the value was found, and a key must
//! not come from an event that turns out to be cut off. Only the objects and arrays on a path are visited; everything
//! beside them is skipped by serde_json without recursion, so nesting costs no stack. On a path the depth is the
//! template's, which the parser bounds.
//!
//! The pass asks serde_json for what should be there, which is quick, but stops at a value of another type, or at a
//! name beside the path that has no UTF-8. Such an event gets a second, careful pass that can tell what was found.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::found::{Found, decoded, key_text, kind};
use super::nested::{Open, opened};
use super::tree::Node;

/// How an event is read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// By asking for what should be there.
    Quick,
    /// By looking at what is there.
    Careful,
    /// The same, and into strings that are JSON by themselves.
    IntoStrings(Open),
}

impl Reading {
    const fn is_quick(self) -> bool {
        matches!(self, Self::Quick)
    }
}

/// What the pass found for one path. `depth` counts the steps that led there.
#[derive(Clone, Debug)]
pub(super) enum Slot<'de> {
    /// After `depth` steps there was no such name or element.
    Missing { depth: usize },
    /// The value's text.
    Text(Cow<'de, str>),
    /// After `depth` steps stood something that is no value or can't be looked into.
    Unusable { depth: usize, found: Found },
    /// The name that is step `depth` stands twice in its object.
    Twice { depth: usize },
}

impl Slot<'_> {
    fn into_owned(self) -> Slot<'static> {
        match self {
            Self::Missing { depth } => Slot::Missing { depth },
            Self::Text(text) => Slot::Text(Cow::Owned(text.into_owned())),
            Self::Unusable { depth, found } => Slot::Unusable { depth, found },
            Self::Twice { depth } => Slot::Twice { depth },
        }
    }
}

/// Reads the event; fails only where it is not JSON.
pub(super) fn pick<'de>(tree: &Node, slots: usize, event: &'de str) -> serde_json::Result<Vec<Slot<'de>>> {
    match pass(tree, slots, event, Reading::Quick) {
        Err(error) if !error.is_eof() => pass(tree, slots, event, Reading::Careful),
        result => result,
    }
}

/// Reads the event, and where a path goes on into a string, the string as JSON; see [`opened`].
pub(super) fn pick_into_strings<'de>(tree: &Node, slots: usize, event: &'de str) -> serde_json::Result<Vec<Slot<'de>>> {
    pass(tree, slots, event, Reading::IntoStrings(opened))
}

fn pass<'de>(tree: &Node, slots: usize, event: &'de str, reading: Reading) -> serde_json::Result<Vec<Slot<'de>>> {
    let mut slots = vec![Slot::Missing { depth: 0 }; slots];
    let mut json = serde_json::Deserializer::from_str(event);
    Walk { node: tree, depth: 0, reading, slots: &mut slots }.deserialize(&mut json)?;
    json.end()?;
    Ok(slots)
}

/// One place of the event on its way to the slots below it. No place is walked twice: of two members with one name the
/// second is skipped.
struct Walk<'t, 's, 'de> {
    node: &'t Node,
    depth: usize,
    reading: Reading,
    slots: &'s mut [Slot<'de>],
}

impl<'de> Walk<'_, '_, 'de> {
    /// Gives every slot below this place the same verdict.
    fn settle(&mut self, verdict: &Slot<'de>) {
        let slots = &mut *self.slots;
        self.node.each_slot(&mut |slot| {
            if let Some(slot) = slots.get_mut(slot) {
                *slot = verdict.clone();
            }
        });
    }

    /// The same walk one step further down.
    fn step<'a>(&'a mut self, node: &'a Node) -> Walk<'a, 'a, 'de> {
        Walk { node, depth: self.depth + 1, reading: self.reading, slots: self.slots }
    }

    /// Whether the member that leads to `node` has come already. Until it does, its slots stand as this object's visit
    /// left them; a walk below always changes them.
    fn came(&self, node: &Node) -> bool {
        let depth = self.depth;
        !matches!(self.slots.get(node.first_slot()), Some(Slot::Missing { depth: missing }) if *missing == depth)
    }

    /// Walks on inside of a string. What is found there outlives it.
    fn look_inside_string(self, inside: &str) -> serde_json::Result<()> {
        let Self { node, depth, reading, slots } = self;
        let mut found = vec![Slot::Missing { depth }; slots.len()];
        let mut json = serde_json::Deserializer::from_str(inside);
        Walk { node, depth, reading, slots: &mut found }.deserialize(&mut json)?;
        node.each_slot(&mut |at| {
            if let (Some(slot), Some(found)) = (slots.get_mut(at), found.get_mut(at)) {
                *slot = std::mem::replace(found, Slot::Missing { depth }).into_owned();
            }
        });
        Ok(())
    }

    fn look_inside<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.node {
            Node::Elements(_) => deserializer.deserialize_seq(self),
            _ => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        let is_value = matches!(self.node, Node::Value(_));
        if !is_value && self.reading.is_quick() {
            return self.look_inside(deserializer);
        }
        // Raw, because a parsed number no longer tells `1` from `1.0` and has no room for long ones.
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let depth = self.depth;
        let verdict = match (self.node, kind(json)) {
            (Node::Value(_), _) => match key_text(json) {
                Ok(text) => Slot::Text(text),
                Err(found) => Slot::Unusable { depth, found },
            },
            (Node::Members(_), Found::Object) | (Node::Elements(_), Found::Array) => {
                let mut inside = serde_json::Deserializer::from_str(json);
                return self.look_inside(&mut inside).map_err(Error::custom);
            }
            (_, found) => match self.reading {
                Reading::IntoStrings(open) if found == Found::String => match open(json) {
                    Some(inside) => return self.look_inside_string(&inside).map_err(Error::custom),
                    None => Slot::Unusable { depth, found },
                },
                _ => Slot::Unusable { depth, found },
            },
        };
        self.settle(&verdict);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what the key template's path leads through")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Node::Members(members) = self.node else {
            return Err(Error::custom("an object where the path has none"));
        };
        let depth = self.depth;
        self.settle(&Slot::Missing { depth });
        while let Some(member) = map.next_key_seed(Name { members, careful: !self.reading.is_quick() })? {
            let Some(node) = member else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if self.came(node) {
                self.step(node).settle(&Slot::Twice { depth });
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(self.step(node))?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let Node::Elements(elements) = self.node else {
            return Err(Error::custom("an array where the path has none"));
        };
        let depth = self.depth;
        self.settle(&Slot::Missing { depth });
        let mut at = 0;
        for (index, node) in elements {
            while at < *index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
                at += 1;
            }
            if seq.next_element_seed(self.step(node))?.is_none() {
                return Ok(());
            }
            at += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Looks for a name, as it comes, among those on a path, and answers where it leads.
struct Name<'t> {
    members: &'t [(String, Node)],
    careful: bool,
}

impl<'t> Name<'t> {
    fn find(self, name: &str) -> Option<&'t Node> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }
}

impl<'de, 't> DeserializeSeed<'de> for Name<'t> {
    type Value = Option<&'t Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if !self.careful {
            return deserializer.deserialize_str(self);
        }
        // A name with half of a surrogate pair is no template's, and no fault beside the path.
        let name = <&RawValue>::deserialize(deserializer)?;
        Ok(decoded(name.get()).and_then(|name| self.find(&name)))
    }
}

impl<'t> Visitor<'_> for Name<'t> {
    type Value = Option<&'t Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.find(name))
    }
}
