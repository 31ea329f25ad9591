//! Sessions: how each is made up, and how a handler ends.

use std::time::Duration;

use super::clock::{DAY, MS, Micros, SECOND, micros};
use super::keeper::{Ending, Session};
use super::machine::Machine;
use super::queue::Event;
use super::violation::Violation;
use super::world::World;
use crate::protocol::{Backoff, Budget, Contender, LossReason, Polling, Renewals, Settings, Verdict};

impl World {
    pub(super) fn begin(&mut self, keeper: usize) -> Result<(), Violation> {
        if self.keepers[keeper].sessions_left == 0 {
            return Ok(());
        }
        self.keepers[keeper].sessions_left -= 1;
        let key = self.random.below(self.weather.keys) as usize;
        self.open_session(keeper, key, None)
    }

    pub(super) fn open_session(&mut self, keeper: usize, key: usize, due: Option<Micros>) -> Result<(), Violation> {
        let id = self.sessions.len();
        let lease = self.random.magnitude(self.weather.lease.0, self.weather.lease.1);
        let now = self.keepers[keeper].clock.read(self.now);
        let epoch = self.keepers[keeper].server_time.begin();
        let settings = Settings {
            lease: Duration::from_micros(lease),
            format: self.format,
            polling: self.polling(),
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
            () if self.random.chance(self.weather.park) => {
                Ending::Park(self.random.magnitude(lease / 8, 3 * lease).next_multiple_of(MS))
            }
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
            epoch,
            machine: Machine::Contender(contender),
            unanswered: Vec::new(),
            end: None,
            over: false,
            warned: false,
            release_sent: false,
            attempted: (self.now, 0),
            parking: None,
            open: true,
            wake: None,
            began: now,
            came: self.now,
            stop: budget.stop,
            latest: budget.latest,
            hold,
            ending,
            disturbed: false,
            waiting: 0,
            frozen: false,
            renewals: (until, work.filter(|_| until.is_none())),
            due,
        });
        self.keepers[keeper].open += 1;
        self.keepers[keeper].dateless = due.is_none() && self.random.chance(self.weather.dateless);
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

    /// Whether the row was lost again before the grant, with time left to wait: as a keeper does.
    pub(super) fn may_contend_again(&self, id: usize, verdict: &Verdict) -> bool {
        let session = &self.sessions[id];
        let transient = matches!(verdict, Verdict::Failed(failure) if failure.kind.is_transient());
        let lost = matches!(&session.machine, Machine::Holder(holder) if holder.is_finished());
        let now = self.keepers[session.keeper].clock.read(self.now);
        transient && lost && !session.over && now.mono < session.stop
    }

    pub(super) fn contend_again(&mut self, id: usize) -> Result<(), Violation> {
        self.note(Some(self.sessions[id].keeper), || {
            format!("S{id} has lost the row before the grant: contends again")
        });
        self.report.contended_again += 1;
        let session = &self.sessions[id];
        let now = self.keepers[session.keeper].clock.read(self.now);
        let budget = Budget { stop: session.stop, latest: session.latest };
        let subject = self.subjects[session.key].clone();
        let contender = Contender::new(session.settings, subject, budget, session.epoch, now);
        let unanswered = std::mem::take(&mut self.sessions[id].unanswered);
        self.sessions[id].machine = Machine::Contender(contender.replacing(unanswered));
        self.start(id)
    }

    /// Some wait by tickets and some by the clock, beside each other.
    fn polling(&mut self) -> Polling {
        if self.random.chance(600) {
            return Polling::Tickets;
        }
        Polling::Backoff(Backoff {
            first: Duration::from_millis(self.random.between(10, 50)),
            max: Duration::from_millis(self.random.between(50, 500)),
        })
    }

    /// What befalls a session, beyond its requests.
    pub(super) fn plan_faults(&mut self, id: usize, keeper: usize, lease: Micros, wait: Micros) {
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

    pub(super) fn finish(&mut self, id: usize) -> Result<(), Violation> {
        match self.sessions[id].ending {
            Ending::Release => self.release(id),
            Ending::Park(minimum) => self.park(id, minimum),
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
}
