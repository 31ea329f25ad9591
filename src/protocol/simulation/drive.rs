//! The driver: feeds a session's machine, carries out what it asks for, and checks all that it tells.

use std::time::Duration;

use super::clock::{DAY, MS, Micros, SECOND, micros};
use super::keeper::{End, Flight};
use super::machine::{Input, Machine};
use super::minimum;
use super::network::{Fate, failure};
use super::queue::Event;
use super::trace;
use super::violation::Violation;
use super::world::World;
use crate::protocol::{Action, Answer, Context, FencingToken, Holder, Outcome, Request, RequestId, Verdict};

impl World {
    pub(super) fn start(&mut self, id: usize) -> Result<(), Violation> {
        self.feed(id, Input::Start)
    }

    pub(super) fn wake_up(&mut self, id: usize) -> Result<(), Violation> {
        self.feed(id, Input::Wake)
    }

    /// An answer, or its timeout, comes to the machine: the first of both, and the other one is dropped.
    pub(super) fn answer(&mut self, flight: usize) -> Result<(), Violation> {
        let flight = &mut self.flights[flight];
        if std::mem::replace(&mut flight.settled, true) {
            return Ok(());
        }
        let (session, id) = (flight.session, flight.id);
        self.sessions[session].waiting -= 1;
        let answer = flight.answer.take().unwrap_or_else(|| {
            let kind = flight.fate.failed.map_or(crate::protocol::FailureKind::Timeout, |(_, kind)| kind);
            Answer::new(Outcome::Failed(failure(kind)), None)
        });
        if answer.date.is_some() {
            let keeper = self.sessions[session].keeper;
            self.keepers[keeper].warm = true;
        }
        self.note(Some(self.sessions[session].keeper), || {
            format!("S{session} {id:?} is answered: {} (date {:?})", trace::outcome(&answer.outcome), answer.date)
        });
        self.feed(session, Input::Answer(id, answer))
    }

    pub(super) fn cancel(&mut self, id: usize) -> Result<(), Violation> {
        if self.sessions[id].end.is_some() {
            return Ok(());
        }
        self.note(Some(self.sessions[id].keeper), || format!("S{id} is cancelled"));
        self.sessions[id].over = true;
        self.feed(id, Input::Cancel)?;
        self.close(id);
        Ok(())
    }

    pub(super) fn release(&mut self, id: usize) -> Result<(), Violation> {
        self.note(Some(self.sessions[id].keeper), || format!("S{id} is done: releases"));
        self.end_belief(id);
        self.feed(id, Input::Release)?;
        self.close(id);
        Ok(())
    }

    /// The handler is done, and its key is to stay held.
    pub(super) fn park(&mut self, id: usize, minimum: Micros) -> Result<(), Violation> {
        self.note(Some(self.sessions[id].keeper), || {
            format!("S{id} is done: keeps the key until {:.3} s after it took it", minimum as f64 / 1e6)
        });
        // What is lost already is only released.
        self.sessions[id].parking = (!self.sessions[id].over).then_some((minimum, None));
        self.end_belief(id);
        self.feed(id, Input::Park(Duration::from_micros(minimum)))?;
        self.close(id);
        Ok(())
    }

    pub(super) fn abandon(&mut self, id: usize) {
        self.note(Some(self.sessions[id].keeper), || format!("S{id} crashes: its row ends by itself"));
        self.end_belief(id);
        if let Machine::Holder(holder) = &mut self.sessions[id].machine {
            holder.handle_abandon();
        }
        self.sessions[id].machine = Machine::Done;
        self.close(id);
    }

    fn end_belief(&mut self, id: usize) {
        self.sessions[id].over = true;
        self.believers.retain(|believer| *believer != id);
    }

    fn feed(&mut self, id: usize, input: Input) -> Result<(), Violation> {
        let session = &mut self.sessions[id];
        let keeper = &mut self.keepers[session.keeper];
        let mut cx = Context {
            now: keeper.clock.read(self.now),
            server_time: &mut keeper.server_time,
            observations: &mut keeper.observations,
            entropy: &mut self.random,
            client_is_warm: keeper.warm,
        };
        if !session.machine.feed(&mut cx, input) {
            return Ok(());
        }
        self.pump(id)
    }

