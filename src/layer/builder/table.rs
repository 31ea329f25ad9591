//! Which table, which of its rows, and what they look like.

use super::LeaseLayerBuilder;
use crate::settings::Secret;

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

    /// Whether a hash takes the place of each key, for keys that are made of personal data: on the row, in the logs of
    /// function and extension, in errors, and in [`Lease::key`](crate::Lease::key). `LEASEHOLD_HASHED_KEYS`, `true` or
    /// `false`
    ///
    /// It is SHA-256 of the key as the template gives it. The namespace stays in front of it, and the template, which has no
    /// values in it, stays on the row. All that share locks have to hash alike. **Who can guess a value can check the guess
    /// against its hash**; [`key_secret`](Self::key_secret) keeps others from that.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::Value;
    ///
    /// let lease = LeaseLayer::<Value>::builder("customers:{email}").hashed_keys(true).table("locks").build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub const fn hashed_keys(mut self, hashed: bool) -> Self {
        self.draft.hashed_keys = Some(hashed);
        self
    }

    /// A secret of 16 bytes or more that goes into the hash (HMAC-SHA-256), so that nobody without it can check a guess.
    /// All that share locks need the same. With another one each key is another, as with another template.
    /// `LEASEHOLD_KEY_SECRET`
    pub fn key_secret(mut self, secret: impl Into<String>) -> Self {
        self.draft.key_secret = Some(Secret(secret.into()));
        self
    }
}
