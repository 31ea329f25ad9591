//! The lease as a condition of a DynamoDB transaction: the work is written only while the lease is held.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck};

use super::Lease;
use crate::keeper::client::Which;
use crate::key::LockKey;

impl Lease {
    /// The condition "this lease is held", for a `TransactWriteItems` that writes the work.
    ///
    /// Where work and lock are in one Region, this is the strongest fence there is: DynamoDB itself checks the owner in
    /// the moment of the write, whatever clocks and handlers believe. There always is one in mode `enforce`; without a
    /// lease, in `observe` and `off`, there is none.
    ///
    /// The function's role needs `dynamodb:ConditionCheckItem` on the lock table. With a second key (`also`) it is the
    /// condition on the layer's own row; [`guard_transaction`](Self::guard_transaction) adds both.
    ///
    /// ```
    /// use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
    /// use leasehold::Lease;
    ///
    /// # fn f(put: Put) -> Result<Vec<TransactWriteItem>, leasehold::Error> {
    /// let lease = Lease::current()?;
    /// let fence = lease.condition_check().map(|check| TransactWriteItem::builder().condition_check(check).build());
    /// let work = TransactWriteItem::builder().put(put).build();
    /// let items = fence.into_iter().chain([work]).collect();
    /// # Ok(items)
    /// # }
    /// ```
    #[must_use]
    pub fn condition_check(&self) -> Option<ConditionCheck> {
        self.condition_check_of(Which::Main)
    }

    /// The conditions on all rows that the lease is on, with the key of each.
    pub(super) fn condition_checks(&self) -> Vec<(ConditionCheck, &LockKey)> {
        let checks = self.0.keys.in_order().map(|(which, key)| Some((self.condition_check_of(which)?, key)));
        // All or none: they were granted together.
        checks.collect::<Option<_>>().unwrap_or_default()
    }

    fn condition_check_of(&self, which: Which) -> Option<ConditionCheck> {
        let owner = self.0.link.as_ref()?.session.grant(which)?.owner;
        let table = self.table();
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let mut check = ConditionCheck::builder()
            .table_name(&table.name)
            .key(&table.key_attribute, text(self.0.keys.get(which).as_str()))
            .condition_expression("#owner = :me")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":me", text(&owner.to_string()));
        if let Some((name, value)) = &table.sort_key {
            check = check.key(name, text(value));
        }
        // Only a missing part makes this fail, and there is none.
        check.build().ok()
    }
}
