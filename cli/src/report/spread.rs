//! How durations spread, in a few kilobytes however many there are.

/// Sub-buckets of each doubling: what is told is at most 1/32 too high.
const PARTS: u64 = 32;

/// A histogram of milliseconds: exact below 32, and then 32 buckets for each doubling.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Spread {
    pub(super) fn add(&mut self, ms: u64) {
        let at = bucket(ms);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum += u128::from(ms);
        self.max = self.max.max(ms);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn sum_ms(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// At most this many milliseconds for that many of a hundred; 0 where there are none.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut counted = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            counted += bucket;
            if counted >= wanted {
                return top(at).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(ms: u64) -> usize {
    if ms < PARTS {
        return usize::try_from(ms).unwrap_or(0);
    }
    let doubling = u64::from(ms.ilog2()) - u64::from(PARTS.ilog2());
    let part = (ms >> doubling) - PARTS;
    usize::try_from(PARTS + doubling * PARTS + part).unwrap_or(usize::MAX)
}

/// The highest value of a bucket.
fn top(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let (doubling, part) = ((bucket - PARTS) / PARTS, (bucket - PARTS) % PARTS);
    let width = 1_u64 << doubling.min(58);
    ((PARTS + part) * width).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_little_below_its_top() {
        for ms in (0..5_000).chain([100_000, 86_400_000, u64::MAX / 2]) {
            let at = bucket(ms);
            assert!(top(at) >= ms && (at == 0 || top(at - 1) < ms), "{ms}");
            assert!(top(at) - ms <= ms / 32, "{ms}: {}", top(at));
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut spread = Spread::default();
        assert_eq!(spread.percentile(99), 0);
        for ms in 1..=1_000 {
            spread.add(ms);
        }
        assert!((500..=516).contains(&spread.percentile(50)), "{}", spread.percentile(50));
        assert!((990..=1_000).contains(&spread.percentile(99)), "{}", spread.percentile(99));
        assert_eq!((spread.percentile(100), spread.max(), spread.sum_ms()), (1_000, 1_000, 500_500));
    }
}
