//! How keys stand on their rows: behind which namespace, in clear text or hashed.

use std::fmt;

use super::choice::Switch;
use super::reading::{CodeWins as _, Reading};
use crate::key::KeyHash;

/// A secret hashed with less than this could be guessed like the values themselves.
const SHORTEST_SECRET: usize = 16;

/// A text that is not printed with the rest of the settings.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Reading<'_> {
    /// How keys are hashed, if they are.
    pub(super) fn key_hash(&mut self, hashed: Option<bool>, secret: Option<Secret>) -> Option<KeyHash> {
        let hashed = self.choice("HASHED_KEYS").map(|Switch(on)| on).unless_set(hashed).unwrap_or(false);
        let secret = self.text("KEY_SECRET").unless_set(secret.map(|Secret(text)| text));
        match &secret {
            Some(_) if !hashed => self.problems.push(
                "`key_secret` is set and keys are not hashed: set `hashed_keys` (LEASEHOLD_HASHED_KEYS=true), or take the \
                 secret out"
                    .to_owned(),
            ),
            Some(secret) if secret.len() < SHORTEST_SECRET => {
                let bytes = secret.len();
                self.problems.push(format!("`key_secret` has {bytes} bytes: take {SHORTEST_SECRET} random ones or more"));
            }
            _ => {}
        }
        hashed.then(|| secret.as_deref().map_or(KeyHash::plain(), KeyHash::with_secret))
    }
}