    /// Carries out what the machine wants until it wants nothing more, and sets its next wake-up.
    fn pump(&mut self, id: usize) -> Result<(), Violation> {
        while let Some(action) = self.sessions[id].machine.poll_action() {
            self.carry_out(id, action)?;
        }
        let session = &self.sessions[id];
        let now = self.keepers[session.keeper].clock.read(self.now);
        let (finished, wake) = match &session.machine {
            Machine::Contender(contender) => (contender.is_finished(), contender.poll_wakeup()),
            Machine::Holder(holder) => {
                if session.over && holder.validity().is_some() {
                    return Err(Violation::BelievedWithoutGrant);
                }
                (holder.is_finished(), holder.poll_wakeup(now))
            }
            Machine::Done => return Ok(()),
        };
        if finished {
            if session.end.is_none() {
                return Err(Violation::NoEnd);
            }
            self.sessions[id].machine = Machine::Done;
            return Ok(());
        }
        if wake.is_none() && session.open && !session.over && session.waiting == 0 {
            return Err(Violation::Stuck);
        }
        if let Some(at) = wake
            && session.wake != Some(at)
        {
            let when = self.keepers[session.keeper].clock.when(self.now, at);
            self.sessions[id].wake = Some(at);
            self.queue.push(when, Event::Wake { session: id as u32, at });
        }
        Ok(())
    }

