//! Where a scene is played: two invocations for one key, its row, and what happened, by this machine's own clock.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use leasehold::session::Table;
use leasehold::store::DynamoDb;
use serde_json::json;

use super::invoke::{FunctionError, Invocation, Invoker};
use super::row::{self, Holder, State, Watch};
use super::stack::Role;
use crate::ended::Stop;
use crate::refused::Refused;
use crate::text::{cut, span};

/// How long who comes next holds the key: long enough for the row to be looked at.
pub(super) const NEXT_HOLDS: Duration = Duration::from_millis(300);

/// What everything is asked with.
#[derive(Debug)]
pub(super) struct Clients {
    pub(super) invoker: Invoker,
    pub(super) store: DynamoDb,
    pub(super) table: Table,
}

/// Why a scene did not show what it promises.
#[derive(Debug)]
pub(super) enum Failed {
    /// The promise was broken, or something else was in its way.
    Broken(String),
    /// It could not be seen: whoever was to wait came too late, or Lambda took another environment.
    NotShown(String),
    /// AWS refused to play.
    Refused(String),
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.told)
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        Self::Refused(stop.to_string())
    }
}

pub(super) fn broken(told: impl Into<String>) -> Failed {
    Failed::Broken(told.into())
}

/// A scene's key, and what was seen of it.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    clients: &'a Clients,
    key: String,
    began: Instant,
    /// How much longer than usual holders hold, for those who want the key to come in time.
    pub(super) slower: u32,
    /// How long the environment that is to freeze is left alone.
    pub(super) thaw_after: Duration,
    pub(super) watch: Watch<'a>,
    story: RefCell<Vec<(Instant, String)>>,
    invocations: RefCell<Vec<Invocation>>,
}

/// From the first one's end, as it was told here, to the next holder.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    pub(super) freed: Duration,
    pub(super) granted: Duration,
    pub(super) holder: Holder,
    pub(super) left: Duration,
}

impl<'a> Stage<'a> {
    pub(super) fn new(clients: &'a Clients, key: String, slower: u32, thaw_after: Duration) -> Self {
        Self {
            clients,
            watch: Watch::new(&clients.store, &clients.table, format!("verify:{key}")),
            key,
            began: Instant::now(),
            slower,
            thaw_after,
            story: RefCell::default(),
            invocations: RefCell::default(),
        }
    }

    /// Plays, with an eye on the row.
    pub(super) async fn watched<T>(&self, play: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        tokio::select! {
            biased;
            played = play => played,
            stop = self.watch.run() => Err(stop.into()),
        }
    }

    /// Invokes a function for the scene's key; `who` is what the story calls it.
    pub(super) async fn invoke(
        &self,
        who: char,
        role: Role,
        scene: &str,
        hold: Duration,
    ) -> Result<Invocation, Refused> {
        let event = json!({ "scene": scene, "key": self.key, "hold_ms": crate::lock::millis(hold) });
        self.tell(Instant::now(), format!("{who} is invoked: {role}, {scene}"));
        let invoked = self.clients.invoker.invoke(role, &event).await?;
        self.tell(
            invoked.answered,
            match &invoked.result {
                Ok(answer) => format!("{who} is answered: it had its key after {} ms", answer.waited_ms),
                Err(error) => format!("{who} has failed: {}", cut(&error.told(), 200)),
            },
        );
        self.invocations.borrow_mut().push(invoked.clone());
        Ok(invoked)
    }

    /// Invokes A, and B as soon as A is seen to hold the key; both to their ends.
    pub(super) async fn contended(
        &self,
        (role, scene, hold): (Role, &str, Duration),
        next_holds: Duration,
    ) -> Result<(Invocation, Invocation), Failed> {
        let mut first = pin!(self.invoke('A', role, scene, hold));
        let held = |seen: &[row::Seen]| Holder::first(seen).map(drop);
        tokio::select! {
            () = self.watch.until(held) => {}
            ended = &mut first => {
                let told = match ended?.result {
                    Ok(_) => "without ever being seen to hold its key".to_owned(),
                    Err(error) => format!("before it held its key: {}", advised(&error)),
                };
                return Err(broken(format!("A ended {told}")));
            }
        }
        let (first, second) = tokio::join!(first, self.invoke('B', Role::Worker, "contend", next_holds));
        Ok((first?, second?))
    }

    /// B got the key because A, or the keeper for it, gave it back: not by a takeover, and after a wait.
    pub(super) fn handed_over(&self, first: &Invocation, second: &Invocation) -> Result<Handover, Failed> {
        let seen = self.watch.seen();
        let holder = Holder::first(&seen).ok_or_else(|| broken("nobody was seen to hold the key"))?;
        let since = |moment: Instant| moment.saturating_duration_since(first.answered);
        let answer = match &second.result {
            Ok(answer) => answer,
            Err(error) if error.error_type == "LeaseBusy" => {
                return Err(broken(format!(
                    "the key was not freed: {} after A's end B gave up waiting for it ({})",
                    span(since(second.answered)),
                    cut(&error.message, 300)
                )));
            }
            Err(error) => return Err(broken(format!("B failed: {}", advised(error)))),
        };
        // Where the row was not looked at in time, by what B says of itself.
        let granted = row::next_holder(&seen, holder.owner).unwrap_or(second.answered);
        let freed = row::given_back(&seen, holder.owner).unwrap_or(granted);
        if answer.took_over {
            return Err(broken(format!(
                "the key was not freed: B had to take it over {} after A's end, when A's lease of {} was over. Is the layer with \
                 the extension there, and was it not killed with the function?",
                span(since(granted)),
                span(holder.lease)
            )));
        }
        if !answer.found_it_held() {
            return Err(Failed::NotShown("B came too late to wait for A".to_owned()));
        }
        Ok(Handover { freed: since(freed), granted: since(granted), left: holder.left_at(freed), holder })
    }

    fn tell(&self, at: Instant, told: String) {
        self.story.borrow_mut().push((at, told));
    }

    /// What happened, in order: milliseconds since the scene's beginning, and what.
    pub(super) fn story(&self) -> Vec<(u64, String)> {
        let mut lines = self.story.borrow().clone();
        let first = Holder::first(&self.watch.seen()).map(|holder| holder.owner);
        let mut last = None;
        for seen in self.watch.seen() {
            let told = match &seen.state {
                State::Absent => continue,
                State::Free => "the key is free".to_owned(),
                State::Held { owner, version, .. } if last == Some(*owner) => format!("renewed, version {version}"),
                State::Held { owner, version, lease } => {
                    last = Some(*owner);
                    let who = if Some(*owner) == first { 'A' } else { 'B' };
                    format!("{who} holds the key, version {version}, lease {}", span(*lease))
                }
            };
            lines.push((seen.by, told));
        }
        lines.sort_by_key(|(at, _)| *at);
        let since = |at: Instant| crate::lock::millis(at.saturating_duration_since(self.began));
        lines.into_iter().map(|(at, told)| (since(at), told)).collect()
    }

    pub(super) fn invocations(&self) -> Vec<Invocation> {
        self.invocations.borrow().clone()
    }
}

/// An error of the function's, and what to do where that is known.
pub(super) fn advised(error: &FunctionError) -> String {
    let told = cut(&error.told(), 400);
    match error.error_type.as_str() {
        "KeeperMissing" => format!("{told}. The function has no extension: deploy verify.yaml with its layer"),
        _ => told,
    }
}
