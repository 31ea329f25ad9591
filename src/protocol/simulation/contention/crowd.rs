//! The crowd at work: machines, their requests on the way, and the one row.

use std::time::Duration;

use super::Course;
use super::report::{Count, Report, Wait};
use crate::clock::Mono;
use crate::protocol::simulation::clock::{Drift, MS, Micros, SECOND, SimClock, micros};
use crate::protocol::simulation::machine::{Input, Machine};
use crate::protocol::simulation::queue::{Event, Queue};
use crate::protocol::simulation::random::Random;
use crate::protocol::simulation::store::{Store, date};
use crate::protocol::{
    Action, Answer, Budget, Contender, Context, Epoch, Format, Holder, LossReason, Observations, Outcome, Renewals,
    Request, RequestId, Rules, ServerTime, Settings, Subject, Verdict,
};

/// No crowd takes longer.
const LONGEST: Micros = 3_600 * SECOND;

pub(super) struct Crowd {
    course: Course,
    now: Micros,
    queue: Queue,
    random: Random,
    store: Store,
    members: Vec<Member>,
    flights: Vec<Flight>,
    freed: Option<Micros>,
    report: Report,
}

struct Member {
    came: Micros,
    clock: SimClock,
    server_time: ServerTime,
    observations: Observations,
    epoch: Epoch,
    machine: Machine,
    wake: Option<Mono>,
    /// It dies after its first refusal.
    dies: bool,
    dead: bool,
    warm: bool,
    renewals: Renewals,
    settings: Settings,
    count: Count,
}

struct Flight {
    member: usize,
    id: RequestId,
    request: Request,
    back: Micros,
    answer: Option<Answer>,
}

impl Crowd {
    pub(super) fn new(course: Course, seed: u64) -> Self {
        Self {
            course,
            now: 0,
            queue: Queue::default(),
            random: Random::new(seed),
            store: Store::new(1, Format::LeaseholdV1, Rules::default()),
            members: Vec::with_capacity(course.contenders),
            flights: Vec::new(),
            freed: None,
            report: Report::default(),
        }
    }

    pub(super) fn run(mut self) -> Report {
        for keeper in 0..self.course.contenders {
            let at = self.random.between(0, micros(self.course.spread));
            self.queue.push(at, Event::Begin { keeper: keeper as u32 });
            let clock = SimClock::new(0, 0, Drift::None, &mut self.random);
            let dies = self.random.below(100) < u64::from(self.course.dead);
            self.members.push(Member::new(at, clock, dies));
        }
        while let Some((at, event)) = self.queue.pop() {
            if at > LONGEST {
                break;
            }
            self.now = at;
            match event {
                Event::Begin { keeper } => self.begin(keeper as usize),
                Event::Apply { flight } => self.apply(flight as usize),
                Event::Answer { flight } => self.answer(flight as usize),
                Event::Wake { session, at } => self.wake(session as usize, at),
                Event::Finish { session } => self.feed(session as usize, Input::Release),
                _ => {}
            }
        }
        self.report.waits.sort_by_key(|wait| wait.came);
        self.report.counts = self.members.iter().filter(|member| !member.dies).map(|member| member.count).collect();
        self.report
    }

    fn begin(&mut self, id: usize) {
        let lease = Settings::DEFAULT_LEASE;
        let settings = Settings { lease, polling: self.course.polling, ..Settings::default() };
        let member = &mut self.members[id];
        let now = member.clock.read(self.now);
        member.epoch = member.server_time.begin();
        member.settings = settings;
        let budget = Budget { stop: now.mono + self.course.budget, latest: None };
        let until = now.mono + Duration::from_secs(3_600);
        member.renewals = Renewals { until, then: LossReason::MaxHold, covered_by: None };
        member.machine = Machine::Contender(Contender::new(settings, Subject::from("key"), budget, member.epoch, now));
        self.feed(id, Input::Start);
    }

