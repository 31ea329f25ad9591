//! What befalls environments: they come, freeze, have their clocks stepped, and vanish.

use super::clock::{Freeze, MS, Micros, SECOND, SimClock};
use super::keeper::{Flight, Keeper};
use super::machine::Machine;
use super::network::Fate;
use super::queue::Event;
use super::violation::Violation;
use super::world::World;
use crate::clock::Mono;
use crate::protocol::{Observations, Request, RequestId, ServerTime};

impl World {
    pub(super) fn add_keeper(&mut self, sessions: u64, lanes: u64, clock: Option<SimClock>) -> usize {
        let weather = &self.weather;
        let ahead = self.random.magnitude(weather.wall.0.max(MS), weather.wall.1.max(MS)) as i64;
        let ahead = if self.random.chance(weather.behind) { -ahead } else { ahead };
        // Where clocks are wrong by days, some are right all the same.
        let ahead = if weather.wall.0 > SECOND && self.random.chance(400) { 0 } else { ahead };
        let clock = clock.unwrap_or_else(|| SimClock::new(self.now, ahead, weather.drift, &mut self.random));
        let skew = if weather.skew { self.random.pick(&[-500_000, 499_999]) } else { 0 };
        let id = self.keepers.len();
        self.keepers.push(Keeper {
            clock,
            observations: Observations::new(),
            server_time: ServerTime::new(),
            uses_server_time: self.random.chance(weather.server_time),
            skew,
            warm: false,
            dateless: false,
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

    pub(super) fn begin_later(&mut self, keeper: usize) {
        let mut at = self.now + self.random.magnitude(MS, self.weather.gap);
        if let Some((_, until)) = self.quiet.filter(|(from, until)| *from <= at && at < *until) {
            at = until + self.random.between(0, 5 * SECOND);
        }
        self.queue.push(at, Event::Begin { keeper: keeper as u32 });
    }

    /// Between sessions, when nothing is held, an environment may be frozen whole.
    pub(super) fn freeze_between(&mut self, keeper: usize) {
        if self.keepers[keeper].frozen || !self.random.chance(self.weather.freeze_between) {
            return;
        }
        let how = self.random.pick(&[Freeze::BothStop, Freeze::BothStop, Freeze::MonoStops, Freeze::Paused]);
        let long = self.random.magnitude(self.weather.frozen_for.0, self.weather.frozen_for.1);
        self.freeze(keeper, how, long);
    }

    pub(super) fn freeze_in_session(&mut self, keeper: usize) {
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

    pub(super) fn freeze(&mut self, keeper: usize, how: Freeze, long: Micros) {
        self.note(Some(keeper), || format!("frozen for {:.3} s, clocks: {how:?}", long as f64 / 1e6));
        self.report.freezes += 1;
        self.disturb(keeper, true);
        let state = &mut self.keepers[keeper];
        state.frozen = true;
        state.clock.freeze(self.now, how);
        self.queue.push(self.now + long, Event::Thaw { keeper: keeper as u32 });
    }

    pub(super) fn thaw(&mut self, keeper: usize) -> Result<(), Violation> {
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
        Ok(())
    }

    pub(super) fn step(&mut self, keeper: usize) {
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

    pub(super) fn vanish(&mut self, keeper: usize) {
        self.note(Some(keeper), || "vanishes without a word".to_owned());
        self.report.vanished += 1;
        let state = &mut self.keepers[keeper];
        state.alive = false;
        let left = state.sessions_left;
        let clock = self.random.chance(500).then(|| state.clock.clone());
        for id in 0..self.sessions.len() {
            if self.sessions[id].keeper == keeper {
                self.free_what_the_journal_says(id);
                self.sessions[id].machine = Machine::Done;
                self.sessions[id].over = true;
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

    /// Where the keeper's process dies alone while a row is on its way back, the next one finds its note and sends a release.
    fn free_what_the_journal_says(&mut self, id: usize) {
        let session = &self.sessions[id];
        let Machine::Holder(holder) = &session.machine else { return };
        if session.parking.is_none() || holder.is_finished() {
            return;
        }
        let request = Request::Release { owners: vec![holder.owner()], ttl: None, hold: None };
        let after = self.random.magnitude(MS, 5 * SECOND);
        let fate = Fate { applied: Some(after), answered: None, ..Fate::usual(&mut self.random) };
        let flight = self.flights.len() as u32;
        self.note(Some(session.keeper), || format!("S{id} is still noted: will be released"));
        // Nobody who is part of this run waits for the answer.
        let (deadline, answer, settled) = (Mono::default(), None, true);
        self.queue.push(self.now + after, Event::Apply { flight });
        self.flights.push(Flight { session: id, id: RequestId(0), request, fate, deadline, answer, settled });
    }

    pub(super) fn disturb(&mut self, keeper: usize, frozen: bool) {
        for session in &mut self.sessions {
            if session.keeper == keeper && session.open {
                session.disturbed = true;
                session.frozen |= frozen;
            }
        }
    }
}
