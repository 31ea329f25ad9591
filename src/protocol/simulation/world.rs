//! One run: environments come, contend, work, freeze and vanish; when all is quiet a last contender has to get the row.

use std::time::Duration;

use super::Report;
use super::clock::{DAY, EPOCH, Freeze, MS, Micros, SECOND, SimClock, micros};
use super::keeper::{End, Ending, Flight, Keeper, Machine, Session};
use super::network::failure;
use super::queue::{Event, Queue};
use super::random::Random;
use super::store::{Store, date, until_expiry};
use super::trace::Trace;
use super::violation::Violation;
use super::weather::Weather;
use crate::clock::Mono;
use crate::protocol::{
    Answer, Budget, Contender, FailureKind, LossReason, Observations, Outcome, Polling, Renewals, Rules, ServerTime,
    Settings, Subject,
};

/// No honest run has more events than this.
const MOST_EVENTS: u32 = 100_000;

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Micros,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) rules: Rules,
    pub(super) queue: Queue,
    pub(super) store: Store,
    pub(super) subjects: Vec<Subject>,
    pub(super) keepers: Vec<Keeper>,
    pub(super) sessions: Vec<Session>,
    pub(super) flights: Vec<Flight>,
    /// Sessions that were granted their lease and are not over.
    pub(super) believers: Vec<usize>,
    /// The highest token given out, by key.
    pub(super) tokens: Vec<u64>,
    /// From when to when nobody begins anything.
    quiet: Option<(Micros, Micros)>,
    /// Two clock faults of opposite kinds are at least this far apart.
    lease_span: Micros,
    /// All faults are over; only the last contender is left.
    pub(super) healed: bool,
    pub(super) report: Report,
    pub(super) trace: Trace,
}

impl World {
    pub(super) fn new(seed: u64, rules: Rules, trace: Trace) -> Self {
        let mut random = Random::new(seed);
        let weather = Weather::of(seed, &mut random);
        let keys = weather.keys as usize;
        let quiet = weather.quiet.then(|| {
            let from = random.between(SECOND, 20 * SECOND);
            (from, from + random.between(7 * DAY, 9 * DAY))
        });
        let mut world = Self {
            now: 0,
            store: Store::new(keys, rules),
            subjects: (0..keys).map(|key| Subject::from(if key == 0 { "a" } else { "b" })).collect(),
            keepers: Vec::with_capacity(8),
            sessions: Vec::with_capacity(32),
            flights: Vec::with_capacity(512),
            believers: Vec::new(),
            tokens: vec![0; keys],
            quiet,
            lease_span: weather.lease.1 * 11 / 10 + SECOND,
            healed: false,
            report: Report::new(weather.profile),
            queue: Queue::default(),
            random,
            weather,
            rules,
            trace,
        };
        for _ in 0..world.weather.keepers {
            let (sessions, lanes) = (world.weather.sessions, world.weather.lanes);
            world.add_keeper(sessions, lanes, None);
        }
        world
    }

    pub(super) fn run(mut self) -> (Report, Trace) {
        if let Err(violation) = self.run_out().and_then(|()| self.recover()) {
            self.note(None, || format!("VIOLATION: {violation}"));
            self.report.violation = Some(violation);
        }
        (self.report, self.trace)
    }

    fn run_out(&mut self) -> Result<(), Violation> {
        while let Some((at, event)) = self.queue.pop() {
            self.now = at;
            self.report.events += 1;
            if self.report.events > u64::from(MOST_EVENTS) {
                return Err(Violation::Restless);
            }
            self.handle(event)?;
            self.check_exclusion()?;
        }
        Ok(())
    }

