//! Event source mappings: whether a queue or a stream brings back what was busy, and does not lose it.

use std::time::Duration;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::types::{EventSourceMappingConfiguration as Mapping, FunctionResponseType};

use super::queue;
use crate::finding::Finding;
use crate::refused::Refused;
use crate::text::{safe, span};

pub(super) async fn check(
    lambda: &Client,
    sqs: &aws_sdk_sqs::Client,
    function: &str,
    timeout: Duration,
    whole_batch: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut pages = lambda.list_event_source_mappings().function_name(function).into_paginator().send();
    let mut any = false;
    while let Some(page) = pages.next().await {
        let page = match page.map_err(|error| Refused::of("ListEventSourceMappings", &error)) {
            Ok(page) => page,
            Err(refused) => {
                findings.push(Finding::unknown("sources", refused.told));
                return findings;
            }
        };
        for mapping in page.event_source_mappings() {
            any = true;
            one(sqs, mapping, timeout, whole_batch, &mut findings).await;
        }
    }
    if !any {
        findings.push(Finding::ok("sources", "no queue or stream is mapped to it"));
    }
    findings
}

async fn one(
    sqs: &aws_sdk_sqs::Client,
    mapping: &Mapping,
    timeout: Duration,
    whole_batch: bool,
    findings: &mut Vec<Finding>,
) {
    let arn = mapping.event_source_arn().unwrap_or_default();
    let (service, name) = (arn.split(':').nth(2).unwrap_or_default(), short(arn));
    let check = format!("{} {}", kind(service), safe(name));
    if !matches!(mapping.state(), Some("Enabled" | "Enabling" | "Creating" | "Updating")) {
        let state = mapping.state().unwrap_or("unknown").to_owned();
        findings.push(Finding::warning(&check, format!("its mapping is {state}"), "no events come from it"));
    }
    match service {
        "sqs" | "kinesis" | "dynamodb" => findings.push(reported(&check, mapping, whole_batch)),
        _ => {
            let told = "not checked: `per_record` serves SQS, Kinesis and DynamoDB Streams";
            findings.push(Finding::unknown(&check, told));
        }
    }
    match service {
        "sqs" => findings.extend(queue::check(sqs, &check, arn, mapping, timeout).await),
        "kinesis" | "dynamodb" => findings.push(stream(&check, mapping)),
        _ => {}
    }
}

/// Without it a response is not read: what `per_record` reports as failed or busy counts as done.
fn reported(check: &str, mapping: &Mapping, whole_batch: bool) -> Finding {
    let reports = mapping.function_response_types().contains(&FunctionResponseType::ReportBatchItemFailures);
    match (reports, whole_batch) {
        (true, false) => {
            Finding::ok(check, "ReportBatchItemFailures is set: what was busy comes back, and nothing else")
        }
        (true, true) => Finding::warning(
            check,
            "ReportBatchItemFailures is set",
            "a handler that fails the whole batch does not need it, and a response of another shape is taken for a failure",
        ),
        (false, true) => Finding::ok(check, "the whole batch comes back when it fails, as its one lock asks for"),
        (false, false) => Finding::problem(
            check,
            "ReportBatchItemFailures is not set",
            "with `per_record` what was busy or failed is deleted as if it were done: set FunctionResponseTypes to \
             [ReportBatchItemFailures]; or, with one lock for the whole batch, say --whole-batch",
        ),
    }
}

/// A record that fails for ever blocks its shard; one that may not come back is lost with the first busy key.
fn stream(check: &str, mapping: &Mapping) -> Finding {
    let destination = mapping.destination_config().and_then(|of| of.on_failure()).and_then(|of| of.destination());
    let kept = destination.is_some_and(|arn| !arn.is_empty());
    let age = mapping.maximum_record_age_in_seconds().filter(|seconds| *seconds >= 0);
    let age = age.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    match (mapping.maximum_retry_attempts().unwrap_or(-1), age) {
        (0, _) => Finding::problem(
            check,
            "its records are not tried again",
            "the first busy key loses its record: raise MaximumRetryAttempts",
        ),
        (retries, _) if retries > 0 && !kept => Finding::warning(
            check,
            format!("its records are tried again {retries} times, and then dropped"),
            "a busy key costs a try each time: add an on-failure destination, or raise MaximumRetryAttempts",
        ),
        (retries, _) if retries > 0 => {
            Finding::ok(check, format!("its records are tried again {retries} times, and then kept for you"))
        }
        (_, Some(age)) if !kept => Finding::warning(
            check,
            format!("its records are tried again until they are {} old, and then dropped", span(age)),
            "add an on-failure destination",
        ),
        (_, Some(age)) => Finding::ok(
            check,
            format!("its records are tried again until they are {} old, and then kept for you", span(age)),
        ),
        (_, None) => Finding::warning(
            check,
            "its records are tried again until they expire",
            "one that fails for ever blocks its shard: set MaximumRetryAttempts or MaximumRecordAgeInSeconds, and an on-failure \
             destination",
        ),
    }
}

fn kind(service: &str) -> &str {
    match service {
        "sqs" => "queue",
        "kinesis" | "dynamodb" => "stream",
        "" => "source",
        other => other,
    }
}

/// A queue's, a stream's or a table's name in its ARN.
fn short(arn: &str) -> &str {
    let resource = arn.splitn(6, ':').nth(5).unwrap_or(arn);
    resource.split('/').nth(1).unwrap_or(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_go_by_their_names() {
        for (arn, name) in [
            ("arn:aws:sqs:eu-central-1:123456789012:orders", "orders"),
            ("arn:aws:kinesis:eu-central-1:123456789012:stream/clicks", "clicks"),
            ("arn:aws:dynamodb:eu-central-1:123456789012:table/orders/stream/2026-01-01T00:00:00.000", "orders"),
            ("", ""),
        ] {
            assert_eq!(short(arn), name);
        }
    }
}
