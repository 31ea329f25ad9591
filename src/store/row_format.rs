//! The seam between the store and what its rows look like.
//!
//! A format turns a request into one conditional write and reads a row back. A table speaks one format, chosen by its
//! name; one store serves tables of several. What a format can do beyond its looks (which takeover rules may serve,
//! whether a release deletes, whether there is a fencing token) it says by its [`Format`], for the machines go by that.

use std::collections::HashMap;
use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Lock;
use super::leasehold_v1::LeaseholdV1;
use super::pydynox_v1::PydynoxV1;
use crate::protocol::{Format, Hints, OwnerId, Request, Row, UnknownFormat, Unusable, Version};
use crate::session::Table;

/// A row's attributes by name.
pub(super) type Item = HashMap<String, AttributeValue>;

/// What rows look like, and by which conditional write each request is carried out.
pub(super) trait RowFormat: fmt::Debug + Send + Sync + 'static {
    /// Its name, and what it can do.
    fn format(&self) -> Format;

    /// The attributes that belong to the format: a table's key can't be named like one of them.
    fn attributes(&self) -> &'static [&'static str];

    /// The IAM actions that its requests need, as the end of a sentence.
    fn actions(&self) -> &'static str;

    /// The write that carries the request out; `None` for a read.
    fn encode(&self, lock: &Lock, request: &Request) -> Option<Write>;

    /// The row's version after a write that was applied, from the attributes that it answered with ([`Answers`]; a put and a
    /// delete answer none).
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    fn written(&self, request: &Request, updated: Option<&Item>) -> Result<Version, String>;

    /// What a row that was taken says of those who wait, where the format has a place for it.
    fn hints(&self, _updated: &Item) -> Hints {
        Hints::default()
    }

    /// What an applied write's answer shows to be wrong with the row, where no condition could see it before. The write
    /// stands, and is to be freed again.
    fn broken(&self, _request: &Request, _updated: Option<&Item>) -> Option<Unusable> {
        None
    }

    /// What a row means. Total: whatever stands in it, the answer is a [`Row`].
    fn decode(&self, item: Option<&Item>) -> Row;
}

/// The format that a table speaks.
pub(super) fn of(table: &Table) -> Result<&'static dyn RowFormat, UnknownFormat> {
    Ok(match table.format.parse()? {
        Format::LeaseholdV1 => &LeaseholdV1,
        Format::PydynoxV1 => &PydynoxV1,
    })
}

/// The primary key of a lock's row.
pub(super) fn primary_key(table: &Table, key: &str) -> Item {
    let partition = (table.key_attribute.clone(), AttributeValue::S(key.to_owned()));
    let sort = table.sort_key.iter().map(|(name, value)| (name.clone(), AttributeValue::S(value.clone())));
    std::iter::once(partition).chain(sort).collect()
}

/// One conditional write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// Changes some attributes of the row.
    Update(Expressions),
    /// Writes the row as a whole, on a condition. The key's attributes are in the item.
    Put(Item, Expressions),
    /// Deletes the row, on a condition.
    Delete(Expressions),
}

impl Write {
    /// The same write, on the narrower condition that the row is still as it was seen.
    pub(super) fn only_at(self, owner: OwnerId, version: Version) -> Self {
        match self {
            Self::Update(on) => Self::Update(on.only_at(owner, version)),
            Self::Put(item, on) => Self::Put(item, on.only_at(owner, version)),
            Self::Delete(on) => Self::Delete(on.only_at(owner, version)),
        }
    }

    /// Its expressions.
    #[cfg(test)]
    pub(super) const fn expressions(&self) -> &Expressions {
        match self {
            Self::Update(expressions) | Self::Put(_, expressions) | Self::Delete(expressions) => expressions,
        }
    }
}

/// The expressions of one write.
///
/// Every attribute is named through an alias, for half of their names are words that DynamoDB reserves, and an alias
/// or a value that no expression uses is refused: so both are noted where they are written into an expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expressions {
    /// The SET clause's parts.
    sets: Vec<String>,
    /// The REMOVE clause's parts.
    removes: Vec<String>,
    /// The ADD clause's parts.
    adds: Vec<String>,
    /// The condition.
    pub(super) condition: String,
    /// The aliases that the expressions use.
    pub(super) names: HashMap<String, String>,
    /// The values that the expressions use.
    pub(super) values: Item,
    /// What its answer brings.
    pub(super) answers: Answers,
}

/// What the answer to an applied update brings; none of it costs anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Answers {
    /// What was written (`UPDATED_NEW`).
    #[default]
    Written,
    /// The whole row as it is now (`ALL_NEW`).
    Row,
    /// Nothing: no other write builds on this one.
    Nothing,
}

impl Expressions {
    /// The alias of an attribute.
    pub(super) fn name(&mut self, attribute: &str) -> String {
        let alias = format!("#{attribute}");
        self.names.insert(alias.clone(), attribute.to_owned());
        alias
    }

