//! Identities and jitter from the kernel, asked at each use: a restored snapshot would clone a generator of our own.
//!
//! Measurements may draw their jitter from a seed, so that their counts repeat; identities never come from one.

use uuid::Uuid;

use crate::protocol::{Entropy, OwnerId};

/// The kernel's randomness.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelEntropy;

impl Entropy for KernelEntropy {
    fn owner(&mut self) -> OwnerId {
        OwnerId::random()
    }

    fn fraction(&mut self) -> f64 {
        // The low 62 bits of a random UUID carry neither its version nor its variant.
        fraction_of(Uuid::new_v4().as_u64_pair().1)
    }
}

/// The low bits as a number from 0 to 1; a double holds 53 of them.
#[allow(clippy::cast_precision_loss)]
fn fraction_of(bits: u64) -> f64 {
    const BITS: u32 = 53;
    (bits & ((1 << BITS) - 1)) as f64 / (1_u64 << BITS) as f64
}

/// Identities from the kernel, and jitter from a seed where there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeeperEntropy {
    seed: Option<u64>,
}

impl KeeperEntropy {
    /// Draws jitter from this from here on.
    pub(super) const fn seed_jitter(&mut self, seed: u64) {
        self.seed = Some(seed);
    }
}

impl Entropy for KeeperEntropy {
    fn owner(&mut self) -> OwnerId {
        KernelEntropy.owner()
    }

    fn fraction(&mut self) -> f64 {
        let Some(seed) = &mut self.seed else { return KernelEntropy.fraction() };
        // SplitMix64, as its authors published it.
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        fraction_of(mixed ^ (mixed >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_jitter_repeats_and_identities_never_do() {
        let mut seeded = [KeeperEntropy::default(), KeeperEntropy::default()];
        seeded.iter_mut().for_each(|entropy| entropy.seed_jitter(7));
        let drawn = seeded.each_mut().map(|entropy| (0..64).map(|_| entropy.fraction()).collect::<Vec<_>>());
        assert_eq!(drawn[0], drawn[1]);
        assert!(drawn[0].iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn[0].iter().any(|fraction| *fraction < 0.5) && drawn[0].iter().any(|fraction| *fraction >= 0.5));
        let [one, other] = &mut seeded;
        assert_ne!(one.owner(), other.owner());
    }

    #[test]
    fn a_fraction_lies_in_the_unit_interval_and_varies() {
        let drawn: Vec<f64> = (0..64).map(|_| KernelEntropy.fraction()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn.iter().any(|fraction| *fraction < 0.5) && drawn.iter().any(|fraction| *fraction >= 0.5));
    }
}
