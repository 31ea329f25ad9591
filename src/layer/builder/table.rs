//! Which table, which of its rows, and what they look like.

use super::LeaseLayerBuilder;

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// The lock table's name or ARN. It must be set here or in the environment. `LEASEHOLD_TABLE`
    pub fn table(mut self, name: impl Into<String>) -> Self {
        self.draft.table = Some(name.into());
        self
    }

    /// The name of the table's partition key; `key` unless set. `LEASEHOLD_KEY_ATTRIBUTE`
    pub fn key_attribute(mut self, name: impl Into<String>) -> Self {
        self.draft.key_attribute = Some(name.into());
        self
    }

    /// The name of the table's sort key and the value that all locks have there, for a table that has one.
    /// `LEASEHOLD_SORT_KEY`, as in `sk=lock`
    pub fn sort_key(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft.sort_key = Some((name.into(), value.into()));
        self
    }

    /// The row format that the table speaks, by name: `leasehold/1` unless set; `pydynox/1` shares the table and its keys
    /// with pydynox's distributed locks, in Python. `LEASEHOLD_FORMAT`
    ///
    /// A table speaks one format. Rows of another one are errors and never touched.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::Value;
    ///
    /// let lease = LeaseLayer::<Value>::builder("sync:{customer_id}").table("locks").format("pydynox/1").build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn format(mut self, name: impl Into<String>) -> Self {
        self.draft.format = Some(name.into());
        self
    }

    /// What stands before every key, with a `/` after it: stages and teams share a table by it, and IAM's `LeadingKeys`
    /// can tell them apart. `LEASEHOLD_NAMESPACE`
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.draft.namespace = Some(namespace.into());
        self
    }
}
