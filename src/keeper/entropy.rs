//! Identities and jitter from the kernel, asked at each use: a restored snapshot would clone a generator of our own.

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
        // The low 62 bits of a random UUID carry neither its version nor its variant; a double holds 53 of them.
        const BITS: u32 = 53;
        let (_, low) = Uuid::new_v4().as_u64_pair();
        #[allow(clippy::cast_precision_loss)]
        let (drawn, range) = ((low & ((1 << BITS) - 1)) as f64, (1_u64 << BITS) as f64);
        drawn / range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_lies_in_the_unit_interval_and_varies() {
        let drawn: Vec<f64> = (0..64).map(|_| KernelEntropy.fraction()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn.iter().any(|fraction| *fraction < 0.5) && drawn.iter().any(|fraction| *fraction >= 0.5));
    }
}
