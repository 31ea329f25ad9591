//! Which records of a batch wait for which: what the source's order asks for, and what sharing a lease asks for.
//!
//! Records with one key make a *group*: they share one lease and run in their order. Where the source has an order as well
//! (a message group, a shard), records stand in *lines*. A line may lead through several keys, and then a group ends there
//! and a new one begins behind it: so within a group nothing ever waits for another group, and no invocation holds one key
//! while it waits for another.

use std::collections::HashMap;

use crate::key::LockKey;

/// What a record's place depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// None for a record that has no key.
    pub(super) key: Option<&'a LockKey>,
    /// The line it stands in, if the source has an order.
    pub(super) line: Option<&'a str>,
}

/// Records that share a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// In the batch's order.
    pub(super) records: Vec<usize>,
    /// The group of the same key that has to be over before.
    pub(super) after_group: Option<usize>,
    /// The record of the same line, with another key, that has to be settled before.
    pub(super) after_record: Option<usize>,
}

/// The order in which a batch may be worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// By the index of their first records.
    pub(super) groups: Vec<Group>,
    /// For each record the one before it in its line.
    pub(super) behind: Vec<Option<usize>>,
    /// For each record how many stand in its line from it on.
    pub(super) to_the_end: Vec<usize>,
}

impl Order {
    /// Finds the order of a batch.
    pub(super) fn of(places: &[Place<'_>]) -> Self {
        let mut last_in_line: HashMap<&str, usize> = HashMap::new();
        let behind: Vec<Option<usize>> = places
            .iter()
            .enumerate()
            .map(|(index, place)| place.line.and_then(|line| last_in_line.insert(line, index)))
            .collect();
        let mut to_the_end = vec![1; places.len()];
        for (index, before) in behind.iter().enumerate().rev() {
            let from_here: usize = to_the_end.get(index).copied().unwrap_or(1);
            if let Some(from_before) = before.and_then(|before| to_the_end.get_mut(before)) {
                *from_before = from_here + 1;
            }
        }
        let groups = groups(places, &behind);
        Self { groups, behind, to_the_end }
    }
}

fn groups(places: &[Place<'_>], behind: &[Option<usize>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last_of_key: HashMap<&LockKey, usize> = HashMap::new();
    for (index, (place, before)) in places.iter().zip(behind).enumerate() {
        let latest = place.key.and_then(|key| last_of_key.get(key).copied());
        let is_before_another_key = before
            .is_some_and(|before| place.key.is_none() || places.get(before).and_then(|before| before.key) != place.key);
        match latest.and_then(|latest| groups.get_mut(latest)) {
            Some(group) if !is_before_another_key => group.records.push(index),
            _ => {
                let after_record = before.filter(|_| is_before_another_key);
                if let Some(key) = place.key {
                    last_of_key.insert(key, groups.len());
                }
                groups.push(Group { records: vec![index], after_group: latest, after_record });
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Orders records that are written as line and key; `-` is no line, and `-` no key.
    fn order(records: &[(&str, &str)]) -> Order {
        let keys: Vec<_> = records.iter().map(|(_, key)| (*key != "-").then(|| LockKey::new(*key).unwrap())).collect();
        let place = |(line, key)| Place { key, line };
        let lines = records.iter().map(|(line, _)| (*line != "-").then_some(*line));
        Order::of(&lines.zip(keys.iter().map(Option::as_ref)).map(place).collect::<Vec<_>>())
    }

    fn group(records: &[usize], after_group: Option<usize>, after_record: Option<usize>) -> Group {
        Group { records: records.to_vec(), after_group, after_record }
    }

    #[test]
    fn without_lines_there_is_one_group_a_key() {
        let order = order(&[("-", "a"), ("-", "b"), ("-", "a"), ("-", "-"), ("-", "-"), ("-", "b")]);
        let expected = [&[0, 2][..], &[1, 5], &[3], &[4]].map(|records| group(records, None, None));
        assert_eq!(order.groups, expected);
        assert_eq!(order.behind, [None; 6]);
    }

    #[test]
    fn lines_with_one_key_each_are_one_group_a_line() {
        let order = order(&[("x", "a"), ("y", "b"), ("x", "a"), ("y", "b")]);
        assert_eq!(order.groups, [group(&[0, 2], None, None), group(&[1, 3], None, None)]);
        assert_eq!(order.behind, [None, None, Some(0), Some(1)]);
        assert_eq!(order.to_the_end, [2, 2, 1, 1]);
    }

    #[test]
    fn a_line_through_several_keys_ends_a_group_at_each_change() {
        let order = order(&[("x", "a"), ("x", "a"), ("x", "b"), ("x", "a")]);
        assert_eq!(
            order.groups,
            [group(&[0, 1], None, None), group(&[2], None, Some(1)), group(&[3], Some(0), Some(2)),]
        );
        assert_eq!(order.to_the_end, [4, 3, 2, 1]);
    }

    #[test]
    fn a_key_of_two_lines_is_one_group_until_a_line_comes_from_another_key() {
        let order = order(&[("x", "a"), ("y", "a"), ("y", "b"), ("x", "b")]);
        assert_eq!(
            order.groups,
            [group(&[0, 1], None, None), group(&[2], None, Some(1)), group(&[3], Some(1), Some(0)),]
        );
    }

    proptest! {
        #[test]
        fn every_batch_can_be_worked_on_to_its_end(
            records in prop::collection::vec((prop::sample::select(&["-", "x", "y"]), prop::sample::select(&["-", "a", "b", "c"])), 0..24),
        ) {
            let order = order(&records);
            let mut over = vec![false; order.groups.len()];
            let mut settled = vec![false; records.len()];
            // One group at a time, each as soon as it may: nothing within a group waits any more.
            while let Some(next) = (0..over.len()).find(|&at| {
                let Group { after_group, after_record, .. } = &order.groups[at];
                !over[at] && after_group.is_none_or(|group| over[group]) && after_record.is_none_or(|record| settled[record])
            }) {
                for &record in &order.groups[next].records {
                    prop_assert!(order.behind[record].is_none_or(|before| settled[before]));
                    prop_assert_eq!(records[record].1, records[order.groups[next].records[0]].1);
                    prop_assert!(!std::mem::replace(&mut settled[record], true));
                }
                over[next] = true;
            }
            prop_assert!(settled.into_iter().all(|settled| settled));
        }
    }
}