    /// The network is well again and everybody is gone: a contender with good clocks must get every row.
    fn recover(&mut self) -> Result<(), Violation> {
        for session in 0..self.sessions.len() {
            if !self.keepers[self.sessions[session].keeper].alive {
                continue;
            }
            if self.sessions[session].end.is_none() || !matches!(self.sessions[session].machine, Machine::Done) {
                return Err(Violation::Stuck);
            }
        }
        self.healed = true;
        self.weather = Weather { drift: super::clock::Drift::None, wall: (0, 20 * MS), skew: false, ..self.weather };
        let keeper = self.add_keeper(0, 0, None);
        for key in 0..self.tokens.len() {
            let within = match &self.store.rows[key] {
                Some(row) if row.owner.is_some() => {
                    let observed = micros(row.lease) * 106 / 100;
                    let expired = self.keepers[keeper].uses_server_time.then(|| until_expiry(row, self.now)).flatten();
                    observed.min(expired.map_or(Micros::MAX, |left| left + 7 * SECOND))
                }
                _ => 0,
            };
            let due = self.now + within + SECOND;
            self.note(Some(keeper), || format!("last contender, due within {:.3} s", (within + SECOND) as f64 / 1e6));
            self.open_session(keeper, key, Some(due))?;
        }
        self.run_out()?;
        if self.sessions.iter().any(|session| session.due.is_some() && session.end != Some(End::Granted)) {
            return Err(Violation::NotRecovered);
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), Violation> {
        let keeper = match event {
            Event::Begin { keeper } | Event::Step { keeper } | Event::Vanish { keeper } => keeper as usize,
            Event::Thaw { keeper } => return self.thaw(keeper as usize),
            Event::Apply { flight } => return self.apply(flight as usize),
            Event::Answer { flight } | Event::Timeout { flight } => {
                self.sessions[self.flights[flight as usize].session].keeper
            }
            Event::Wake { session, .. }
            | Event::Cancel { session }
            | Event::Finish { session }
            | Event::Freeze { session } => self.sessions[session as usize].keeper,
        };
        if !self.keepers[keeper].alive {
            return Ok(());
        }
        if self.keepers[keeper].frozen && !matches!(event, Event::Vanish { .. } | Event::Step { .. }) {
            self.keepers[keeper].deferred.push(event);
            return Ok(());
        }
        match event {
            Event::Begin { .. } => self.begin(keeper),
            Event::Answer { flight } => self.answer(flight as usize),
            Event::Timeout { flight } => self.time_out(flight as usize),
            Event::Wake { session, at } => self.wake(session as usize, at),
            Event::Cancel { session } => self.cancel(session as usize),
            Event::Finish { session } => self.finish(session as usize),
            Event::Freeze { session } => {
                if self.sessions[session as usize].open {
                    self.freeze_in_session(keeper);
                }
                Ok(())
            }
            Event::Step { .. } => {
                self.step(keeper);
                Ok(())
            }
            Event::Vanish { .. } => {
                self.vanish(keeper);
                Ok(())
            }
            Event::Apply { .. } | Event::Thaw { .. } => Ok(()),
        }
    }

    // ---- Environments ----

    fn add_keeper(&mut self, sessions: u64, lanes: u64, clock: Option<SimClock>) -> usize {
        let weather = &self.weather;
        let ahead = self.random.magnitude(weather.wall.0.max(MS), weather.wall.1.max(MS)) as i64;
        let ahead = if self.random.chance(500) { ahead } else { -ahead };
        // Where clocks are wrong by days, some are right all the same.
        let ahead = if weather.wall.0 > SECOND && self.random.chance(400) { 0 } else { ahead };
        let clock = clock.unwrap_or_else(|| SimClock::new(self.now, ahead, weather.drift, &mut self.random));
        let skew = if weather.skew { self.random.pick(&[-500_000, 0, 499_999]) } else { 0 };
        let id = self.keepers.len();
        self.keepers.push(Keeper {
            clock,
            observations: Observations::new(),
            server_time: ServerTime::new(),
            uses_server_time: self.random.chance(weather.server_time),
            skew,
            warm: false,
            alive: true,
            frozen: false,
            deferred: Vec::new(),
            sessions_left: sessions,
            open: 0,
            cut: (0, 0),
            mono_stopped: None,
            wall_back: None,
        });
        for _ in 0..lanes {
            self.begin_later(id);
        }
        id
    }

    fn begin_later(&mut self, keeper: usize) {
        let mut at = self.now + self.random.magnitude(MS, self.weather.gap);
        if let Some((_, until)) = self.quiet.filter(|(from, until)| *from <= at && at < *until) {
            at = until + self.random.between(0, 5 * SECOND);
        }
        self.queue.push(at, Event::Begin { keeper: keeper as u32 });
    }

    /// Between sessions, when nothing is held, an environment may be frozen whole.
    fn freeze_between(&mut self, keeper: usize) {
        if self.keepers[keeper].frozen || !self.random.chance(self.weather.freeze_between) {
            return;
        }
        let how = self.random.pick(&[Freeze::BothStop, Freeze::BothStop, Freeze::MonoStops, Freeze::Paused]);
        let long = self.random.magnitude(10 * MS, 120 * SECOND);
        self.freeze(keeper, how, long);
    }

    fn freeze_in_session(&mut self, keeper: usize) {
        if self.keepers[keeper].frozen {
            return;
        }
        let long = self.random.magnitude(10 * MS, 2 * self.weather.lease.1);
        let far = |fault: Option<Micros>| fault.is_none_or(|at| self.now > at + self.lease_span);
        let how = self.random.pick(&[Freeze::Paused, Freeze::MonoStops, Freeze::MonoStops, Freeze::WallStops]);
        let how = match how {
            // A stopped monotonic clock and a backward wall clock don't fall into one lease.
            Freeze::MonoStops if !far(self.keepers[keeper].wall_back) => Freeze::Paused,
            Freeze::WallStops if !far(self.keepers[keeper].mono_stopped) => Freeze::Paused,
            how => how,
        };
        match how {
            Freeze::MonoStops => self.keepers[keeper].mono_stopped = Some(self.now + long),
            Freeze::WallStops => self.keepers[keeper].wall_back = Some(self.now + long),
            Freeze::Paused | Freeze::BothStop => {}
        }
        self.freeze(keeper, how, long);
    }

    fn freeze(&mut self, keeper: usize, how: Freeze, long: Micros) {
        self.note(Some(keeper), || format!("frozen for {:.3} s, clocks: {how:?}", long as f64 / 1e6));
        self.report.freezes += 1;
        self.disturb(keeper, true);
        let state = &mut self.keepers[keeper];
        state.frozen = true;
        state.clock.freeze(self.now, how);
        self.queue.push(self.now + long, Event::Thaw { keeper: keeper as u32 });
    }

    fn thaw(&mut self, keeper: usize) -> Result<(), Violation> {
        if !self.keepers[keeper].alive {
            return Ok(());
        }
        self.disturb(keeper, true);
        let state = &mut self.keepers[keeper];
        state.frozen = false;
        state.clock.thaw(self.now, &mut self.random);
        let mut deferred = std::mem::take(&mut state.deferred);
        self.note(Some(keeper), || format!("thawed, {} events waited", deferred.len()));
        // Replies and timers are due at once, in either order.
        while !deferred.is_empty() {
            let event = deferred.swap_remove(self.random.below(deferred.len() as u64) as usize);
            self.queue.push(self.now, event);
        }
        // Timers were set by a clock that may have stood still or has another rate now.
        Ok(())
    }

    fn step(&mut self, keeper: usize) {
        let state = &mut self.keepers[keeper];
        let by = self.random.magnitude(10 * MS, self.weather.step_size.max(20 * MS)) as i64;
        let may_go_back = state.mono_stopped.is_none_or(|at| self.now > at + self.lease_span) && !state.frozen;
        let by = if may_go_back && self.random.chance(500) { -by } else { by };
        if by < 0 {
            state.wall_back = Some(self.now);
        }
        state.clock.step(self.now, by);
        self.disturb(keeper, false);
        self.note(Some(keeper), || format!("wall clock stepped by {:+.3} s", by as f64 / 1e6));
    }

    fn vanish(&mut self, keeper: usize) {
        self.note(Some(keeper), || "vanishes without a word".to_owned());
        self.report.vanished += 1;
        let state = &mut self.keepers[keeper];
        state.alive = false;
        let left = state.sessions_left;
        let clock = self.random.chance(500).then(|| state.clock.clone());
        for session in &mut self.sessions {
            if session.keeper == keeper {
                session.machine = Machine::Done;
                session.over = true;
            }
        }
        self.believers.retain(|id| self.sessions[*id].keeper != keeper);
        let clock = clock.map(|mut clock| {
            clock.thaw(self.now, &mut self.random);
            clock
        });
        if left > 0 {
            self.add_keeper(left, self.weather.lanes.min(left), clock);
        }
    }

    pub(super) fn disturb(&mut self, keeper: usize, frozen: bool) {
        for session in &mut self.sessions {
            if session.keeper == keeper && session.open {
                session.disturbed = true;
                session.frozen |= frozen;
            }
        }
    }

    // ---- Sessions ----

    fn begin(&mut self, keeper: usize) -> Result<(), Violation> {
        if self.keepers[keeper].sessions_left == 0 {
            return Ok(());
        }
        self.keepers[keeper].sessions_left -= 1;
        let key = self.random.below(self.weather.keys) as usize;
        self.open_session(keeper, key, None)
    }

    fn open_session(&mut self, keeper: usize, key: usize, due: Option<Micros>) -> Result<(), Violation> {
        let id = self.sessions.len();
        let lease = self.random.magnitude(self.weather.lease.0, self.weather.lease.1);
        let now = self.keepers[keeper].clock.read(self.now);
        let epoch = self.keepers[keeper].server_time.begin();
        let settings = Settings {
            lease: Duration::from_micros(lease),
            polling: Polling {
                first: Duration::from_millis(self.random.between(10, 50)),
                max: Duration::from_millis(self.random.between(50, 500)),
            },
            server_time: self.keepers[keeper].uses_server_time,
            rules: self.rules,
        };
        let wait = match self.random.below(5) {
            0 => 0,
            1 => self.random.magnitude(10 * MS, 2 * SECOND),
            _ => self.random.magnitude(lease / 2, 4 * lease + 8 * SECOND),
        };
        let wait = if due.is_some() { 2 * DAY } else { wait };
        let latest = match self.random.below(3) {
            _ if due.is_some() => None,
            0 => None,
            1 => Some(self.random.magnitude(5 * MS, 3 * lease)),
            _ => Some(wait + self.random.magnitude(SECOND, 60 * SECOND)),
        };
        let wait = latest.map_or(wait, |latest| latest.min(wait));
        let work = latest.map(|latest| latest + self.random.magnitude(100 * MS, 3 * lease));
        let hold = lease * self.random.between(self.weather.hold.0, self.weather.hold.1) / 10;
        let ending = match () {
            () if due.is_some() => Ending::Release,
            () if self.random.chance(self.weather.vanish) => Ending::Vanish,
            () if self.random.chance(self.weather.abandon) => Ending::Abandon,
            () => Ending::Release,
        };
        let after = |micros: Micros| now.mono + Duration::from_micros(micros);
        let budget = Budget { stop: after(wait), latest: latest.map(after) };
        let until = self.random.chance(150).then(|| self.random.magnitude(100 * MS, 4 * lease));
        let contender = Contender::new(settings, self.subjects[key].clone(), budget, epoch, now);
        self.sessions.push(Session {
            keeper,
            key,
            settings,
            machine: Machine::Contender(contender),
            end: None,
            over: false,
            warned: false,
            release_sent: false,
            open: true,
            wake: None,
            began: now,
            stop: budget.stop,
            latest: budget.latest,
            hold,
            ending,
            disturbed: false,
            frozen: false,
            renewals: (until, work.filter(|_| until.is_none())),
            due,
        });
        self.keepers[keeper].open += 1;
        self.report.sessions += 1;
        self.note(Some(keeper), || {
            format!(
                "S{id} begins: key {}, lease {:.3} s, waits {:.3} s, latest {}, works {:.3} s, then {ending:?}, \
                 server time {}",
                self.subjects[key],
                lease as f64 / 1e6,
                wait as f64 / 1e6,
                latest.map_or("unknown".to_owned(), |latest| format!("{:.3} s", latest as f64 / 1e6)),
                hold as f64 / 1e6,
                if settings.server_time { "on" } else { "off" },
            )
        });
        if due.is_none() {
            self.plan_faults(id, keeper, lease, wait);
        }
        self.start(id)
    }

    /// What befalls a session, beyond its requests.
    fn plan_faults(&mut self, id: usize, keeper: usize, lease: Micros, wait: Micros) {
        let (session, keeper_id) = (id as u32, keeper as u32);
        if self.random.chance(self.weather.cancel) {
            let at = self.now + self.random.magnitude(MS, wait.max(SECOND));
            self.queue.push(at, Event::Cancel { session });
        }
        if self.random.chance(self.weather.freeze) {
            let at = self.now + self.random.magnitude(MS, 2 * lease);
            self.queue.push(at, Event::Freeze { session });
        }
        if self.random.chance(self.weather.step) {
            let at = self.now + self.random.magnitude(MS, 3 * lease);
            self.queue.push(at, Event::Step { keeper: keeper_id });
        }
        if self.random.chance(self.weather.vanish / 4) {
            let at = self.now + self.random.magnitude(MS, 2 * lease);
            self.queue.push(at, Event::Vanish { keeper: keeper_id });
        }
    }

    pub(super) fn renewals(&self, id: usize) -> Renewals {
        let session = &self.sessions[id];
        let after = |micros: Micros| session.began.mono + Duration::from_micros(micros);
        let (until, work) = session.renewals;
        match until {
            Some(until) => Renewals { until: after(until), then: LossReason::MaxHold, covered_by: None },
            None => Renewals {
                until: after(work.map_or(100 * DAY, |work| work + SECOND)),
                then: LossReason::Expired,
                covered_by: work.map(after),
            },
        }
    }

    /// The handler's side of a session is over.
    pub(super) fn close(&mut self, id: usize) {
        if !std::mem::take(&mut self.sessions[id].open) {
            return;
        }
        let keeper = self.sessions[id].keeper;
        self.keepers[keeper].open -= 1;
        if self.keepers[keeper].sessions_left > 0 && self.keepers[keeper].alive {
            self.begin_later(keeper);
            if self.keepers[keeper].open == 0 {
                self.freeze_between(keeper);
            }
        }
    }

    /// A granted session works for a while; others may be cut off meanwhile.
    pub(super) fn work(&mut self, id: usize) {
        let hold = self.sessions[id].hold.max(MS);
        self.queue.push(self.now + hold, Event::Finish { session: id as u32 });
        if !self.healed && self.random.chance(self.weather.cut) {
            let lease = micros(self.sessions[id].settings.lease);
            let from = self.now + self.random.between(0, lease * 7 / 10);
            let until = from + self.random.between(lease / 3, lease * 2);
            self.keepers[self.sessions[id].keeper].cut = (from, until);
            self.note(Some(self.sessions[id].keeper), || {
                format!("will be cut off from {:.3} s to {:.3} s", from as f64 / 1e6, until as f64 / 1e6)
            });
        }
    }

    fn finish(&mut self, id: usize) -> Result<(), Violation> {
        match self.sessions[id].ending {
            Ending::Release => self.release(id),
            Ending::Abandon => {
                self.abandon(id);
                Ok(())
            }
            Ending::Vanish => {
                self.vanish(self.sessions[id].keeper);
                Ok(())
            }
        }
    }

    // ---- The store's side of a request ----

    fn apply(&mut self, id: usize) -> Result<(), Violation> {
        let flight = &self.flights[id];
        let (session, key) = (&self.sessions[flight.session], self.sessions[flight.session].key);
        let keeper = session.keeper;
        let date = date(self.now, self.keepers[keeper].skew);
        if self.weather.sweep > 0 && self.random.chance(self.weather.sweep) && self.store.sweep(key, self.now) {
            self.report.sweeps += 1;
            self.note(None, || format!("row {} is swept", self.subjects[key]));
        }
        let flight = &self.flights[id];
        let outcome = match flight.fate.turned_away {
            Some(kind) => Outcome::Failed(failure(kind)),
            None => self.store.apply(key, &flight.request)?,
        };
        self.note(Some(keeper), || {
            let flight = &self.flights[id];
            format!("S{} {:?} reaches the store: {}", flight.session, flight.id, super::trace::outcome(&outcome))
        });
        let fate = &self.flights[id].fate;
        let date = Some(date).filter(|_| fate.dated);
        if let Some(back) = fate.answered {
            self.queue.push(self.now + back, Event::Answer { flight: id as u32 });
            self.flights[id].answer = Some(Answer { outcome, date });
        }
        Ok(())
    }

    fn time_out(&mut self, id: usize) -> Result<(), Violation> {
        let flight = &self.flights[id];
        let keeper = &self.keepers[self.sessions[flight.session].keeper];
        if flight.settled {
            return Ok(());
        }
        // The timer runs on the monotonic clock, which may have stood still.
        if keeper.clock.read(self.now).mono < flight.deadline {
            let at = keeper.clock.when(self.now, flight.deadline);
            self.queue.push(at, Event::Timeout { flight: id as u32 });
            return Ok(());
        }
        self.note(Some(self.sessions[flight.session].keeper), || {
            format!("S{} {:?} timed out", self.flights[id].session, self.flights[id].id)
        });
        self.flights[id].answer = Some(Answer { outcome: Outcome::Failed(failure(FailureKind::Timeout)), date: None });
        self.answer(id)
    }

    fn wake(&mut self, id: usize, at: Mono) -> Result<(), Violation> {
        if self.sessions[id].wake != Some(at) {
            return Ok(());
        }
        let clock = &self.keepers[self.sessions[id].keeper].clock;
        if clock.read(self.now).mono < at {
            let when = clock.when(self.now, at);
            self.queue.push(when, Event::Wake { session: id as u32, at });
            return Ok(());
        }
        self.sessions[id].wake = None;
        self.wake_up(id)
    }

    /// Two holders must never believe one key. Frozen ones are asked when they go on, by the clocks they then have.
    fn check_exclusion(&self) -> Result<(), Violation> {
        if self.believers.len() < 2 {
            return Ok(());
        }
        for (index, one) in self.believers.iter().enumerate() {
            for other in &self.believers[index + 1..] {
                if self.sessions[*one].key == self.sessions[*other].key && self.believes(*one) && self.believes(*other)
                {
                    return Err(Violation::TwoHolders);
                }
            }
        }
        Ok(())
    }

    fn believes(&self, id: usize) -> bool {
        let session = &self.sessions[id];
        let keeper = &self.keepers[session.keeper];
        let Machine::Holder(holder) = &session.machine else { return false };
        !keeper.frozen
            && holder.validity().is_some_and(|validity| !validity.left(keeper.clock.read(self.now)).is_zero())
    }

    pub(super) fn note(&self, keeper: Option<usize>, text: impl FnOnce() -> String) {
        if self.trace.is_on() {
            let clocks = keeper.map(|keeper| {
                let now = self.keepers[keeper].clock.read(self.now);
                let ahead = micros(now.wall.since_epoch()) as i64 - (EPOCH + self.now) as i64;
                (keeper, now.mono, ahead)
            });
            self.trace.line(self.now, clocks, &text(), &self.store.rows);
        }
    }
}
