//! Fronts: black holes shorter and longer than a lease, throttling of everything, and cuts of every connection.

use std::time::Duration;

use fastrand::Rng;

use super::{Plan, weather::Weather};
use crate::faults::{Answer, End, Fault, FaultProxy, Passing, Step};

/// A period in which requests share a fate.
#[derive(Debug, Clone)]
pub(super) struct Front {
    /// The key that it is limited to, or all.
    key: Option<String>,
    trouble: Trouble,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Requests are swallowed.
    SwallowsRequests,
    /// Writes are carried out and never answered.
    SwallowsReplies,
    /// DynamoDB throttles.
    Throttles,
    /// Renewals alone get lost.
    SwallowsRenewals,
}

impl Front {
    /// What a request meets in it.
    pub(super) fn fault_for(&self, passing: &Passing) -> Option<(&'static str, Fault)> {
        if self.key.is_some() && self.key != passing.key {
            return None;
        }
        match self.trouble {
            Trouble::SwallowsRequests => Some(("black hole: request", Fault::LoseRequest(End::Silence))),
            Trouble::SwallowsReplies => Some(("black hole: reply", Fault::LoseReply(End::Silence))),
            Trouble::Throttles => {
                let name = Answer::THROTTLES[usize::try_from(passing.number % 4).unwrap_or(0)];
                Some(("throttled by a front", Fault::Answer(Answer::throttled(name))))
            }
            Trouble::SwallowsRenewals if passing.step == Step::Renew => {
                Some(("black hole: renewal", Fault::LoseRequest(End::Silence)))
            }
            Trouble::SwallowsRenewals => None,
        }
    }
}

/// Sends fronts and cuts connections until it is dropped.
pub(super) async fn blow(plan: &Plan, weather: &Weather, proxy: &FaultProxy) {
    if plan.fronts <= 0.0 {
        return std::future::pending().await;
    }
    // Not the dice of the single requests: how many of those there are depends on the machine.
    let mut dice = Rng::with_seed(plan.seed.wrapping_add(1));
    let between = Duration::from_secs(60).div_f64(plan.fronts);
    loop {
        tokio::time::sleep(between.mul_f64(0.5 + dice.f64())).await;
        let key = (dice.u32(0..3) > 0).then(|| super::key_of(dice.usize(0..plan.keys)));
        let trouble = match dice.u32(0..6) {
            0 => {
                weather.count("idle connections cut");
                proxy.cut_connections();
                continue;
            }
            1 => Trouble::SwallowsRequests,
            2 => Trouble::SwallowsReplies,
            3 => Trouble::Throttles,
            _ => Trouble::SwallowsRenewals,
        };
        let long = dice.bool();
        let length = if long { 1.2 + dice.f64() } else { 0.3 + 0.5 * dice.f64() };
        weather.count(if long { "front, longer than a lease" } else { "front, shorter than a lease" });
        weather.set_front(Some(Front { key, trouble }));
        tokio::time::sleep(plan.lease.mul_f64(length)).await;
        weather.set_front(None);
    }
}
