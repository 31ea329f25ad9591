//! The span of a traced invocation's wait for its lease.
//!
//! Lambda says in the invocation's trace header whether it is traced. Where it is, the wait is a span of `tracing`, with
//! the names that `tracing-opentelemetry` and its like go by: whoever exports spans finds it below the invocation's own.
//! Where it is not, there is none.
//! The header: <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>

use std::sync::Arc;

use lambda_runtime::Context;
use tracing::Span;
use tracing::field::Empty;

use super::core::{Core, millis};
use crate::error::Error;
use crate::keeper::client::Grant;

/// The wait's span; none where the invocation is not traced.
#[derive(Clone, Debug)]
pub(super) struct WaitSpan(Option<Arc<Span>>);

impl WaitSpan {
    pub(super) fn begin(core: &Core, context: &Context) -> Self {
        let Some(header) = context.xray_trace_id.as_deref().filter(|header| is_sampled(header)) else {
            return Self(None);
        };
        Self(Some(Arc::new(tracing::info_span!(
            target: "leasehold::layer",
            "lease wait",
            otel.kind = "client",
            otel.status_code = Empty,
            aws.xray.trace_id = part(header, "Root"),
            aws.xray.parent_id = part(header, "Parent"),
            db.system = "dynamodb",
            faas.invocation_id = %context.request_id,
            lease.template = core.name(),
            lease.table = %core.settings.table.name,
            lease.outcome = Empty,
            lease.waited_ms = Empty,
            lease.attempts = Empty,
        ))))
    }

    /// Does something within the span.
    pub(super) fn within<T>(&self, something: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(span) => span.in_scope(something),
            None => something(),
        }
    }

    /// The wait is over, and so is the span.
    pub(super) fn end(&mut self, answer: &Result<Grant, Error>) {
        let Some(span) = self.0.take() else { return };
        match answer {
            Ok(grant) => {
                span.record("lease.outcome", "granted");
                span.record("lease.waited_ms", millis(grant.waited));
                span.record("lease.attempts", grant.attempts);
            }
            Err(error) => {
                if let Error::LeaseBusy(busy) = error {
                    span.record("lease.waited_ms", millis(busy.waited));
                    span.record("lease.attempts", busy.attempts);
                }
                span.record("lease.outcome", error.error_type());
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// Whether this header says that the invocation is traced.
fn is_sampled(header: &str) -> bool {
    part(header, "Sampled") == Some("1")
}

/// A part of a header like `Root=1-…;Parent=…;Sampled=1`.
fn part<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = header.split(';').filter_map(|part| part.trim().split_once('='));
    parts.find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_header_is_read_by_its_parts() {
        let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a:0";
        assert!(is_sampled(header));
        assert_eq!(part(header, "Root"), Some("1-5759e988-bd862e3fe1be46a994272793"));
        assert_eq!(part(header, "Self"), None);
        for header in ["", "Sampled=0", "Root=1-5759e988-bd862e3fe1be46a994272793", "Sampled", "NotSampled=1"] {
            assert!(!is_sampled(header), "{header}");
        }
    }
}
