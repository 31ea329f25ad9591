//! What happens to requests: faults drawn one by one, and fronts, periods in which all requests have the same trouble.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use fastrand::Rng;

use super::{KEY_PREFIX, Plan, fronts::Front};
use crate::{
    Log,
    faults::{Answer, DateHeader, End, Fault, FaultProxy, Passing, Step},
};

/// How many faults are remembered of a key, to tell why its lock was lost.
const REMEMBERED: usize = 256;

/// The weather, shared by the proxy that asks what happens to a request and the soak that tells what happened.
#[derive(Debug, Clone)]
pub(super) struct Weather(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    lease: Duration,
    chance: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    dice: Rng,
    calm: bool,
    front: Option<Front>,
    faults: BTreeMap<&'static str, u64>,
    requests: BTreeMap<Step, u64>,
    /// Of these, those for a key of the soak: an extension's first one is for nobody's.
    for_locks: BTreeMap<Step, u64>,
    recent: HashMap<String, VecDeque<Met>>,
}

/// A fault that a request for a key met.
#[derive(Debug)]
struct Met {
    at: Instant,
    owner: Option<String>,
    kind: &'static str,
}

impl Weather {
    pub(super) fn new(plan: &Plan) -> Self {
        Self(Arc::new(Shared {
            lease: plan.lease,
            chance: plan.request_faults / 100.0,
            state: Mutex::new(State {
                dice: Rng::with_seed(plan.seed),
                calm: false,
                front: None,
                faults: BTreeMap::new(),
                requests: BTreeMap::new(),
                for_locks: BTreeMap::new(),
                recent: HashMap::new(),
            }),
        }))
    }

    /// From now on the proxy asks this weather.
    pub(super) fn begin(&self, proxy: &FaultProxy, log: &Log) {
        let (weather, log) = (self.clone(), log.clone());
        drop(proxy.inject_where(usize::MAX, move |passing| {
            let (kind, fault) = weather.judge(passing)?;
            let Passing { number, step, key, owner, .. } = passing;
            let (key, owner) = (key.as_deref().unwrap_or("-"), owner.as_deref().unwrap_or("-"));
            log.note(format!("fault `{kind}` at request {number}: {step:?} of {key} by {owner}"));
            Some(fault)
        }));
    }

    /// No further fault.
    pub(super) fn clear_up(&self) {
        let mut state = self.lock();
        state.calm = true;
        state.front = None;
    }

    pub(super) fn set_front(&self, front: Option<Front>) {
        self.lock().front = front;
    }

    /// Something that is no request's own fault.
    pub(super) fn count(&self, kind: &'static str) {
        *self.lock().faults.entry(kind).or_default() += 1;
    }

    pub(super) fn faults(&self) -> BTreeMap<&'static str, u64> {
        self.lock().faults.clone()
    }

    pub(super) fn requests(&self) -> BTreeMap<Step, u64> {
        self.lock().requests.clone()
    }

    pub(super) fn requests_for_locks(&self) -> BTreeMap<Step, u64> {
        self.lock().for_locks.clone()
    }

    /// The kinds of fault that this owner's requests for the key met within the time before now.
    pub(super) fn met(&self, key: &str, owner: &str, within: Duration) -> Vec<&'static str> {
        let state = self.lock();
        let recent = state.recent.get(key).into_iter().flatten();
        let own = recent.filter(|met| met.owner.as_deref() == Some(owner) && met.at.elapsed() <= within);
        let mut kinds: Vec<_> = own.map(|met| met.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn judge(&self, passing: &Passing) -> Option<(&'static str, Fault)> {
        let mut state = self.lock();
        *state.requests.entry(passing.step).or_default() += 1;
        if passing.key.as_ref().is_some_and(|key| key.starts_with(KEY_PREFIX)) {
            *state.for_locks.entry(passing.step).or_default() += 1;
        }
        if state.calm || passing.step == Step::Other {
            return None;
        }
        let of_front = state.front.as_ref().and_then(|front| front.fault_for(passing));
        let (kind, fault) = match of_front {
            Some(met) => met,
            None if state.dice.f64() < self.0.chance => draw(&mut state.dice, self.0.lease),
            None => return None,
        };
        *state.faults.entry(kind).or_default() += 1;
        if let Some(key) = &passing.key {
            let recent = state.recent.entry(key.clone()).or_default();
            recent.push_back(Met { at: Instant::now(), owner: passing.owner.clone(), kind });
            if recent.len() > REMEMBERED {
                recent.pop_front();
            }
        }
        Some((kind, fault))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fault of a single request. A client gives up after a third of a lease, so what is late lands after that.
fn draw(dice: &mut Rng, lease: Duration) -> (&'static str, Fault) {
    let part_of_lease = |dice: &mut Rng, from: f64, to: f64| lease.mul_f64(from + (to - from) * dice.f64());
    match dice.u32(0..100) {
        0..12 => ("reply lost", Fault::LoseReply(end(dice))),
        12..20 => ("request lost", Fault::LoseRequest(end(dice))),
        20..26 => ("reset after the write", Fault::LoseReply(End::Reset)),
        26..32 => ("reset before the write", Fault::LoseRequest(End::Reset)),
        32..40 => ("request late", Fault::DelayRequest(part_of_lease(dice, 0.35, 2.5))),
        40..46 => ("reply late", Fault::DelayReply(part_of_lease(dice, 0.35, 1.2))),
        46..53 => ("500 before the write", Fault::Answer(Answer::server_error(500))),
        53..60 => ("500 after the write", Fault::AnswerAfterWrite(Answer::server_error(500))),
        60..72 => throttle(dice),
        72..80 => ("TransactionConflictException", Fault::Answer(Answer::transaction_conflict())),
        80..86 => ("slow: up to 400 ms", Fault::DelayReply(Duration::from_millis(dice.u64(20..400)))),
        86..89 => ("slow: 400 ms", Fault::DelayReply(Duration::from_millis(400))),
        89..93 => ("Date missing", Fault::Date(DateHeader::Missing)),
        93..96 => ("Date unreadable", Fault::Date(DateHeader::Text("yesterday".to_owned()))),
        // A clock of DynamoDB's own may be wrong by as much as a second; what a cache answers tells its age.
        96..98 => ("Date a second ahead", Fault::Date(DateHeader::Shifted(1))),
        _ => ("Date of a cache", Fault::Date(DateHeader::Aged(dice.u64(1..3_600)))),
    }
}

fn throttle(dice: &mut Rng) -> (&'static str, Fault) {
    let name = Answer::THROTTLES[dice.usize(0..Answer::THROTTLES.len())];
    (name, Fault::Answer(Answer::throttled(name)))
}

fn end(dice: &mut Rng) -> End {
    if dice.bool() { End::Close } else { End::Silence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_fault_comes_and_the_seed_decides() {
        let drawn = |seed| {
            let mut dice = Rng::with_seed(seed);
            (0..2_000).map(|_| draw(&mut dice, Duration::from_secs(1))).collect::<Vec<_>>()
        };
        let kinds: std::collections::BTreeSet<_> = drawn(1).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds.len(), 19, "{kinds:?}");
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
