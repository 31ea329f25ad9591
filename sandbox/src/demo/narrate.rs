//! A scene's event log as a story: who took what when, without the wiring.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::Said;
use crate::{Event, EventKind, Exit};

/// A printable story.
#[derive(Debug, Clone, Default)]
pub struct Narration {
    lines: Vec<(Duration, String, String)>,
}

impl Narration {
    /// Tells these events.
    pub fn of(events: &[Event]) -> Self {
        let mut teller = Teller::default();
        let start = events.iter().find(|event| matches!(event.kind, EventKind::InvocationStarted { .. }));
        let start = start.map_or(Duration::ZERO, |event| event.at);
        let mut lines = Vec::new();
        let began = events.iter().position(|event| matches!(event.kind, EventKind::InvocationStarted { .. }));
        for event in events.iter().skip(began.unwrap_or_default()) {
            if let Some(line) = teller.tell(event) {
                let environment = event.environment.map(|id| id.to_string()).unwrap_or_default();
                lines.push((event.at.saturating_sub(start), environment, line));
            }
        }
        cause_first(&mut lines);
        Self { lines }
    }
}

/// Function and keeper write to pipes of their own, so that now and then the line `A works` is read before `A holds`, which
/// had to come first.
fn cause_first(lines: &mut [(Duration, String, String)]) {
    for later in 1..lines.len() {
        let Some(who) = lines[later].2.split_once(" holds ").map(|(who, _)| format!("{who} works: ")) else { continue };
        if let Some(earlier) = lines[..later].iter().position(|(_, _, line)| line.starts_with(&who)) {
            let at = lines[earlier].0;
            lines[earlier..=later].rotate_right(1);
            lines[earlier].0 = at;
        }
    }
}

impl fmt::Display for Narration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, environment, line) in &self.lines {
            writeln!(f, "  {:>9.3} s  {environment:<5} {line}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Gives invocations letters in the order in which they began.
#[derive(Default)]
struct Teller {
    names: BTreeMap<String, char>,
}

impl Teller {
    fn name(&mut self, request_id: &str) -> char {
        let next = char::from(b'A' + u8::try_from(self.names.len().min(25)).unwrap_or(25));
        *self.names.entry(request_id.to_owned()).or_insert(next)
    }

    fn tell(&mut self, event: &Event) -> Option<String> {
        use EventKind as K;
        Some(match &event.kind {
            K::InvocationStarted { request_id, .. } => format!("{} is invoked", self.name(request_id)),
            K::InvocationAnswered { request_id, error_type: None } => {
                format!("{} is answered: success", self.name(request_id))
            }
            K::InvocationAnswered { request_id, error_type: Some(error_type) } => {
                format!("{} is answered: {error_type}", self.name(request_id))
            }
            K::DeadlineReached { request_id } => format!("{} has reached its deadline", self.name(request_id)),
            K::Exited { process, exit } if *exit != Exit::Code(0) => format!("{process} ended: {exit}"),
            K::ShutdownSent { name, reason, .. } => format!("SHUTDOWN ({reason}) to extension {name}"),
            K::Frozen => "frozen".to_owned(),
            K::Thawed => "thawed".to_owned(),
            K::Vanished => "the whole environment is gone".to_owned(),
            K::Note(text) => text.clone(),
            K::Output { .. } => self.tell_said(&Said::in_event(event)?)?,
            _ => return None,
        })
    }

    fn tell_said(&mut self, said: &Said) -> Option<String> {
        let who = said.invocation().map_or('?', |request_id| self.name(request_id));
        let key = said.field("key").unwrap_or_default();
        let with_token = said.field("token").map(|token| format!(", token {token}")).unwrap_or_default();
        Some(match said.message.as_str() {
            "waiting" => match said.field("holder_request_id") {
                Some(holder) => format!("{who} waits for {key}, which {} holds", self.name(&holder)),
                None => format!("{who} waits for {key}"),
            },
            "acquired" if said.took_over() => format!("{who} takes {key} over, its lease had ended{with_token}"),
            "acquired" => format!("{who} holds {key}{with_token}"),
            "released" => match said.field("reason") {
                Some(reason) => format!("{who}'s {key} is freed by the keeper ({reason})"),
                None => format!("{who}'s {key} is freed by the keeper"),
            },
            "lost" => format!("{who} lost {key}: {}", said.field("reason").unwrap_or_default()),
            "busy" => format!("{who} gives up waiting for {key}"),
            "work began" => format!("{who} works: {}", said.field("work").unwrap_or_default()),
            "work ended" => format!("{who} has done its work"),
            _ => return None,
        })
    }
}
