//! How a double keeps what holders leave for the next.

use super::TestKeeper;
use super::held::Held;
use super::state::{Health, State};
use crate::session::{FailKind, FromKeeper, RawState};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl State {
    pub(super) fn load_state(&mut self, session: u64, id: u64, call: u64) {
        let said = match self.key_of(session, id) {
            Err((kind, message)) => FromKeeper::StateFailed { id, call, kind, message },
            Ok(key) => FromKeeper::State { id, call, value: self.states.get(&key).cloned() },
        };
        self.say(session, said);
    }

    pub(super) fn save_state(
        &mut self,
        session: u64,
        id: u64,
        call: u64,
        value: Option<RawState>,
        with_the_release: bool,
    ) {
        let said = match self.key_of(session, id) {
            Err((kind, message)) => FromKeeper::StateFailed { id, call, kind, message },
            Ok(key) => {
                if let Some(Held::Here(lease)) = self.held.get_mut(&key) {
                    lease.on_release = with_the_release.then(|| value.clone());
                }
                if !with_the_release {
                    self.keep_state(key, value);
                }
                FromKeeper::StateSaved { id, call }
            }
        };
        self.say(session, said);
    }

    pub(super) fn keep_state(&mut self, key: String, value: Option<RawState>) {
        match value {
            Some(value) => self.states.insert(key, value),
            None => self.states.remove(&key),
        };
    }

    /// The key that this session holds under this id: it may hold a second one beside it (`also`).
    fn key_of(&self, session: u64, id: u64) -> Result<String, (FailKind, String)> {
        if let Health::Fails { kind, message } = &self.health {
            return Err((*kind, message.clone()));
        }
        let held = self.held.iter().find(|(_, held)| held.is_of(session, Some(id)));
        held.map(|(key, _)| key.clone()).ok_or_else(|| (FailKind::NotHeld, "the lease is not held".to_owned()))
    }
}

impl TestKeeper {
    /// Leaves a state on this key, as an earlier holder did: [`Lease::state`](crate::Lease::state) reads it. `None` of an
    /// `Option` takes it away.
    ///
    /// # Panics
    ///
    /// When the value can't be written as JSON, as a test wants it.
    #[allow(clippy::expect_used, reason = "a test's own state that is no JSON is a mistake in the test")]
    pub fn leave_state(&self, key: impl Into<String>, state: &(impl Serialize + ?Sized)) {
        let state = RawState::of(state).expect("the state can be written as JSON");
        self.with(|double| double.keep_state(key.into(), state.unless_null()));
    }

    /// What the last holder left on this key, or saved so far.
    ///
    /// # Panics
    ///
    /// When it is there and is no `T`.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a state of another type is what the test is to find out")]
    pub fn state_left<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let state = self.with(|double| double.states.get(key).cloned());
        state.map(|state| serde_json::from_str(state.get()).expect("what was left is of this type"))
    }
}
