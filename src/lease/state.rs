//! What one holder of a key leaves for the next.

use std::future::poll_fn;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{Lease, Link, given_back};
use crate::error::{
    Error, StateNotSerialized, StateTooDeep, StateTooLarge, StateUnconfirmed, StateUnsupported, refused,
};
use crate::keeper::client::{Answer, Question, StateAnswer, Which};
use crate::protocol::Format;
use crate::session::RawState;

/// The keeper gives up by itself before this, when the lease is lost or after ten minutes.
const ANSWERED_WITHIN: Duration = Duration::from_secs(11 * 60);

/// What a state's key has more than the lock's, and what DynamoDB takes.
const SUFFIX: usize = "#state".len();
const LONGEST_KEY: usize = 2048;

impl Lease {
    /// Reads the state that the key's last holder left, or that this one has saved since; `None` if there is none.
    ///
    /// It is any value of yours that is JSON, at most 32 KiB of it, in an item of its own beside the lock's row. It stays
    /// there until somebody saves another or takes it away, unless the layer sets a `state_retention`. It is read
    /// consistently, after the lease was granted: what an earlier holder saved is seen.
    ///
    /// ```
    /// use leasehold::{Error, Lease};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Default, Serialize, Deserialize)]
    /// struct Checkpoint {
    ///     rows_done: u64,
    /// }
    ///
    /// async fn import_rows(from: u64) -> Option<u64> {
    ///     (from < 10_000).then_some(from + 1_000)
    /// }
    ///
    /// async fn import() -> Result<(), Error> {
    ///     let lease = Lease::current()?;
    ///     let mut at: Checkpoint = lease.state().await?.unwrap_or_default();
    ///     while let Some(rows_done) = import_rows(at.rows_done).await {
    ///         at = Checkpoint { rows_done };
    ///         lease.save_state(&at).await?; // whoever comes after a crash goes on from here
    ///     }
    ///     lease.clear_state_on_release()
    /// }
    /// # let _ = import;
    /// ```
    ///
    /// In the mode `off`, and in `observe` where no lease is granted, there is no state: nothing is read, and what is saved is
    /// dropped, with a warning. In `observe` the question waits until it is known whether there is a lease.
    ///
    /// # Errors
    ///
    /// `LeaseLost` and `NoLease` when the lease is not held any more; [`StateNotSerialized`] when what was left is no `T`;
    /// [`StateUnsupported`] where the table's row format has no place for a state, or the key has no room for its own key;
    /// `ForeignRow` and `MalformedRow` when something else stands in its place; what DynamoDB answers otherwise.
    ///
    /// # Cancellation
    ///
    /// Nothing is lost.
    pub async fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let Some(link) = self.granted_link().await? else { return Ok(None) };
        match self.answer(link.session.load_state()).await {
            Ok(StateAnswer::Loaded(None) | StateAnswer::Saved) => Ok(None),
            Ok(StateAnswer::Loaded(Some(state))) => {
                serde_json::from_str(state.get()).map(Some).map_err(|source| self.not_serialized(source))
            }
            Ok(StateAnswer::Failed { kind, message }) => {
                self.unless_observed(link, refused(self.key().clone(), kind, message)).map(|()| None)
            }
            Err(error) => self.unless_observed(link, error).map(|()| None),
        }
    }

    /// Saves a state for the key's next holder. It is durable when this returns, and only a holder can have saved it:
    /// DynamoDB checks the lock's owner in the moment of the write.
    ///
    /// What counts is the value that was given last, here or to [`save_state_on_release`](Self::save_state_on_release). A
    /// lost answer is asked for again until it is known, for as long as the lease is held.
    ///
    /// # Errors
    ///
    /// As [`state`](Self::state), and [`StateTooLarge`] over 32 KiB of JSON and [`StateTooDeep`] over 127 levels of it,
    /// before anything is sent. [`StateUnconfirmed`] when it may have been saved or not; with `LeaseLost` the last one may have been saved as well.
    ///
    /// # Cancellation
    ///
    /// The state may be saved all the same; what is saved next comes after it.
    pub async fn save_state<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), Error> {
        let state = self.to_json(state)?;
        self.save(state.unless_null()).await
    }

    /// Takes the state away, as [`save_state`](Self::save_state) saves one: there is none when this returns.
    ///
    /// # Errors
    ///
    /// As [`save_state`](Self::save_state).
    ///
    /// # Cancellation
    ///
    /// As [`save_state`](Self::save_state).
    pub async fn clear_state(&self) -> Result<(), Error> {
        self.save(None).await
    }

    /// Saves a state together with the release, in one transaction: it costs no request before the response. It is
    /// written only if the handler finishes, with a response or an error; a handler that crashes or is ended leaves what
    /// was there before. Of a lease that was taken by hand it is written when that is released or dropped, unless by a panic.
    ///
    /// A release is never held back by it: where the state can't be written, the row is freed without it, which the
    /// keeper's log tells (`state not left`; or `state left or not: no answer`, where that is not known). What must be known to be saved goes by [`save_state`](Self::save_state).
    ///
    /// # Errors
    ///
    /// [`StateTooLarge`], [`StateTooDeep`], [`StateUnsupported`], and what is known of the lease by now.
    pub fn save_state_on_release<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), Error> {
        let state = self.to_json(state)?;
        self.save_on_release(state.unless_null())
    }

    /// Takes the state away together with the release, as [`save_state_on_release`](Self::save_state_on_release) saves one:
    /// the work is done, and the next holder begins anew.
    ///
    /// # Errors
    ///
    /// As [`save_state_on_release`](Self::save_state_on_release).
    pub fn clear_state_on_release(&self) -> Result<(), Error> {
        self.save_on_release(None)
    }

    async fn save(&self, state: Option<RawState>) -> Result<(), Error> {
        let Some(link) = self.granted_link().await? else { return Ok(()) };
        match self.answer(link.session.save_state(state)).await {
            Ok(StateAnswer::Failed { kind, message }) => {
                self.unless_observed(link, refused(self.key().clone(), kind, message))
            }
            Ok(StateAnswer::Saved | StateAnswer::Loaded(_)) => Ok(()),
            Err(error) => self.unless_observed(link, error),
        }
    }

    fn save_on_release(&self, state: Option<RawState>) -> Result<(), Error> {
        let Some(link) = self.link_for_state()? else {
            self.warn_of_no_lease();
            return Ok(());
        };
        link.session.look();
        if link.session.grant(Which::Main).is_none() && !link.enforced {
            self.warn_of_no_lease();
            return Ok(());
        }
        let over = link.session.loss().map(|loss| self.error(loss));
        match over.or_else(|| link.session.is_given_back().then(given_back)) {
            Some(error) => self.unless_observed(link, error),
            None => {
                link.session.save_state_on_release(state);
                Ok(())
            }
        }
    }

    async fn answer(&self, question: Question<'_>) -> Result<StateAnswer, Error> {
        match timeout(ANSWERED_WITHIN, poll_fn(|cx| question.poll(cx))).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Some(loss))) => Err(self.error(loss)),
            Ok(Err(None)) => Err(given_back()),
            Err(_) => {
                let reason = "the keeper did not answer in time".to_owned();
                Err(StateUnconfirmed { key: self.key().clone(), reason }.into())
            }
        }
    }

    /// What a state goes through, once the lease is granted; none in a mode in which there is no lease.
    async fn granted_link(&self) -> Result<Option<&Link>, Error> {
        let Some(link) = self.link_for_state()? else {
            self.warn_of_no_lease();
            return Ok(None);
        };
        // In the mode `observe` the handler runs before the answer is there.
        if !link.enforced && link.session.grant(Which::Main).is_none() {
            let answer = poll_fn(|cx| link.session.poll_answer(cx));
            if !matches!(timeout(ANSWERED_WITHIN, answer).await, Ok(Ok(Answer::Granted(_)))) {
                self.warn_of_no_lease();
                return Ok(None);
            }
        }
        Ok(Some(link))
    }

    fn warn_of_no_lease(&self) {
        tracing::warn!(key = %self.key(), "there is no lease in this mode, so no state is read or saved");
    }

    /// What a state goes through; none in the mode `off`.
    fn link_for_state(&self) -> Result<Option<&Link>, Error> {
        let format = &self.0.table.format;
        if !format.parse().is_ok_and(|format: Format| format.abilities().state) {
            let reason = format!(
                "the row format `{format}` has no place for one; take a table of the format `leasehold/1`, or keep it elsewhere"
            );
            return Err(StateUnsupported { key: self.key().clone(), reason }.into());
        }
        let bytes = self.key().as_str().len();
        if bytes + SUFFIX > LONGEST_KEY {
            let most = LONGEST_KEY - SUFFIX;
            let reason =
                format!("its key has {bytes} bytes, and the state's own key has room for {most}; take a shorter key");
            return Err(StateUnsupported { key: self.key().clone(), reason }.into());
        }
        Ok(self.0.link.as_ref())
    }

    /// In the mode `observe` nothing that is found out may refuse the handler anything.
    fn unless_observed(&self, link: &Link, error: Error) -> Result<(), Error> {
        if link.enforced {
            return Err(error);
        }
        tracing::warn!(key = %self.key(), %error, "observed: a handler's state was not read or saved");
        Ok(())
    }

    fn to_json<T: Serialize + ?Sized>(&self, state: &T) -> Result<RawState, Error> {
        let state = RawState::of(state).map_err(|source| self.not_serialized(source))?;
        let (bytes, limit) = (state.get().len(), RawState::MAX_BYTES);
        if bytes > limit {
            return Err(StateTooLarge { key: self.key().clone(), bytes, limit }.into());
        }
        let (depth, limit) = (state.depth(), RawState::MAX_DEPTH);
        if depth > limit {
            return Err(StateTooDeep { key: self.key().clone(), depth, limit }.into());
        }
        Ok(state)
    }

    fn not_serialized(&self, source: serde_json::Error) -> Error {
        StateNotSerialized { key: self.key().clone(), source }.into()
    }
}
