//! The scenes, in the order in which they are told.

mod ends;
mod refusals;
mod sharing;

use std::time::Duration;

use super::Scene;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn all() -> Vec<Scene> {
    vec![
        Scene {
            name: "one-key",
            title: "Two invocations on one key run one after the other",
            event: "eventbridge-order.json",
            long: false,
            settings: &[("SAMPLE_KEY", "orders:{detail.orderId}"), ("LEASEHOLD_MAX_WAIT", "10s")],
            timeout: MINUTE,
            play: |stage| Box::pin(sharing::one_key(stage)),
        },
        Scene {
            name: "two-keys",
            title: "Two keys run side by side",
            event: "s3-upload.json",
            long: false,
            settings: &[
                ("SAMPLE_KEY", "invoices:{Records[0].s3.bucket.name}:{Records[0].s3.object.key}"),
                ("SAMPLE_WORK", r#"{"sleep_ms": 1500}"#),
            ],
            timeout: MINUTE,
            play: |stage| Box::pin(sharing::two_keys(stage)),
        },
        Scene {
            name: "spin",
            title: "A handler that spins for three leases without yielding keeps its lock while a second one waits",
            event: "scheduled-report.json",
            long: false,
            settings: &[
                ("SAMPLE_KEY", "reports:{resources[0]}"),
                ("LEASEHOLD_LEASE_DURATION", "1s"),
                ("LEASEHOLD_MAX_WAIT", "20s"),
            ],
            timeout: MINUTE,
            play: |stage| Box::pin(sharing::spin(stage)),
        },
        Scene {
            name: "abort",
            title: "A handler that aborts frees its lock (lease 60 s)",
            event: "eventbridge-order.json",
            long: false,
            settings: &[("LEASEHOLD_LEASE_DURATION", "60s"), ("LEASEHOLD_MAX_WAIT", "60s")],
            timeout: MINUTE,
            play: |stage| Box::pin(ends::abort(stage)),
        },
        Scene {
            name: "kill",
            title: "A handler that is killed frees its lock (lease 60 s)",
            event: "sqs-order.json",
            long: false,
            settings: &[
                ("SAMPLE_KEY", "orders:{Records[0].attributes.MessageGroupId}"),
                ("LEASEHOLD_LEASE_DURATION", "60s"),
                ("LEASEHOLD_MAX_WAIT", "60s"),
            ],
            timeout: MINUTE,
            play: |stage| Box::pin(ends::kill(stage)),
        },
        Scene {
            name: "vanish",
            title: "An environment that vanishes whole is recovered from by a fresh one (lease 2 s)",
            event: "eventbridge-order.json",
            long: false,
            settings: &[("LEASEHOLD_LEASE_DURATION", "2s"), ("LEASEHOLD_MAX_WAIT", "30s")],
            timeout: MINUTE,
            play: |stage| Box::pin(ends::vanish(stage)),
        },
        Scene {
            name: "too-late",
            title: "A contender whose time is too short gets its typed error, and no request is sent",
            event: "apigateway-v2-order.json",
            long: false,
            settings: &[("SAMPLE_KEY", "orders:{pathParameters.orderId}")],
            timeout: MINUTE,
            play: |stage| Box::pin(refusals::too_late(stage)),
        },
        Scene {
            name: "busy",
            title: "A contender that has waited long enough gets LeaseBusy, which names the holder",
            event: "apigateway-v2-order.json",
            long: false,
            settings: &[("SAMPLE_KEY", "orders:{pathParameters.orderId}"), ("LEASEHOLD_MAX_WAIT", "500ms")],
            timeout: MINUTE,
            play: |stage| Box::pin(refusals::busy(stage)),
        },
        Scene {
            name: "timeout",
            title: "A handler that times out frees its lock (lease 60 s, timeout 60 s: it is started first and told last)",
            event: "eventbridge-order.json",
            long: true,
            settings: &[("LEASEHOLD_LEASE_DURATION", "60s"), ("LEASEHOLD_MAX_WAIT", "60s")],
            timeout: MINUTE,
            play: |stage| Box::pin(ends::timeout(stage)),
        },
    ]
}
