//! What a lease leaves behind or shows to people: its state's retention, a note and attributes on the row.

use std::time::Duration;

use super::LeaseLayerBuilder;

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// For how long a state that a holder leaves ([`Lease::save_state`](crate::Lease::save_state)) is kept after it was
    /// written; without end unless set. From then on it is no longer read, and DynamoDB's TTL on `ttl` sweeps it.
    /// `LEASEHOLD_STATE_RETENTION`
    pub const fn state_retention(mut self, retention: Duration) -> Self {
        self.draft.state_retention = Some(retention);
        self
    }

    /// A note on the row for people, beside what it says of its holder: what the lock is for, whom to ask. At most 1,024
    /// bytes. Who is refused for a busy key finds it in [`LeaseBusy::holder`](crate::error::LeaseBusy::holder).
    pub fn holder_note(mut self, text: impl Into<String>) -> Self {
        self.draft.holder_note = Some(text.into());
        self
    }

    /// A string attribute that the row has while it is held, for people and for indexes of theirs; may be called ten
    /// times. It is written with the acquisition and removed with the release. Nothing is decided by it.
    ///
    /// The table's key attributes and the names that lock rows use, or may come to use, are refused by `build`. A name has
    /// 1 to 255 bytes, a value 1 to 1,024. What a killed environment leaves there stays until the next lease of a layer
    /// with that attribute.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::Value;
    ///
    /// let layer = LeaseLayer::<Value>::builder("imports:{file}")
    ///     .table("locks")
    ///     .holder_note("the nightly import; ask #data-platform")
    ///     .attribute("team", "data-platform")
    ///     .build()?;
    /// # Ok::<(), leasehold::error::SettingsError>(())
    /// ```
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.draft.attributes.insert(name.into(), value.into());
        self
    }
}
