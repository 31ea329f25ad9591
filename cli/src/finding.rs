//! What a check found, and what to change: one line for people, one object in JSON.

use std::io;

use serde_json::{Value, json};

use crate::ended::Ended;
use crate::output;
use crate::text::{fitted, safe, width};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    Warning,
    Problem,
    /// It could not be looked at.
    Unknown,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Unknown => "unknown",
        }
    }
}

/// What one check found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    check: String,
    pub(crate) status: Status,
    told: String,
    advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: impl Into<String>, told: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Ok, told: told.into(), advice: None }
    }

    pub(crate) fn warning(check: impl Into<String>, told: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Warning, told: told.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn problem(check: impl Into<String>, told: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Problem, told: told.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn unknown(check: impl Into<String>, told: impl Into<String>) -> Self {
        Self { check: check.into(), status: Status::Unknown, told: told.into(), advice: None }
    }

    /// The same about something of which there are several.
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.check = format!("{what} {}", self.check);
        self
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "check": self.check, "status": self.status.word(), "told": self.told, "advice": self.advice })
    }
}

/// Prints the findings about something and tells how the command ends: with a problem if there is one.
///
/// # Errors
///
/// When standard output can't be written to.
pub(crate) fn tell(what: &str, name: &str, findings: &[Finding], json: bool) -> io::Result<Ended> {
    let of = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (problems, warnings, unknown) = (of(Status::Problem), of(Status::Warning), of(Status::Unknown));
    if json {
        let checks: Vec<_> = findings.iter().map(Finding::json).collect();
        output::document(&json!({
            what: name, "checks": checks, "problems": problems, "warnings": warnings, "unknown": unknown,
        }))?;
    } else {
        output::line(&format!("{what} {}", safe(name)))?;
        let widest = findings.iter().map(|finding| width(&safe(&finding.check))).max().unwrap_or(0);
        for finding in findings {
            let (status, check) = (finding.status.word(), fitted(&safe(&finding.check), widest));
            output::line(&format!("  {status:<8} {check}  {}", safe(&finding.told)))?;
            if let Some(advice) = &finding.advice {
                output::line(&format!("  {:<8} {:<widest$}  → {}", "", "", safe(advice)))?;
            }
        }
        let counted = [(problems, "problem"), (warnings, "warning")];
        let counted: Vec<_> = counted.iter().map(|(n, word)| format!("{n} {word}{}", plural(*n))).collect();
        let unknown = if unknown == 0 { String::new() } else { format!(", {unknown} not looked at") };
        output::line(&format!("{}{unknown}", counted.join(", ")))?;
    }
    Ok(if problems == 0 { Ended::Fine } else { Ended::Problem })
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
