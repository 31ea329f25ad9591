//! Keys that show nothing of the values that they were made from.

use std::fmt;

use hmac_sha256::{HMAC, Hash};

use super::lock_key::LockKey;

/// Turns a key into its hash, which takes its place on the row, in logs and in errors.
///
/// A layer with [`hashed_keys`](crate::LeaseLayerBuilder::hashed_keys) does it by itself. Take this to find a key's row, or
/// to name a key to a test double. The namespace is not part of what is hashed, and stands in front of the hash.
///
/// **A hash without a secret hides little.** Who can guess the value, an e-mail address or a number of a customer, can
/// hash the guess and compare. With a secret that nobody else knows, that takes the secret.
///
/// ```
/// use leasehold::key::{KeyHash, LockKey};
///
/// let key = LockKey::new("customers:alice@example.com")?;
/// // What `printf %s customers:alice@example.com | sha256sum` prints.
/// let hashed = KeyHash::plain().of(&key);
/// assert!(hashed.as_str().starts_with("sha256:"));
///
/// let hashed = KeyHash::with_secret("a secret of 16 bytes or more").of(&key);
/// assert!(hashed.as_str().starts_with("hmac-sha256:"));
/// # Ok::<(), leasehold::key::KeyError>(())
/// ```
#[derive(Clone)]
pub struct KeyHash {
    secret: Option<Box<[u8]>>,
}

impl KeyHash {
    /// SHA-256, without a secret.
    #[must_use]
    pub const fn plain() -> Self {
        Self { secret: None }
    }

    /// HMAC-SHA-256 with this secret: whoever shares locks needs the same one.
    #[must_use]
    pub fn with_secret(secret: &str) -> Self {
        Self { secret: Some(secret.as_bytes().into()) }
    }

    /// The hash of a key without its namespace: the name of the function, a colon, and 64 hexadecimal digits.
    #[must_use]
    pub fn of(&self, key: &LockKey) -> LockKey {
        let text = key.as_str().as_bytes();
        match &self.secret {
            None => written("sha256:", &Hash::hash(text)),
            Some(secret) => written("hmac-sha256:", &HMAC::mac(text, secret)),
        }
    }
}

fn written(function: &str, digest: &[u8]) -> LockKey {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| DIGITS.get(usize::from(digit))).map(|digit| char::from(*digit));
    let mut text = String::with_capacity(function.len() + 2 * digest.len());
    text.push_str(function);
    text.extend(digits);
    LockKey::of_short_text(text)
}

/// Without the secret.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHash").field("has_secret", &self.secret.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_functions_own() {
        // From FIPS 180-4's examples, and from RFC 4231, test case 2.
        let key = |text: &str| LockKey::new(text).unwrap();
        assert_eq!(
            KeyHash::plain().of(&key("abc")).as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            KeyHash::with_secret("Jefe").of(&key("what do ya want for nothing?")).as_str(),
            "hmac-sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn the_secret_is_not_printed() {
        let printed = format!("{:?}", KeyHash::with_secret("hunter2hunter2hunter2"));
        assert_eq!(printed, "KeyHash { has_secret: true, .. }");
    }
}
