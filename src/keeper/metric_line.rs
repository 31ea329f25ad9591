//! One line of metrics: what was counted under one template since the line before, in CloudWatch's embedded metric format.
//!
//! The members of a line are all there is to know of it; the directive in `_aws` says which of them CloudWatch makes metrics
//! of, and those cost money. What is 0 is left out: a metric that never was anything else is never made, nor paid for.
//! The format: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use serde_json::{Map, Value, json};

use super::counts::KeeperCounts;
use super::tally::Look;
use crate::settings::MetricLines;

/// What all metrics are found under.
const NAMESPACE: &str = "Leasehold";
/// How many values CloudWatch takes for one metric of one line.
pub(super) const MOST_VALUES: usize = 100;
const MILLISECONDS: &str = "Milliseconds";
const COUNT: &str = "Count";
/// What capacity is counted in.
const MILLIONTHS: f64 = 1e6;

/// Who is measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) function: String,
    /// Where the keeper lives.
    pub(super) place: &'static str,
    /// Tells this keeper's lines from those of others.
    pub(super) keeper_id: String,
}

/// What one line is about.
#[derive(Debug)]
pub(super) struct MetricLine<'a> {
    pub(super) measured: &'a Measured,
    /// None for what belongs to no lease.
    pub(super) template: Option<&'a str>,
    /// The line's place among this keeper's, from 1.
    pub(super) number: u64,
    /// When the last of it happened, in milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
    /// What was counted since the last line of this template.
    pub(super) since: KeeperCounts,
    /// As everything stands now.
    pub(super) now: &'a Look,
    /// How long Next was held.
    pub(super) next_holds: &'a [u64],
    /// Whether this keeper writes no further line about it.
    pub(super) last: bool,
}

impl MetricLine<'_> {
    /// The line, with its end.
    pub(super) fn encode(&self, which: MetricLines) -> Vec<u8> {
        let mut members = Map::new();
        let mut metrics = Vec::new();
        for Member { name, value, metric } in self.members() {
            if let Some(unit) = metric.unit(which) {
                metrics.push(json!({ "Name": name, "Unit": unit }));
            }
            members.insert(name.to_owned(), value);
        }
        let mut dimensions = vec!["FunctionName", "Keeper"];
        if let Some(template) = self.template {
            dimensions.insert(1, "Template");
            members.insert("Template".to_owned(), template.into());
        }
        let directives = if metrics.is_empty() {
            json!([])
        } else {
            json!([{ "Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": metrics }])
        };
        let Measured { function, place, keeper_id } = self.measured;
        members.insert("FunctionName".to_owned(), function.as_str().into());
        members.insert("Keeper".to_owned(), (*place).into());
        members.insert("KeeperId".to_owned(), keeper_id.as_str().into());
        members.insert("Line".to_owned(), self.number.into());
        if self.last {
            members.insert("Last".to_owned(), true.into());
        }
        members.insert("_aws".to_owned(), json!({ "Timestamp": self.at_ms, "CloudWatchMetrics": directives }));
        let mut line = Value::Object(members).to_string().into_bytes();
        line.push(b'\n');
        line
    }

    /// Everything that is not 0.
    fn members(&self) -> Vec<Member> {
        let KeeperCounts {
            granted,
            takeovers,
            contended,
            busy,
            failed,
            lost,
            renewals,
            renewals_failed,
            released,
            parked,
            release_failures,
            crash_releases,
            abandoned,
            expired,
            attempts,
            attempts_refused,
            attempts_unknown,
            grants_undone,
            given_back,
            states_saved,
            states_not_left,
            states_left_unknown,
            requests,
            errors,
            throttles,
            write_unit_millionths,
            read_unit_millionths,
        } = self.since;
        let times = [
            ("Wait", Metric::OfFew(MILLISECONDS), self.now.waits.as_slice()),
            ("Held", Metric::OfAll(MILLISECONDS), &self.now.holds),
            ("NextHold", Metric::OfAll(MILLISECONDS), self.next_holds),
        ];
        let times = times.into_iter().filter(|(.., values)| !values.is_empty());
        let times = times.map(|(name, metric, values)| Member { name, metric, value: json!(values) });
        let (of_few, of_all) = (Metric::OfFew(COUNT), Metric::OfAll(COUNT));
        let counts = [
            ("Busy", of_few, busy),
            ("Lost", of_few, lost),
            ("CrashReleases", of_few, crash_releases),
            ("Errors", of_few, errors),
            ("Acquired", of_all, granted),
            ("Contended", of_all, contended),
            ("Takeovers", of_all, takeovers),
            ("Renewals", of_all, renewals),
            ("RenewalFailures", of_all, renewals_failed),
            ("Requests", of_all, requests),
            ("Throttles", of_all, throttles),
            ("Failed", Metric::Never, failed),
            ("Released", Metric::Never, given_back),
            ("LeftToExpire", Metric::Never, abandoned),
            ("Expired", Metric::Never, expired),
            ("StillHeld", Metric::Never, self.now.still_held),
            ("Attempts", Metric::Never, attempts),
            ("AttemptsRefused", Metric::Never, attempts_refused),
            ("AttemptsUnknown", Metric::Never, attempts_unknown),
            ("AttemptsPending", Metric::Never, self.now.counts.attempts_pending()),
            ("GrantsUndone", Metric::Never, grants_undone),
            ("RowsFreed", Metric::Never, released),
            ("RowsParked", Metric::Never, parked),
            ("RowsNotFreed", Metric::Never, release_failures),
            ("StatesSaved", Metric::Never, states_saved),
            ("StatesNotLeft", Metric::Never, states_not_left),
            ("StatesLeftUnknown", Metric::Never, states_left_unknown),
        ];
        let counts = counts.into_iter().filter(|(.., count)| *count > 0);
        let counts = counts.map(|(name, metric, count)| Member { name, metric, value: json!(count) });
        let units = [("WriteUnits", write_unit_millionths), ("ReadUnits", read_unit_millionths)];
        let units = units.into_iter().filter(|(_, millionths)| *millionths > 0);
        let units = units.map(|(name, millionths)| Member {
            name,
            metric: of_all,
            value: json!(millionths as f64 / MILLIONTHS),
        });
        times.chain(counts).chain(units).collect()
    }
}

/// Something that a line tells.
struct Member {
    name: &'static str,
    value: Value,
    metric: Metric,
}

/// Whether CloudWatch makes a metric of it, and in which unit.
#[derive(Clone, Copy)]
enum Metric {
    /// In either setting.
    OfFew(&'static str),
    /// Where all are asked for.
    OfAll(&'static str),
    /// It is there to be looked up, and to be added up.
    Never,
}

impl Metric {
    fn unit(self, which: MetricLines) -> Option<&'static str> {
        match self {
            Self::OfFew(unit) => Some(unit),
            Self::OfAll(unit) => (which == MetricLines::Full).then_some(unit),
            Self::Never => None,
        }
    }
}
