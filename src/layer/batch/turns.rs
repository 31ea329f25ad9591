//! Whose turn it is: the groups of a batch that wait for nothing any more, in their order.
//!
//! A stream brings up to 10,000 records, each with a key of its own and behind the one before. So nothing here looks at all
//! groups when one begins or ends: each knows how much it waits for, and who waits for it.

use std::collections::BTreeSet;

use super::order::{Group, Order};

/// The groups that did not begin yet.
#[derive(Debug)]
pub(super) struct Turns {
    /// For each group how much has to be over before it.
    waits_for: Vec<u8>,
    /// For each group the one of the same key behind it.
    behind_group: Vec<Option<usize>>,
    /// For each record the group that may not begin before the record is settled. There is one at most: the record's next
    /// one in its line is in it.
    behind_record: Vec<Option<usize>>,
    may_begin: BTreeSet<usize>,
    left: usize,
}

impl Turns {
    pub(super) fn new(order: &Order) -> Self {
        let mut turns = Self {
            waits_for: Vec::with_capacity(order.groups.len()),
            behind_group: vec![None; order.groups.len()],
            behind_record: vec![None; order.behind.len()],
            may_begin: BTreeSet::new(),
            left: order.groups.len(),
        };
        for (group, Group { after_group, after_record, .. }) in order.groups.iter().enumerate() {
            let slots = [
                after_group.and_then(|before| turns.behind_group.get_mut(before)),
                after_record.and_then(|before| turns.behind_record.get_mut(before)),
            ];
            let waits_for = slots.into_iter().flatten().map(|slot| *slot = Some(group)).count();
            turns.waits_for.push(u8::try_from(waits_for).unwrap_or(u8::MAX));
            if waits_for == 0 {
                turns.may_begin.insert(group);
            }
        }
        turns
    }

    /// The first group that may begin; it is the caller's from here on.
    pub(super) fn next(&mut self) -> Option<usize> {
        let next = self.may_begin.pop_first()?;
        self.left -= 1;
        Some(next)
    }

    /// Whether none is left that did not begin.
    pub(super) const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Whether another group waits for this one's end.
    pub(super) fn is_waited_for(&self, group: usize) -> bool {
        self.behind_group.get(group).is_some_and(Option::is_some)
    }

    /// A group came to its end.
    pub(super) fn group_is_over(&mut self, group: usize) {
        let behind = self.behind_group.get_mut(group).and_then(Option::take);
        self.one_less(behind);
    }

    /// A record came to its end.
    pub(super) fn record_is_settled(&mut self, record: usize) {
        let behind = self.behind_record.get_mut(record).and_then(Option::take);
        self.one_less(behind);
    }

    fn one_less(&mut self, group: Option<usize>) {
        let Some((group, waits_for)) = group.and_then(|group| Some((group, self.waits_for.get_mut(group)?))) else {
            return;
        };
        *waits_for = waits_for.saturating_sub(1);
        if *waits_for == 0 {
            self.may_begin.insert(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::order::Place;
    use super::*;
    use crate::key::LockKey;

    fn order(records: &[(u8, u8)]) -> Order {
        let texts: Vec<_> = records.iter().map(|(line, key)| (line.to_string(), format!("k{key}"))).collect();
        let keys: Vec<_> = texts.iter().map(|(_, key)| LockKey::new(key.as_str()).unwrap()).collect();
        let places: Vec<_> = records
            .iter()
            .zip(texts.iter().zip(&keys))
            .map(|((line, key), ((name, _), lock))| Place {
                key: (*key > 0).then_some(lock),
                line: (*line > 0).then_some(name.as_str()),
            })
            .collect();
        Order::of(&places)
    }

    proptest! {
        /// Which one comes next is what a look at all groups would say, whichever of those under way ends first.
        #[test]
        fn the_next_one_is_the_first_of_all_that_may(
            records in prop::collection::vec((0..4_u8, 0..4_u8), 0..24),
            ends in prop::collection::vec(any::<prop::sample::Index>(), 24),
            at_a_time in 1..4_usize,
        ) {
            let order = order(&records);
            let mut turns = Turns::new(&order);
            let (mut begun, mut over) = (vec![false; order.groups.len()], vec![false; order.groups.len()]);
            let mut settled = vec![false; records.len()];
            let mut running = Vec::new();
            let mut ends = ends.into_iter();
            loop {
                while running.len() < at_a_time {
                    let first = order.groups.iter().enumerate().position(|(at, group)| {
                        !begun[at]
                            && group.after_group.is_none_or(|before| over[before])
                            && group.after_record.is_none_or(|before| settled[before])
                    });
                    prop_assert_eq!(turns.next(), first);
                    let Some(next) = first else { break };
                    let is_waited_for = order.groups.iter().any(|group| group.after_group == Some(next));
                    prop_assert_eq!(turns.is_waited_for(next), is_waited_for);
                    begun[next] = true;
                    running.push(next);
                }
                if running.is_empty() {
                    break;
                }
                let ended = running.swap_remove(ends.next().unwrap().index(running.len()));
                for record in &order.groups[ended].records {
                    settled[*record] = true;
                    turns.record_is_settled(*record);
                }
                over[ended] = true;
                turns.group_is_over(ended);
            }
            prop_assert!(turns.is_empty() && over.into_iter().all(|over| over));
        }
    }
}
