//! What tells one holder's lease from another's: the fencing token and the owner.

use super::Lease;
use crate::error::{Error, NoFencingToken, Tokenless};
use crate::keeper::client::{Grant, Which};
use crate::protocol::{FencingToken, OwnerId};

impl Lease {
    /// The fencing token, if there is one: it only grows, from each holder of a key to the next.
    ///
    /// Hand it to the systems that the work writes to; one that remembers the highest it saw can refuse a writer whose
    /// lease went to somebody else. With the row format `leasehold/1` there always is one in mode `enforce`; in `observe`
    /// there may be none, in `off` there is none. The format `pydynox/1` has none at all. Work that can't do without one
    /// asks for [`fencing_token`](Self::fencing_token).
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.grant()?.token
    }

    /// The fencing token, for work that can't do without one.
    ///
    /// ```
    /// # use leasehold::{Error, Lease};
    /// # fn f() -> Result<(), Error> {
    /// let fence = Lease::current()?.fencing_token()?.get();
    /// # let _ = fence;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoFencingToken`] where the table's row format has none, and in the modes `observe` and `off` where no lease was
    /// granted.
    pub fn fencing_token(&self) -> Result<FencingToken, Error> {
        let tokenless = match self.grant() {
            Some(Grant { token: Some(token), .. }) => return Ok(token),
            Some(_) => Tokenless::Format(self.0.table.format.clone()),
            None => Tokenless::NotGranted,
        };
        Err(NoFencingToken { key: self.key().clone(), tokenless }.into())
    }

    /// The identity of this acquisition, as it stands on the row; there always is one in mode `enforce`.
    #[must_use]
    pub fn owner(&self) -> Option<OwnerId> {
        self.grant().map(|grant| grant.owner)
    }

    fn grant(&self) -> Option<Grant> {
        self.0.link.as_ref()?.session.grant(Which::Main)
    }
}
