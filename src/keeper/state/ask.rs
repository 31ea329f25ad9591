//! What is asked about a lease's state, and where there can be none.

use crate::keeper::subject::MAX_KEY;
use crate::keeper::terms::Terms;
use crate::session::RawState;
use crate::store::{STATE_SUFFIX, state_key};

/// What a session asks about a lease's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::keeper) enum Ask {
    /// What is there?
    Load { call: u64 },
    /// Write this now.
    Save { call: u64, value: Option<RawState> },
    /// Write this with the release.
    SaveOnRelease { call: u64, value: Option<RawState> },
    /// Write now what was to be written with the release: the row stays held, and no release is sent. Nobody is answered.
    Leave { value: Option<RawState> },
}

impl Ask {
    pub(in crate::keeper) const fn call(&self) -> u64 {
        match self {
            Self::Load { call } | Self::Save { call, .. } | Self::SaveOnRelease { call, .. } => *call,
            Self::Leave { .. } => 0,
        }
    }

    /// What is wrong with it.
    pub(in crate::keeper) fn refusal(&self) -> Option<String> {
        let (Self::Save { value: Some(value), .. } | Self::SaveOnRelease { value: Some(value), .. }) = self else {
            return None;
        };
        let (bytes, most) = (value.get().len(), RawState::MAX_BYTES);
        if bytes > most {
            return Some(format!("the state has {bytes} bytes of JSON, and at most {most} are kept"));
        }
        let (depth, most) = (value.depth(), RawState::MAX_DEPTH);
        (depth > most)
            .then(|| format!("the state's arrays and objects go {depth} deep, and at most {most} can be read"))
    }
}

/// Why a lease with these terms can have no state.
pub(in crate::keeper) fn stateless(terms: &Terms) -> Option<String> {
    let format = terms.settings.format;
    if !format.abilities().state {
        return Some(format!("the row format `{format}` has no place for a state"));
    }
    let bytes = state_key(&terms.lock.key).len();
    (bytes > MAX_KEY).then(|| format!("the key and `{STATE_SUFFIX}` have {bytes} bytes, and DynamoDB takes {MAX_KEY}"))
}
