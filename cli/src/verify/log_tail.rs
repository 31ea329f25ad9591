//! The log's tail that comes with an invocation: Lambda's own report in it, in either log format.

use serde_json::{Value, json};

/// What Lambda says an invocation took.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report {
    pub(super) duration_ms: f64,
    pub(super) billed_ms: f64,
    pub(super) memory_mb: f64,
    /// Missing where nobody could tell any more.
    pub(super) max_memory_mb: Option<f64>,
    /// Only of an environment's first invocation.
    pub(super) init_ms: Option<f64>,
}

impl Report {
    /// The last report in these lines.
    pub(super) fn find(tail: &str) -> Option<Self> {
        tail.lines().rev().find_map(|line| Self::in_json(line).or_else(|| Self::in_text(line)))
    }

    /// <https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html#platform-report>
    fn in_json(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
        if line["type"] != "platform.report" {
            return None;
        }
        let metrics = &line["record"]["metrics"];
        Some(Self {
            duration_ms: metrics["durationMs"].as_f64()?,
            billed_ms: metrics["billedDurationMs"].as_f64()?,
            memory_mb: metrics["memorySizeMB"].as_f64()?,
            max_memory_mb: metrics["maxMemoryUsedMB"].as_f64(),
            init_ms: metrics["initDurationMs"].as_f64(),
        })
    }

    /// `REPORT RequestId: … Duration: 1.23 ms Billed Duration: 2 ms Memory Size: 128 MB Max Memory Used: 30 MB`, with tabs.
    fn in_text(line: &str) -> Option<Self> {
        let fields = line.strip_prefix("REPORT ")?;
        let field = |name: &str| {
            let told = fields.split('\t').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix(": "))?;
            told.split(' ').next()?.parse().ok()
        };
        Some(Self {
            duration_ms: field("Duration")?,
            billed_ms: field("Billed Duration")?,
            memory_mb: field("Memory Size")?,
            max_memory_mb: field("Max Memory Used"),
            init_ms: field("Init Duration"),
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "duration_ms": self.duration_ms, "billed_ms": self.billed_ms, "memory_mb": self.memory_mb,
            "max_memory_mb": self.max_memory_mb, "init_ms": self.init_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read_in_both_log_formats() {
        let report = Report {
            duration_ms: 102.25,
            billed_ms: 103.0,
            memory_mb: 128.0,
            max_memory_mb: Some(31.0),
            init_ms: Some(80.5),
        };
        let text = "START RequestId: 1\nREPORT RequestId: 1\tDuration: 102.25 ms\tBilled Duration: 103 ms\tMemory Size: 128 MB\t\
                    Max Memory Used: 31 MB\tInit Duration: 80.50 ms\t\n";
        assert_eq!(Report::find(text), Some(report.clone()));
        let json = r#"cut off","x":1}
{"time":"2026-01-01T00:00:00Z","type":"platform.report","record":{"requestId":"1","status":"success","metrics":{"durationMs":102.25,"billedDurationMs":103,"memorySizeMB":128,"maxMemoryUsedMB":31,"initDurationMs":80.5}}}"#;
        assert_eq!(Report::find(json), Some(report));
        assert_eq!(Report::find("no report\n{\"type\":\"platform.start\"}"), None);
    }
}
