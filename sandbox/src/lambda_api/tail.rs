//! The last 4 KB of an invocation's log: what its processes wrote, between Lambda's own lines.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::memory::Running;
use crate::{Event, EventKind, Outcome, Sandbox};

/// What `LogType: Tail` gives. <https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html>
const LENGTH: usize = 4 * 1024;

/// The tail of an invocation that has just ended; it began at place `mark` of the log or later.
pub(super) fn of(sandbox: &Sandbox, outcome: &Outcome, mark: usize, memory_mb: u32) -> String {
    let Some(environment) = outcome.environment else { return String::new() };
    let (mut running, mut lines, mut figures) = (Running::default(), Vec::new(), Figures::default());
    for event in sandbox.log().events() {
        running.note(&event);
        if event.environment != Some(environment) || event.index < mark {
            continue;
        }
        figures.note(&event, &outcome.request_id);
        if let EventKind::Output { line, .. } = &event.kind {
            lines.push(line.clone());
        }
    }
    let taken = running.megabytes(environment, "VmHWM").min(memory_mb.into());
    lines.push(figures.report(outcome, memory_mb, taken));
    let whole = lines.join("\n") + "\n";
    let from = whole.len().saturating_sub(LENGTH);
    // Whole characters: Lambda cuts anywhere, and its readers bear it.
    (from..).find_map(|at| whole.get(at..)).unwrap_or_default().to_owned()
}

#[derive(Debug, Default)]
struct Figures {
    init_started: Option<Duration>,
    init: Option<Duration>,
    began: Option<Duration>,
    ended: Option<Duration>,
}

impl Figures {
    fn note(&mut self, event: &Event, request_id: &str) {
        match &event.kind {
            EventKind::InitStarted => self.init_started = Some(event.at),
            EventKind::InitDone => self.init = self.init_started.map(|started| event.at.saturating_sub(started)),
            EventKind::InvocationStarted { request_id: id, .. } if id == request_id => self.began = Some(event.at),
            EventKind::InvocationAnswered { request_id: id, .. } if id == request_id => self.ended = Some(event.at),
            _ => {}
        }
    }

    /// The report's line in the log format JSON.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html>
    fn report(&self, outcome: &Outcome, memory_mb: u32, taken_mb: u64) -> String {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let duration = self.began.zip(self.ended).map(|(began, ended)| ended.saturating_sub(began)).unwrap_or_default();
        let billed = duration + self.init.unwrap_or_default();
        let mut metrics = json!({
            "durationMs": ms(duration),
            "billedDurationMs": ms(billed).ceil(),
            "memorySizeMB": memory_mb,
            "maxMemoryUsedMB": taken_mb,
        });
        if let Some(init) = self.init {
            metrics["initDurationMs"] = json!(ms(init));
        }
        let status = match outcome.error_type() {
            None => "success",
            Some("Sandbox.Timedout") => "timeout",
            Some(_) => "error",
        };
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = aws_sdk_dynamodb::primitives::DateTime::from_millis(i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
        let record = json!({ "requestId": outcome.request_id, "status": status, "metrics": metrics });
        json!({ "time": at.to_string(), "type": "platform.report", "record": record }).to_string()
    }
}
