//! What a lease is on: one key, or two that are taken together.

use crate::keeper::client::Which;
use crate::key::LockKey;

/// One key, and another one beside it while a deployment changes the template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keys {
    main: LockKey,
    also: Option<LockKey>,
}

impl Keys {
    /// Two keys; where they are the same text there is one row and so one lease.
    pub(crate) fn new(main: LockKey, also: Option<LockKey>) -> Self {
        Self { also: also.filter(|also| *also != main), main }
    }

    /// The lease's own key.
    pub(crate) const fn main(&self) -> &LockKey {
        &self.main
    }

    /// The key under this name; the lease's own where there is no other.
    pub(crate) fn get(&self, which: Which) -> &LockKey {
        match (which, &self.also) {
            (Which::Also, Some(also)) => also,
            _ => &self.main,
        }
    }

    /// In the order in which they are taken: by their bytes. Whoever wants both takes them so, whichever of the two it
    /// calls its own; in any other order the old and the new deployment could wait for each other.
    pub(crate) fn in_order(&self) -> impl DoubleEndedIterator<Item = (Which, &LockKey)> {
        let also = self.also.as_ref().map(|also| (Which::Also, also));
        let (before, after) = if also.is_some_and(|(_, also)| *also < self.main) { (also, None) } else { (None, also) };
        before.into_iter().chain([(Which::Main, &self.main)]).chain(after)
    }
}

impl From<LockKey> for Keys {
    fn from(main: LockKey) -> Self {
        Self { main, also: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> LockKey {
        LockKey::new(text).unwrap()
    }

    #[test]
    fn both_sides_of_a_change_take_two_keys_in_one_order() {
        let texts = |keys: &Keys| keys.in_order().map(|(_, key)| key.to_string()).collect::<Vec<_>>();
        let (new, old) = (Keys::new(key("b"), Some(key("a"))), Keys::new(key("a"), Some(key("b"))));
        assert_eq!(texts(&new), ["a", "b"]);
        assert_eq!(texts(&old), ["a", "b"]);
        assert_eq!(new.in_order().map(|(which, _)| which).collect::<Vec<_>>(), [Which::Also, Which::Main]);
        assert_eq!((new.get(Which::Main), new.get(Which::Also)), (&key("b"), &key("a")));
    }

    #[test]
    fn the_same_text_twice_is_one_key() {
        let keys = Keys::new(key("a"), Some(key("a")));
        assert_eq!(keys.in_order().count(), 1);
        assert_eq!(keys, key("a").into());
    }
}