    /// The alias of an attribute whose name is a setting, which may hold characters that an alias can't.
    pub(super) fn name_as(&mut self, alias: &str, attribute: &str) -> String {
        let alias = format!("#{alias}");
        self.names.insert(alias.clone(), attribute.to_owned());
        alias
    }

    /// The placeholder of a value.
    pub(super) fn value(&mut self, name: &str, value: AttributeValue) -> String {
        let placeholder = format!(":{name}");
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// SETs an attribute to a value.
    pub(super) fn set(&mut self, attribute: &str, value: AttributeValue) {
        let placeholder = self.value(attribute, value);
        self.set_to(attribute, &placeholder);
    }

    /// SETs an attribute to what an expression says.
    pub(super) fn set_to(&mut self, attribute: &str, expression: &str) {
        let alias = self.name(attribute);
        self.sets.push(format!("{alias} = {expression}"));
    }

    /// REMOVEs an attribute.
    pub(super) fn remove(&mut self, attribute: &str) {
        let alias = self.name(attribute);
        self.removes.push(alias);
    }

    /// ADDs to a number; an absent one counts from 0.
    pub(super) fn add(&mut self, attribute: &str, value: AttributeValue) {
        let (alias, placeholder) = (self.name(attribute), self.value(attribute, value));
        self.adds.push(format!("{alias} {placeholder}"));
    }

    /// SETs an attribute whose name is a setting.
    pub(super) fn set_as(&mut self, alias: &str, attribute: &str, value: AttributeValue) {
        let (name, placeholder) = (self.name_as(alias, attribute), self.value(alias, value));
        self.sets.push(format!("{name} = {placeholder}"));
    }

    /// REMOVEs an attribute whose name is a setting.
    pub(super) fn remove_as(&mut self, alias: &str, attribute: &str) {
        let name = self.name_as(alias, attribute);
        self.removes.push(name);
    }

    /// SETs an attribute if there is a value for it, else REMOVEs it: the old one never stays.
    pub(super) fn set_or_remove(&mut self, attribute: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove(attribute),
        }
    }

    /// The row is still as it was seen: this owner's, with this version.
    pub(super) fn is_at(&mut self, owner: OwnerId, version: Version) -> String {
        let (owner_is, version_is) = (text(owner), version_value(version));
        let (owner_is, version_is) = (self.value("seen_owner", owner_is), self.value("seen_version", version_is));
        format!("{} = {owner_is} AND {} = {version_is}", self.name("owner"), self.name("version"))
    }

    /// The same expressions, on the narrower condition that the row is still as it was seen.
    fn only_at(mut self, owner: OwnerId, version: Version) -> Self {
        let at = self.is_at(owner, version);
        self.condition = format!("({}) AND {at}", self.condition);
        self
    }

    /// The row belongs to one of these; `None` when there are none.
    pub(super) fn is_one_of(&mut self, owners: &[OwnerId]) -> Option<String> {
        if owners.is_empty() {
            return None;
        }
        let alias = self.name("owner");
        let newest = &owners[owners.len().saturating_sub(MAX_OWNERS)..];
        let placeholders: Vec<_> =
            newest.iter().enumerate().map(|(n, owner)| self.value(&format!("u{n}"), text(*owner))).collect();
        let lists = placeholders.chunks(MAX_OPERANDS).map(|list| format!("{alias} IN ({})", list.join(", ")));
        Some(lists.collect::<Vec<_>>().join(" OR "))
    }

    /// The condition of a release. Without an owner it is one that no row meets, rather than one that does not parse.
    pub(super) fn is_to_be_freed(&mut self, owners: &[OwnerId]) -> String {
        self.is_one_of(owners).unwrap_or_else(|| {
            let nobody = self.value("nobody", AttributeValue::S("nobody".to_owned()));
            format!("{} = {nobody}", self.name("owner"))
        })
    }

    /// The update expression.
    pub(super) fn update(&self) -> String {
        let clauses = [("SET", &self.sets), ("REMOVE", &self.removes), ("ADD", &self.adds)];
        let clauses = clauses.iter().filter(|(_, parts)| !parts.is_empty());
        clauses.map(|(verb, parts)| format!("{verb} {}", parts.join(", "))).collect::<Vec<_>>().join(" ")
    }
}

/// An `IN` takes at most this many operands.
const MAX_OPERANDS: usize = 100;

/// At most this many owners are listed, the newest ones, for an expression has at most 4 KB. Leaving out the older ones
/// only narrows the condition: should the row belong to one of them, its lease is waited for.
const MAX_OWNERS: usize = 400;

/// An owner as every format writes it.
pub(super) fn text(owner: OwnerId) -> AttributeValue {
    AttributeValue::S(owner.to_string())
}

/// A number.
pub(super) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A version as its kind is written: one of another format's kind never equals what a row has.
pub(super) fn version_value(version: Version) -> AttributeValue {
    match version {
        Version::Counter(counter) => number(counter),
        Version::Opaque(_) => AttributeValue::S(version.to_string()),
    }
}
