//! The lease as a condition of a DynamoDB transaction: the work is written only while the lease is held.

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck};

use super::Lease;

impl Lease {
    /// The condition "this lease is held", for a `TransactWriteItems` that writes the work.
    ///
    /// Where work and lock are in one Region, this is the strongest fence there is: DynamoDB itself checks the owner in
    /// the moment of the write, whatever clocks and handlers believe. There always is one in mode `enforce`; without a
    /// lease, in `observe` and `off`, there is none.
    ///
    /// The function's role needs `dynamodb:ConditionCheckItem` on the lock table.
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
        let owner = self.owner()?;
        let table = self.table();
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let mut check = ConditionCheck::builder()
            .table_name(&table.name)
            .key(&table.key_attribute, text(self.key().as_str()))
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
