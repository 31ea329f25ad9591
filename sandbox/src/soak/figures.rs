//! The figures of a soak, and their table: Markdown, which reads well on a terminal too.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::{Value, json};

use super::{Break, MetricSums};

/// How many kinds of loss the table shows one by one; JSON has them all.
const LOSSES_SHOWN: usize = 12;

/// What a soak came to.
#[derive(Debug, Default)]
pub struct Figures {
    /// The seed that the faults were drawn from.
    pub seed: u64,
    /// How many environments contended.
    pub environments: usize,
    /// For how many keys.
    pub keys: usize,
    /// The length of a lease.
    pub lease: Duration,
    /// How long it took, without the quiet at the end.
    pub took: Duration,
    /// Invocations by their end: `ok`, or the error's type.
    pub invocations: BTreeMap<String, u64>,
    /// Faults of requests and connections.
    pub request_faults: BTreeMap<String, u64>,
    /// Faults of processes.
    pub process_faults: BTreeMap<String, u64>,
    /// Requests to DynamoDB by their step.
    pub requests: BTreeMap<String, u64>,
    /// Locks granted.
    pub granted: u64,
    /// Of these, taken over from a holder whose lease was over.
    pub takeovers: u64,
    /// Rows freed, by why.
    pub released: BTreeMap<String, u64>,
    /// Locks lost: why, beside which faults of their owner, and how many.
    pub lost: Vec<(String, String, u64)>,
    /// What the keepers' metrics add up to.
    pub metrics: MetricSums,
    /// The longest that a lock was waited for and then granted.
    pub longest_wait: Duration,
    /// The longest that a caller waited for an answer.
    pub longest_invocation: Duration,
    /// Times that an invocation was witnessed to hold its key.
    pub claims: u64,
    /// What was broken.
    pub breaks: Vec<Break>,
}

impl Figures {
    /// How many invocations ended.
    pub fn ended(&self) -> u64 {
        self.invocations.values().sum()
    }

    /// How many faults were injected.
    pub fn faults(&self) -> u64 {
        self.request_faults.values().chain(self.process_faults.values()).sum()
    }

    /// How many locks were lost.
    pub fn losses(&self) -> u64 {
        self.lost.iter().map(|(.., count)| count).sum()
    }

    /// As JSON, for machines.
    pub fn to_json(&self) -> Value {
        let lost: Vec<_> = self.lost.iter().map(|(why, beside, count)| json!([why, beside, count])).collect();
        let breaks: Vec<_> = self
            .breaks
            .iter()
            .map(|broken| json!({ "invariant": broken.invariant, "key": broken.key, "what": broken.what }))
            .collect();
        json!({
            "seed": self.seed, "environments": self.environments, "keys": self.keys,
            "lease_ms": millis(self.lease), "took_ms": millis(self.took),
            "invocations": self.invocations, "ended": self.ended(), "claims": self.claims,
            "request_faults": self.request_faults, "process_faults": self.process_faults, "faults": self.faults(),
            "requests": self.requests, "granted": self.granted, "takeovers": self.takeovers,
            "released": self.released, "lost": lost, "losses": self.losses(),
            "metrics": self.metrics.sums, "metric_lines": self.metrics.lines, "metric_keepers": self.metrics.keepers,
            "longest_wait_ms": millis(self.longest_wait), "longest_invocation_ms": millis(self.longest_invocation),
            "breaks": breaks,
        })
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<[String; 3]> = Vec::new();
        let mut group = |name: &str, total: u64, parts: &mut dyn Iterator<Item = (String, u64)>| {
            rows.push([name.to_owned(), String::new(), total.to_string()]);
            rows.extend(parts.map(|(part, count)| [String::new(), part, count.to_string()]));
        };
        let parts = |map: &BTreeMap<String, u64>| {
            let mut parts: Vec<_> = map.iter().map(|(name, count)| (name.clone(), *count)).collect();
            parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            parts.into_iter()
        };
        let sum = |map: &BTreeMap<String, u64>| map.values().sum();
        group("invocations", self.ended(), &mut parts(&self.invocations));
        group("faults of requests", sum(&self.request_faults), &mut parts(&self.request_faults));
        group("faults of processes", sum(&self.process_faults), &mut parts(&self.process_faults));
        group("requests to DynamoDB", sum(&self.requests), &mut parts(&self.requests));
        let takeovers = ("taken over from a lease that had ended".to_owned(), self.takeovers);
        group("locks granted", self.granted, &mut std::iter::once(takeovers));
        group("rows freed", sum(&self.released), &mut parts(&self.released));
        let lost = |(why, beside, count): &(String, String, u64)| (format!("{why}; beside: {beside}"), *count);
        let others: u64 = self.lost.iter().skip(LOSSES_SHOWN).map(|(.., count)| count).sum();
        let others = (others > 0).then(|| ("beside other mixtures of these faults".to_owned(), others));
        let mut shown = self.lost.iter().take(LOSSES_SHOWN).map(lost).chain(others);
        group("locks lost", self.losses(), &mut shown);
        for (name, time) in [("longest wait", self.longest_wait), ("longest invocation", self.longest_invocation)] {
            rows.push([name.to_owned(), String::new(), format!("{:.2} s", time.as_secs_f64())]);
        }
        rows.push(["claims witnessed".to_owned(), String::new(), self.claims.to_string()]);
        rows.push(["invariant breaks".to_owned(), String::new(), self.breaks.len().to_string()]);
        writeln!(
            f,
            "{} environments, {} keys, leases of {:?}, seed {}, {:.0} s:\n",
            self.environments,
            self.keys,
            self.lease,
            self.seed,
            self.took.as_secs_f64()
        )?;
        table(f, ["what", "of which", "count"].map(str::to_owned), &rows)?;
        let MetricSums { lines, keepers, .. } = self.metrics;
        writeln!(f, "\n{lines} lines of metrics by {keepers} keepers add up to:\n")?;
        let mut rows = Vec::new();
        for (total, parts) in self.metrics.equations() {
            rows.push([total.to_owned(), String::new(), self.metrics.of(total).to_string()]);
            rows.extend(
                parts.iter().map(|part| [String::new(), (*part).to_owned(), self.metrics.of(part).to_string()]),
            );
        }
        table(f, ["metric", "of which", "sum"].map(str::to_owned), &rows)
    }
}

fn table(f: &mut fmt::Formatter<'_>, head: [String; 3], rows: &[[String; 3]]) -> fmt::Result {
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |[a, b, c]: &[String; 3]| {
        format!("| {a:<x$} | {b:<y$} | {c:>z$} |", x = widths[0], y = widths[1], z = widths[2])
    };
    writeln!(f, "{}", line(&head))?;
    writeln!(f, "|{:-<x$}|{:-<y$}|{:->z$}:|", "", "", "", x = widths[0] + 2, y = widths[1] + 2, z = widths[2] + 1)?;
    rows.iter().try_for_each(|row| writeln!(f, "{}", line(row)))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