    fn apply(&mut self, flight: usize) {
        let Flight { member, request, back, .. } = &self.flights[flight];
        let (member, back) = (*member, *back);
        // The simulation's own tests are about what may not be; here nothing of it can.
        let Ok(outcome) = self.store.apply(0, request) else { return };
        if matches!((request, &outcome), (Request::Release { .. }, Outcome::Written { .. })) {
            self.freed = Some(self.now);
            self.report.end = self.now;
        }
        if self.members[member].dead {
            return;
        }
        self.flights[flight].answer = Some(Answer::new(outcome, Some(date(self.now, 0))));
        self.queue.push(self.now + back, Event::Answer { flight: flight as u32 });
    }

    fn answer(&mut self, flight: usize) {
        let Flight { member, id, request, answer, .. } = &mut self.flights[flight];
        let (member, id) = (*member, *id);
        let Some(answer) = answer.take() else { return };
        let numbered = matches!(request, Request::Ticket);
        let refused = matches!(answer.outcome, Outcome::Refused { .. });
        self.members[member].warm = true;
        self.feed(member, Input::Answer(id, answer));
        // Who dies has a ticket by then, where there are any.
        let by_clock = self.course.polling != crate::protocol::Polling::Tickets;
        if self.members[member].dies && (numbered || (refused && by_clock)) {
            self.members[member].dead = true;
            self.members[member].machine = Machine::Done;
        }
    }

    fn wake(&mut self, id: usize, at: Mono) {
        if self.members[id].wake == Some(at) {
            self.members[id].wake = None;
            self.feed(id, Input::Wake);
        }
    }

    fn feed(&mut self, id: usize, input: Input) {
        let member = &mut self.members[id];
        let now = member.clock.read(self.now);
        let mut cx = Context {
            now,
            server_time: &mut member.server_time,
            observations: &mut member.observations,
            entropy: &mut self.random,
            client_is_warm: member.warm,
        };
        if !member.machine.feed(&mut cx, input) {
            return;
        }
        while let Some(action) = self.members[id].machine.poll_action() {
            self.carry_out(id, action);
        }
        let member = &mut self.members[id];
        let wake = match &member.machine {
            Machine::Contender(contender) => contender.poll_wakeup(),
            Machine::Holder(holder) => holder.poll_wakeup(now),
            Machine::Done => None,
        };
        if let Some(at) = wake.filter(|at| member.wake != Some(*at)) {
            member.wake = Some(at);
            let when = member.clock.when(self.now, at);
            self.queue.push(when, Event::Wake { session: id as u32, at });
        }
    }

    fn carry_out(&mut self, id: usize, action: Action) {
        match action {
            Action::Send { id: of, request, .. } => self.send(id, of, request),
            Action::Acquired { acquired, .. } => {
                let member = &mut self.members[id];
                member.machine = Machine::Holder(Holder::new(member.settings, acquired, member.renewals, None));
                self.feed(id, Input::Start);
            }
            Action::Granted { .. } => {
                let (came, now) = (self.members[id].came, self.now);
                self.report.waits.push(Wait { came, waited: now - came });
                if let Some(freed) = self.freed.take() {
                    self.report.handovers.push(now - freed);
                }
                self.queue.push(now + micros(self.course.hold), Event::Finish { session: id as u32 });
            }
            Action::Verdict(Verdict::Busy(_)) => self.report.gave_up += 1,
            Action::Verdict(_) | Action::Lost(_) => self.report.failed += 1,
            Action::Released(_) | Action::Parked | Action::AtRisk | Action::Secured => {}
        }
    }

    fn send(&mut self, id: usize, of: RequestId, request: Request) {
        self.members[id].count.note(&request);
        let half = micros(self.course.latency) / 2;
        let mut way = || self.random.between(half - half / 10, half + half / 10).max(MS / 10);
        let (there, back) = (way(), way());
        let flight = self.flights.len() as u32;
        self.queue.push(self.now + there, Event::Apply { flight });
        self.flights.push(Flight { member: id, id: of, request, back, answer: None });
    }
}

impl Member {
    fn new(came: Micros, clock: SimClock, dies: bool) -> Self {
        let renewals = Renewals { until: Mono::default(), then: LossReason::MaxHold, covered_by: None };
        Self {
            came,
            clock,
            server_time: ServerTime::new(),
            observations: Observations::new(),
            epoch: Epoch::default(),
            machine: Machine::Done,
            wake: None,
            dies,
            dead: false,
            warm: false,
            renewals,
            settings: Settings::default(),
            count: Count::default(),
        }
    }
}
