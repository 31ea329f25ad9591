//! How a handler finds its lease, and what that is on.

use super::{Lease, Scope};
use crate::error::Error;
use crate::key::LockKey;

impl Lease {
    /// The lease of the innermost layer around the running handler.
    ///
    /// # Errors
    ///
    /// [`NoLease`](crate::error::NoLease) outside of a handler under a layer, in a task that the handler spawned, and
    /// where the layer was told to run this invocation unlocked.
    pub fn current() -> Result<Self, Error> {
        Ok(Scope::current()?)
    }

    /// The lease of the innermost layer with this name, where several are stacked; a layer's name is its key template
    /// unless set.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn f() -> Result<(), Error> {
    /// let tenant = Lease::named("tenants:{tenant}")?;
    /// tenant.ensure_held()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoLease`](crate::error::NoLease) as with [`current`](Self::current), and where no layer around the handler has
    /// the name.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Scope::named(name)?)
    }

    /// What is locked, as it stands on the row: behind its namespace, and hashed where
    /// [`hashed_keys`](crate::LeaseLayerBuilder::hashed_keys) is set. What was hashed is not kept.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.0.keys.main()
    }
}
