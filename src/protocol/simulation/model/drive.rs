//! The driver: feeds a session's machine, carries out what it asks for, and checks all that it tells.

use std::time::Duration;

use super::course::Course;
use super::fact::Fact;
use super::state::{Flight, Session};
use crate::clock::Now;
use crate::protocol::simulation::Violation;
use crate::protocol::simulation::keeper::End;
use crate::protocol::simulation::machine::{Input, Machine};
use crate::protocol::simulation::minimum;
use crate::protocol::simulation::trace;
use crate::protocol::{
    Acquired, Action, Context, Entropy, Holder, LossReason, OwnerId, Renewals, Request, RequestId, Verdict, Version,
};

/// Identities by place and count, and no jitter: a state decides what follows from it.
#[derive(Debug)]
struct Counted<'a> {
    place: u128,
    given: &'a mut u32,
}

impl Entropy for Counted<'_> {
    fn owner(&mut self) -> OwnerId {
        *self.given += 1;
        OwnerId::from_u128((self.place + 1) * 100 + u128::from(*self.given))
    }

    fn fraction(&mut self) -> f64 {
        0.5
    }
}

impl Course<'_> {
    pub(super) fn start(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        self.feed(place, session, Input::Start)
    }

    pub(super) fn wake(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        let before = self.at(place).sessions[session].clone();
        self.feed(place, session, Input::Wake)?;
        // A machine that is woken and asks for the same moment again would never let time go on.
        if self.at(place).sessions[session] == before { Err(Violation::Restless) } else { Ok(()) }
    }

    pub(super) fn cancel(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        self.saw(Fact::Cancelled);
        self.feed(place, session, Input::Cancel)
    }

    pub(super) fn finish(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        let minimum = self.model.bounds.minimum.map(Duration::from_micros);
        let it = &mut self.at(place).sessions[session];
        // What is lost already is only released.
        it.keeps_minimum = minimum.is_some() && !it.over;
        it.asked = true;
        it.over = true;
        self.feed(place, session, minimum.map_or(Input::Release, Input::Park))
    }

    pub(super) fn feed(&mut self, place: usize, session: usize, input: Input) -> Result<(), Violation> {
        let now = self.state.now;
        let at = self.at(place);
        let mut entropy = Counted { place: place as u128, given: &mut at.owners };
        let mut cx = Context {
            now: at.clock.read(now),
            server_time: &mut at.server_time,
            observations: &mut at.observations,
            entropy: &mut entropy,
            client_is_warm: true,
        };
        if !at.sessions[session].machine.feed(&mut cx, input) {
            return Ok(());
        }
        self.pump(place, session)
    }

    /// Carries out what the machine wants until it wants nothing more, and notes its next wake-up.
    fn pump(&mut self, place: usize, session: usize) -> Result<(), Violation> {
        while let Some(action) = self.at(place).sessions[session].machine.poll_action() {
            self.carry_out(place, session, action)?;
        }
        let now = self.now_at(place);
        let it = &mut self.at(place).sessions[session];
        let (finished, wake) = match &it.machine {
            Machine::Contender(contender) => (contender.is_finished(), contender.poll_wakeup()),
            Machine::Holder(holder) => {
                if it.over && holder.validity().is_some() {
                    return Err(Violation::BelievedWithoutGrant);
                }
                (holder.is_finished(), holder.poll_wakeup(now))
            }
            Machine::Done => return Ok(()),
        };
        it.wake = wake;
        if finished {
            if it.end.is_none() {
                return Err(Violation::NoEnd);
            }
            it.machine = Machine::Done;
            self.set_adrift(place, session);
        } else if wake.is_none() && it.flight.is_none() && !it.over {
            return Err(Violation::Stuck);
        }
        Ok(())
    }

    fn carry_out(&mut self, place: usize, session: usize, action: Action) -> Result<(), Violation> {
        match action {
            Action::Send { id, request, timeout } => self.send(place, session, id, request, timeout),
            Action::Acquired { acquired, unwanted } => self.acquired(place, session, acquired, unwanted),
            Action::Verdict(verdict) => {
                self.note(|| format!("is told {verdict:?}"));
                match verdict {
                    Verdict::Busy(_) => {
                        self.saw(Fact::Busy);
                        self.check_diligence(place, session)?;
                    }
                    Verdict::TooLate => self.saw(Fact::TooLate),
                    _ => {}
                }
                self.at(place).sessions[session].over = true;
                self.ended(place, session, End::Refused)
            }
            Action::Granted { token, valid_for } => match token {
                Some(token) => self.granted(place, session, token.get(), valid_for),
                None => Err(Violation::TokenOutOfPlace),
            },
            Action::AtRisk => {
                self.at(place).sessions[session].warned = true;
                Ok(())
            }
            Action::Secured => {
                self.saw(Fact::Secured);
                self.at(place).sessions[session].warned = false;
                Ok(())
            }
            Action::Lost(reason) => {
                self.note(|| format!("has LOST its lease: {reason}"));
                self.saw(match reason {
                    LossReason::MaxHold => Fact::LostMaxHold,
                    _ => Fact::LostExpired,
                });
                let it = &mut self.at(place).sessions[session];
                it.over = true;
                it.keeps_minimum = false;
                if it.warned { Ok(()) } else { Err(Violation::LossWithoutRisk) }
            }
            Action::Parked => {
                self.note(|| "is parked".to_owned());
                self.saw(Fact::Parked);
                if let Some(parked) = self.at(place).sessions[session].parked {
                    self.state.minima.begin(parked);
                }
                Ok(())
            }
            Action::Released(result) => {
                self.note(|| format!("is released: {result:?}"));
                Ok(())
            }
        }
    }

    fn send(
        &mut self,
        place: usize,
        session: usize,
        id: RequestId,
        request: Request,
        timeout: Duration,
    ) -> Result<(), Violation> {
        self.note(|| format!("sends {}, timeout {timeout:?}", trace::request(&request)));
        // A renewal that a release overtakes is still on its way.
        self.set_adrift(place, session);
        let now = self.now_at(place);
        let rests_on = match &request {
            Request::TakeOver { seen_owner, seen_version, .. } => {
                Some(self.rule(place, now, *seen_owner, *seen_version))
            }
            _ => None,
        };
        let (true_now, rate, minimum) = (self.state.now, self.kind(place).mono, self.model.bounds.minimum);
        let at = self.at(place);
        let cut = at.cut;
        let it = &mut at.sessions[session];
        let over = minimum.filter(|_| it.keeps_minimum).map(|it_is| minimum::over(it.attempted, it_is, rate, rate));
        let (mut parking, mut frees_in_time) = (None, false);
        match request {
            Request::Acquire { .. } | Request::TakeOver { .. } if minimum.is_some() => it.attempted = true_now,
            Request::Park { parked, .. } => {
                it.release_sent = true;
                it.parked = Some(parked);
                parking = over.map(|over| (parked, over));
            }
            Request::Release { .. } if over.is_some_and(|over| true_now < over) => {
                return Err(Violation::MinimumNotKept);
            }
            Request::Release { .. } => {
                it.release_sent = true;
                frees_in_time = over.is_some();
            }
            Request::Renew { .. } if it.release_sent => return Err(Violation::RenewedAfterRelease),
            _ => {}
        }
        it.flight = Some(Flight { id, request, deadline: now.mono + timeout, slow: cut, answer: None, rests_on });
        if let Some((parked, over)) = parking {
            self.state.minima.sent(parked, over);
        }
        if frees_in_time {
            self.saw(Fact::MinimumOver);
        }
        Ok(())
    }

    /// Which of the two rules allows a takeover.
    fn rule(&self, place: usize, now: Now, owner: OwnerId, version: Version) -> Fact {
        let seen = self.state.places[place].as_ref().and_then(|at| at.observations.get(&self.model.subject));
        let observed = seen.is_some_and(|seen| {
            seen.owner == owner && seen.version == version && now.smaller_elapsed(seen.since) >= seen.lease
        });
        if observed { Fact::ObservedTakeover } else { Fact::ExpiredTakeover }
    }

    fn acquired(&mut self, place: usize, session: usize, acquired: Acquired, unwanted: bool) -> Result<(), Violation> {
        self.note(|| {
            let unwanted = if unwanted { ", unwanted" } else { "" };
            format!("has the row at version {}{unwanted}", acquired.version)
        });
        let settings = self.settings(self.kind(place).server_time);
        let it = &mut self.at(place).sessions[session];
        let renewals = Renewals { until: it.renews_until, then: LossReason::MaxHold, covered_by: None };
        it.machine = Machine::Holder(Holder::new(settings, acquired, renewals, it.latest));
        self.feed(place, session, if unwanted { Input::Unwanted } else { Input::Start })
    }

    fn granted(&mut self, place: usize, session: usize, token: u64, valid_for: Duration) -> Result<(), Violation> {
        self.note(|| format!("is GRANTED token {token}, valid for {valid_for:?}"));
        self.saw(Fact::Granted);
        let now = self.now_at(place);
        let it: &Session = &self.at(place).sessions[session];
        if it.over {
            return Err(Violation::BelievedWithoutGrant);
        }
        if it.validity().is_none_or(|validity| validity.left(now) != valid_for) {
            return Err(Violation::WrongValidity);
        }
        if self.state.minima.forbid(self.state.now) {
            return Err(Violation::MinimumNotKept);
        }
        if token <= self.state.token {
            return Err(Violation::TokenFell);
        }
        self.state.token = token;
        self.ended(place, session, End::Granted)
    }

    fn ended(&mut self, place: usize, session: usize, end: End) -> Result<(), Violation> {
        match self.at(place).sessions[session].end.replace(end) {
            None => Ok(()),
            Some(_) => Err(Violation::TwoEnds),
        }
    }

    pub(super) fn now_at(&self, place: usize) -> Now {
        self.state.places[place].as_ref().map_or_else(Now::default, |at| at.read(self.state.now))
    }
}
