//! What everything is measured against: one bare conditional `UpdateItem` to take a row and one to free it.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::{Client, error::DisplayErrorContext, types::AttributeValue};

use super::{
    ground::{Counts, Ground, TABLE},
    statistics::{Times, ratio},
};
use crate::{Error, faults::Step};

/// The floor's own row.
pub(super) const KEY: &str = "floor";

/// The floor, as it was when a section was measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Floor {
    takes: Times,
    frees: Times,
    both: Times,
}

impl Floor {
    /// Takes and frees a row so many times over this client.
    pub(super) async fn measure(ground: &Ground, client: &Client, pairs: usize) -> Result<Self, Error> {
        let mark = ground.mark();
        let mut timed = Vec::with_capacity(pairs);
        for _ in 0..pairs {
            timed.push(pair(client).await?);
        }
        Self::of(&timed, &ground.since(mark, |key| key == KEY))
    }

    /// Both, as one: what was before and after something.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            takes: self.takes.and(&other.takes),
            frees: self.frees.and(&other.frees),
            both: self.both.and(&other.both),
        }
    }

    /// The floor of these pairs, if those and no other requests were sent for them: a request that was sent twice, or for
    /// somebody else, would raise it and flatter what is measured against it.
    pub(super) fn of(pairs: &[(Duration, Duration)], seen: &Counts) -> Result<Self, Error> {
        let sent = pairs.len();
        if pairs.is_empty() || (seen.of(Step::Acquire), seen.of(Step::Release), seen.all()) != (sent, sent, 2 * sent) {
            let problem = format!("{sent} pairs of requests were sent, and the proxy saw {seen}; run the bench again");
            return Err(Error::Setting { setting: "the floor", problem });
        }
        let takes = pairs.iter().map(|(take, _)| *take);
        let frees = pairs.iter().map(|(_, free)| *free);
        Ok(Self { both: takes.clone().chain(frees.clone()).collect(), takes: takes.collect(), frees: frees.collect() })
    }

    /// What one request takes: the middle of all.
    pub(super) fn request(&self) -> Duration {
        self.both.median()
    }

    /// This time as a multiple of one request's.
    pub(super) fn requests(&self, time: Duration) -> f64 {
        ratio(time, self.request())
    }

    /// Middle and slow ones, of takes and frees.
    pub(super) fn told(&self) -> [(&'static str, &Times); 2] {
        [("take", &self.takes), ("free", &self.frees)]
    }
}

/// One to take, one to free; how long each took.
pub(super) async fn pair(client: &Client) -> Result<(Duration, Duration), Error> {
    let me = AttributeValue::S("floor".to_owned());
    let request = || {
        let key = AttributeValue::S(KEY.to_owned());
        let request =
            client.update_item().table_name(TABLE).key("key", key).expression_attribute_names("#owner", "owner");
        request.expression_attribute_values(":owner", me.clone())
    };
    let failed = |error| Error::DynamoDb {
        action: "change the floor's row".to_owned(),
        problem: DisplayErrorContext(&error).to_string(),
    };
    let began = Instant::now();
    request()
        .update_expression("SET #owner = :owner")
        .condition_expression("attribute_not_exists(#key) OR attribute_not_exists(#owner)")
        .expression_attribute_names("#key", "key")
        .send()
        .await
        .map_err(failed)?;
    let taken = Instant::now();
    let free = request().update_expression("REMOVE #owner").condition_expression("#owner = :owner");
    free.send().await.map_err(failed)?;
    Ok((taken - began, taken.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn counts(acquires: usize, releases: usize, others: usize) -> Counts {
        [(Step::Acquire, acquires), (Step::Release, releases), (Step::Read, others)].into_iter().collect()
    }

    #[test]
    fn a_request_is_the_middle_of_takes_and_frees_together() {
        let floor = Floor::of(&[(ms(6), ms(5)), (ms(8), ms(7)), (ms(60), ms(7))], &counts(3, 3, 0)).unwrap();
        assert_eq!(floor.request(), ms(7));
        assert_eq!(floor.requests(ms(21)), 3.0);
        assert_eq!(floor.told().map(|(_, times)| times.median()), [ms(8), ms(7)]);
    }

    #[test]
    fn a_floor_before_and_one_after_are_one() {
        let (before, after) = ([(ms(6), ms(5))], [(ms(8), ms(9))]);
        let of = |pairs: &[_]| Floor::of(pairs, &counts(pairs.len(), pairs.len(), 0)).unwrap();
        assert_eq!(of(&before).and(&of(&after)), of(&[before, after].concat()));
    }

    #[test]
    fn a_floor_of_other_requests_than_its_own_is_refused() {
        let pairs = [(ms(6), ms(6)); 3];
        for (seen, why) in [(counts(4, 3, 0), "sent twice"), (counts(3, 2, 0), "not seen"), (counts(3, 3, 1), "read")] {
            assert!(Floor::of(&pairs, &seen).is_err(), "{why}");
        }
        assert!(Floor::of(&[], &counts(0, 0, 0)).is_err(), "nothing was measured");
    }
}
