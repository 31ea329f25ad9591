//! The seam between the store and what its rows look like.
//!
//! A format turns a request into the expressions of one `UpdateItem` and reads a row back. A table speaks one format.
//! Formats of other clients fit in here; what they need beyond this (whether a release deletes the row, whether a
//! version exists at all, which takeover rule may serve) joins the trait together with the first of them.

use std::collections::HashMap;
use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Lock;
use crate::protocol::{Request, Row, Unusable};
use crate::session::Table;

/// A row's attributes by name.
pub(super) type Item = HashMap<String, AttributeValue>;

/// What rows look like, and by which conditional write each request is carried out.
pub(super) trait RowFormat: fmt::Debug + Send + Sync + 'static {
    /// The attributes that belong to the format: a table's key can't be named like one of them.
    fn attributes(&self) -> &'static [&'static str];

    /// The write that carries the request out; `None` for a read.
    fn encode(&self, lock: &Lock, request: &Request) -> Option<Update>;

    /// The row's version after a write that was applied, from the attributes that it answered with (`UPDATED_NEW`).
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    fn written(&self, request: &Request, updated: Option<&Item>) -> Result<u64, String>;

    /// What an applied write's answer shows to be wrong with the row, where no condition could see it before. The write
    /// stands, and is to be freed again.
    fn broken(&self, _request: &Request, _updated: Option<&Item>) -> Option<Unusable> {
        None
    }

    /// What a row means. Total: whatever stands in it, the answer is a [`Row`].
    fn decode(&self, item: Option<&Item>) -> Row;
}

/// The primary key of a lock's row.
pub(super) fn primary_key(table: &Table, key: &str) -> Item {
    let partition = (table.key_attribute.clone(), AttributeValue::S(key.to_owned()));
    let sort = table.sort_key.iter().map(|(name, value)| (name.clone(), AttributeValue::S(value.clone())));
    std::iter::once(partition).chain(sort).collect()
}

/// The expressions of one `UpdateItem`.
///
/// Every attribute is named through an alias, for half of their names are words that DynamoDB reserves, and an alias
/// or a value that no expression uses is refused: so both are noted where they are written into an expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Update {
    /// The SET clause's parts.
    sets: Vec<String>,
    /// The REMOVE clause's parts.
    removes: Vec<String>,
    /// The condition.
    pub(super) condition: String,
    /// The aliases that the expressions use.
    pub(super) names: HashMap<String, String>,
    /// The values that the expressions use.
    pub(super) values: Item,
    /// Whether no other write builds on this one, so that its answer need not bring what was written.
    pub(super) is_last: bool,
}

impl Update {
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

    /// SETs an attribute if there is a value for it, else REMOVEs it: the old one never stays.
    pub(super) fn set_or_remove(&mut self, attribute: &str, value: Option<AttributeValue>) {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove(attribute),
        }
    }

    /// The update expression.
    pub(super) fn expression(&self) -> String {
        let clauses = [("SET", &self.sets), ("REMOVE", &self.removes)];
        let clauses = clauses.iter().filter(|(_, parts)| !parts.is_empty());
        clauses.map(|(verb, parts)| format!("{verb} {}", parts.join(", "))).collect::<Vec<_>>().join(" ")
    }
}
