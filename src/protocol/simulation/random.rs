//! A small generator of our own: the same numbers from the same seed, on every machine and for all time.

use crate::protocol::{Entropy, OwnerId};

/// `SplitMix64`, and the identities of one run.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
    owners: u128,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // Neighbouring seeds are spread before the first number is taken.
        let mut random = Self { state: seed ^ 0x6C65_6173_6568_6F6C, owners: 0 };
        random.state = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to `end`, without it.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(end.max(1));
        (product >> 64) as u64
    }

    /// A number from `low` to `high`, with both.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number from `low` to `high` whose magnitudes are about equally likely.
    pub(super) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low.max(1)).max(1).ilog2();
        let from = low.saturating_mul(1 << self.below(u64::from(doublings) + 1));
        self.between(from, from.saturating_mul(2)).clamp(low, high)
    }

    /// Whether something happens that happens `per_mille` times out of a thousand.
    pub(super) fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

impl Entropy for Random {
    fn owner(&mut self) -> OwnerId {
        self.owners += 1;
        OwnerId::from_u128(self.owners)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
