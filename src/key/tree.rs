//! A template's paths merged into one tree, so that one pass over an event finds them all.

use super::path::{Path, Segment};

/// What the paths want at one place of an event.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// The value itself, to be put into this slot.
    Value(usize),
    /// Members of an object.
    Members(Vec<(String, Node)>),
    /// Elements of an array, ascending.
    Elements(Vec<(usize, Node)>),
}

impl Node {
    /// The tree of a single path.
    pub(super) fn of(path: &[Segment], slot: usize) -> Self {
        path.iter().rev().fold(Self::Value(slot), |node, segment| match segment {
            Segment::Name(name) => Self::Members(vec![(name.clone(), node)]),
            Segment::Index(index) => Self::Elements(vec![(*index, node)]),
        })
    }

    /// Adds a path and answers the slot its value goes to: `slot`, or the one that the same path has already.
    ///
    /// Fails with another path's slot where no event can have both: a value can't be looked into as well, and nothing
    /// is an object and an array.
    pub(super) fn insert(&mut self, path: &[Segment], slot: usize) -> Result<usize, usize> {
        match (self, path) {
            (Self::Value(existing), []) => Ok(*existing),
            (Self::Members(members), [Segment::Name(name), rest @ ..]) => {
                match members.iter_mut().find(|(known, _)| known == name) {
                    Some((_, node)) => node.insert(rest, slot),
                    None => {
                        members.push((name.clone(), Self::of(rest, slot)));
                        Ok(slot)
                    }
                }
            }
            (Self::Elements(elements), [Segment::Index(index), rest @ ..]) => {
                let at = elements.partition_point(|(known, _)| known < index);
                match elements.get_mut(at) {
                    Some((known, node)) if known == index => node.insert(rest, slot),
                    _ => {
                        elements.insert(at, (*index, Self::of(rest, slot)));
                        Ok(slot)
                    }
                }
            }
            (node, _) => Err(node.first_slot()),
        }
    }

    /// Calls `f` with every slot that is filled at or below this place.
    pub(super) fn each_slot(&self, f: &mut impl FnMut(usize)) {
        match self {
            Self::Value(slot) => f(*slot),
            Self::Members(members) => members.iter().for_each(|(_, node)| node.each_slot(f)),
            Self::Elements(elements) => elements.iter().for_each(|(_, node)| node.each_slot(f)),
        }
    }

    /// One of the slots at or below this place.
    pub(super) fn first_slot(&self) -> usize {
        match self {
            Self::Value(slot) => *slot,
            Self::Members(members) => members.first().map_or(0, |(_, node)| node.first_slot()),
            Self::Elements(elements) => elements.first().map_or(0, |(_, node)| node.first_slot()),
        }
    }
}

/// The distinct paths of a template and their tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    distinct: Vec<Path>,
    tree: Option<Node>,
}

impl Paths {
    /// Adds a path and answers its slot, or the path that it contradicts.
    pub(super) fn add(&mut self, path: &Path) -> Result<usize, Path> {
        let next = self.distinct.len();
        let slot = match &mut self.tree {
            None => {
                self.tree = Some(Node::of(path.segments(), next));
                next
            }
            Some(tree) => {
                tree.insert(path.segments(), next).map_err(|other| self.distinct.get(other).unwrap_or(path).clone())?
            }
        };
        if slot == next {
            self.distinct.push(path.clone());
        }
        Ok(slot)
    }

    /// The tree, unless the template reads nothing from the event.
    pub(super) const fn tree(&self) -> Option<&Node> {
        self.tree.as_ref()
    }

    /// How many slots a pass fills.
    pub(super) const fn len(&self) -> usize {
        self.distinct.len()
    }
}
