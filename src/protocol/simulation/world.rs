//! One run: environments come, contend, work, freeze and vanish; when all is quiet a last contender has to get the row.

use super::Report;
use super::clock::{DAY, Drift, EPOCH, MS, Micros, SECOND, micros};
use super::keeper::{End, Flight, Keeper, Session};
use super::machine::Machine;
use super::minimum::Minima;
use super::queue::{Event, Queue};
use super::random::Random;
use super::store::{Store, until_expiry};
use super::trace::Trace;
use super::violation::Violation;
use super::weather::Weather;
use crate::protocol::{Format, Rules, Subject};

/// No honest run has more events than this.
const MOST_EVENTS: u32 = 100_000;

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Micros,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) rules: Rules,
    /// The row format of the one table.
    pub(super) format: Format,
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
    /// Since when rows are nobody's, by key.
    pub(super) free_since: Vec<Option<Micros>>,
    /// Until when parked keys are promised to be nobody's, by key.
    pub(super) minima: Vec<Minima>,
    /// From when to when nobody begins anything.
    pub(super) quiet: Option<(Micros, Micros)>,
    /// Two clock faults of opposite kinds are at least this far apart.
    pub(super) lease_span: Micros,
    /// All faults are over; only the last contender is left.
    pub(super) healed: bool,
    pub(super) report: Report,
    pub(super) trace: Trace,
}

impl World {
    pub(super) fn new(seed: u64, format: Format, rules: Rules, trace: Trace) -> Self {
        let mut random = Random::new(seed);
        let weather = Weather::of(seed, &mut random);
        let keys = weather.keys as usize;
        let quiet = weather.quiet.then(|| {
            let from = random.between(SECOND, 20 * SECOND);
            (from, from + random.between(7 * DAY, 9 * DAY))
        });
        let mut world = Self {
            now: 0,
            store: Store::new(keys, format, rules),
            subjects: (0..keys).map(|key| Subject::from(if key == 0 { "a" } else { "b" })).collect(),
            keepers: Vec::with_capacity(8),
            sessions: Vec::with_capacity(32),
            flights: Vec::with_capacity(512),
            believers: Vec::new(),
            tokens: vec![0; keys],
            free_since: vec![Some(0); keys],
            minima: vec![Minima::default(); keys],
            quiet,
            lease_span: weather.lease.1 * 11 / 10 + SECOND,
            healed: false,
            report: Report::new(weather.profile),
            queue: Queue::default(),
            random,
            weather,
            rules,
            format,
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
        self.weather = Weather { drift: Drift::None, wall: (0, 20 * MS), skew: false, ..self.weather };
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

    /// Nobody who waits leaves a free row alone for long, whatever it thinks of those who wait beside it: `since` is the
    /// moment from which the row was free.
    pub(super) fn check_diligence(&self, id: usize, since: Option<Micros>) -> Result<(), Violation> {
        let session = &self.sessions[id];
        let Some(since) = since.filter(|_| !session.disturbed && !session.frozen && !session.over) else {
            return Ok(());
        };
        // The longest delay of the plain schedule and the longest look of one that is far from its turn are about a second;
        // then a look or two, and the attempt.
        let longest = 2 * SECOND + 8 * self.weather.latency.1;
        let left = self.now.saturating_sub(since.max(session.came));
        if left > longest { Err(Violation::FreeRowNotTaken) } else { Ok(()) }
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