    fn carry_out(&mut self, id: usize, action: Action) -> Result<(), Violation> {
        match action {
            Action::Send { id: of, request, timeout } => self.send(id, of, request, timeout),
            Action::Acquired { acquired, unwanted } => {
                self.note(Some(self.sessions[id].keeper), || {
                    let unwanted = if unwanted { ", unwanted" } else { "" };
                    format!("S{id} has the row at version {}{unwanted}", acquired.version)
                });
                self.report.takeovers += u64::from(acquired.took_over);
                if let Machine::Contender(contender) = &self.sessions[id].machine {
                    self.sessions[id].unanswered = contender.unknown().to_vec();
                }
                let session = &self.sessions[id];
                let holder = Holder::new(session.settings, acquired, self.renewals(id), session.latest);
                self.sessions[id].machine = Machine::Holder(holder);
                self.feed(id, if unwanted { Input::Unwanted } else { Input::Start })
            }
            Action::Verdict(verdict) if self.may_contend_again(id, &verdict) => self.contend_again(id),
            Action::Verdict(verdict) => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} is told {verdict:?}"));
                self.report.refusals += 1;
                if matches!(verdict, Verdict::Busy(_)) {
                    self.check_diligence(id, self.free_since[self.sessions[id].key])?;
                }
                self.sessions[id].over = true;
                self.ended(id, End::Refused)?;
                self.close(id);
                Ok(())
            }
            Action::Granted { token, valid_for } => {
                self.note(Some(self.sessions[id].keeper), || {
                    let token = token.map_or_else(String::new, |token| format!(" token {token},"));
                    format!("S{id} is GRANTED{token} valid for {valid_for:?}")
                });
                self.granted(id, token, valid_for)
            }
            Action::AtRisk => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} is at risk"));
                self.sessions[id].warned = true;
                Ok(())
            }
            Action::Secured => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} is secured"));
                self.sessions[id].warned = false;
                Ok(())
            }
            Action::Lost(reason) => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} has LOST its lease: {reason}"));
                self.report.losses += 1;
                // Found out when it was to be parked: it is only released.
                self.sessions[id].parking = None;
                if !self.sessions[id].warned {
                    return Err(Violation::LossWithoutRisk);
                }
                self.end_belief(id);
                Ok(())
            }
            Action::Parked => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} is parked"));
                self.report.parked += 1;
                let session = &self.sessions[id];
                if let Some((_, Some(parked))) = session.parking {
                    self.minima[session.key].begin(parked);
                }
                Ok(())
            }
            Action::Released(result) => {
                self.note(Some(self.sessions[id].keeper), || format!("S{id} is released: {result:?}"));
                Ok(())
            }
        }
    }

    fn send(&mut self, id: usize, of: RequestId, request: Request, timeout: Duration) -> Result<(), Violation> {
        let session = &mut self.sessions[id];
        let rate = self.keepers[session.keeper].clock.mono_rate();
        let over = |(minimum, _)| minimum::over(session.attempted.0, minimum, session.attempted.1, rate);
        let over = session.parking.map(over);
        match request {
            Request::Acquire { .. } | Request::TakeOver { .. } => session.attempted = (self.now, rate),
            Request::Park { parked, .. } => {
                session.release_sent = true;
                if let (Some(over), Some((_, under))) = (over, &mut session.parking) {
                    *under = Some(parked);
                    self.minima[session.key].sent(parked, over);
                }
            }
            Request::Release { .. } if over.is_some_and(|over| self.now < over) => {
                return Err(Violation::MinimumNotKept);
            }
            Request::Release { .. } => session.release_sent = true,
            Request::Renew { .. } if session.release_sent => return Err(Violation::RenewedAfterRelease),
            _ => {}
        }
        let keeper = &self.keepers[session.keeper];
        let fate = if self.healed {
            Fate::usual(&mut self.random)
        } else {
            let attempt = matches!(request, Request::Acquire { .. } | Request::TakeOver { .. });
            let fate = Fate::draw(&self.weather, attempt, keeper.cut_for(self.now), &mut self.random);
            // Beyond what a signature allows: a ticket that comes when the row was swept long ago must not make one.
            let long_ago = request == Request::Ticket && self.weather.quiet && self.random.chance(50);
            if long_ago { Fate { applied: Some(8 * DAY), answered: None, usual: false, ..fate } } else { fate }
        };
        session.disturbed |= !fate.usual;
        session.waiting += 1;
        let deadline = keeper.clock.read(self.now).mono + timeout;
        let flight = self.flights.len() as u32;
        if let Some(after) = fate.applied {
            self.queue.push(self.now + after, Event::Apply { flight });
        }
        if let Some((after, _)) = fate.failed {
            self.queue.push(self.now + after, Event::Answer { flight });
        }
        self.queue.push(keeper.clock.when(self.now, deadline), Event::Timeout { flight });
        self.note(Some(self.sessions[id].keeper), || {
            format!("S{id} sends {of:?} {}, timeout {timeout:?}, {}", trace::request(&request), trace::fate(&fate))
        });
        self.report.requests += 1;
        self.flights.push(Flight { session: id, id: of, request, fate, deadline, answer: None, settled: false });
        Ok(())
    }

    fn granted(&mut self, id: usize, token: Option<FencingToken>, valid_for: Duration) -> Result<(), Violation> {
        self.report.grants += 1;
        let session = &self.sessions[id];
        let now = self.keepers[session.keeper].clock.read(self.now);
        let Machine::Holder(holder) = &session.machine else { return Err(Violation::BelievedWithoutGrant) };
        if session.over {
            return Err(Violation::BelievedWithoutGrant);
        }
        if holder.validity().is_none_or(|validity| validity.left(now) != valid_for) {
            return Err(Violation::WrongValidity);
        }
        if session.due.is_some_and(|due| self.now > due) {
            return Err(Violation::NotRecovered);
        }
        let key = session.key;
        if self.minima[key].forbid(self.now) {
            return Err(Violation::MinimumNotKept);
        }
        if token.is_some() != self.format.abilities().fencing_token() {
            return Err(Violation::TokenOutOfPlace);
        }
        if let Some(token) = token.map(FencingToken::get) {
            if token <= self.tokens[key] {
                return Err(Violation::TokenFell);
            }
            self.tokens[key] = token;
        }
        self.believers.push(id);
        self.ended(id, End::Granted)?;
        self.work(id);
        Ok(())
    }

    /// The one end of an acquisition, and whether it came within the budget.
    fn ended(&mut self, id: usize, end: End) -> Result<(), Violation> {
        let session = &mut self.sessions[id];
        if session.end.replace(end).is_some() {
            return Err(Violation::TwoEnds);
        }
        if session.frozen || session.due.is_some() {
            return Ok(());
        }
        let now = self.keepers[session.keeper].clock.read(self.now);
        let waited = micros(now.mono.since(session.began.mono));
        let stop = micros(session.stop.since(session.began.mono));
        let latest = session.latest.map_or(Micros::MAX, |latest| micros(latest.since(session.began.mono)));
        // Two writes may be on their way when the time is over, then one cleanup, or the renewals before a grant.
        let slowest = if session.disturbed { 5 * SECOND } else { 2 * self.weather.latency.1 * 106 / 100 };
        if waited > (stop + 4 * slowest + 2 * MS).min(latest.saturating_add(2 * MS)) {
            return Err(Violation::OverBudget);
        }
        Ok(())
    }
}
