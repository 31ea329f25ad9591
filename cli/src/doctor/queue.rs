//! An SQS queue: how long a message stays hidden, and how often it may come back.

use std::time::Duration;

use aws_sdk_lambda::types::EventSourceMappingConfiguration as Mapping;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use serde_json::Value;

use crate::finding::Finding;
use crate::refused::Refused;
use crate::text::span;

/// What AWS asks for: the visibility timeout at least six times the function's, and at least five receives.
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>
const TIMES: u32 = 6;
const RECEIVES: u64 = 5;

pub(super) async fn check(sqs: &Client, check: &str, arn: &str, mapping: &Mapping, timeout: Duration) -> Vec<Finding> {
    let attributes = match attributes(sqs, arn).await {
        Ok(attributes) => attributes,
        Err(refused) => return vec![Finding::unknown(check, refused.told)],
    };
    let window = mapping.maximum_batching_window_in_seconds().and_then(|seconds| u64::try_from(seconds).ok());
    let window = Duration::from_secs(window.unwrap_or(0));
    vec![visibility(check, attributes.visibility, timeout, window), redrive(check, attributes.receives)]
}

struct Attributes {
    visibility: Option<Duration>,
    /// How often a message may be received before it goes to the dead-letter queue.
    receives: Option<u64>,
}

async fn attributes(sqs: &Client, arn: &str) -> Result<Attributes, Refused> {
    let mut parts = arn.split(':').skip(4);
    let (account, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let url = sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(account).send().await;
    let url = url.map_err(|error| Refused::of("GetQueueUrl", &error))?;
    let answer = sqs
        .get_queue_attributes()
        .set_queue_url(url.queue_url)
        .attribute_names(QueueAttributeName::VisibilityTimeout)
        .attribute_names(QueueAttributeName::RedrivePolicy)
        .send()
        .await;
    let answer = answer.map_err(|error| Refused::of("GetQueueAttributes", &error))?;
    let attribute = |name: &QueueAttributeName| answer.attributes().and_then(|all| all.get(name));
    let visibility = attribute(&QueueAttributeName::VisibilityTimeout).and_then(|text| text.parse().ok());
    let policy = attribute(&QueueAttributeName::RedrivePolicy);
    let policy: Option<Value> = policy.and_then(|text| serde_json::from_str(text).ok());
    // SQS writes it as a number or, where it was set so, as a string.
    let receives = policy.as_ref().map(|policy| &policy["maxReceiveCount"]);
    let receives = receives.and_then(|count| count.as_u64().or_else(|| count.as_str()?.parse().ok()));
    Ok(Attributes { visibility: visibility.map(Duration::from_secs), receives })
}

fn visibility(check: &str, visibility: Option<Duration>, timeout: Duration, window: Duration) -> Finding {
    let Some(visibility) = visibility else {
        return Finding::unknown(check, "SQS does not tell its visibility timeout");
    };
    let wanted = timeout * TIMES + window;
    let told = format!("its visibility timeout is {}, the function's timeout {}", span(visibility), span(timeout));
    if visibility < timeout {
        return Finding::problem(
            check,
            told,
            "a message comes again while the first delivery still works or waits: raise it",
        );
    }
    if visibility < wanted {
        let advice =
            format!("AWS asks for six times the function's timeout and the batching window: {} or more", span(wanted));
        return Finding::warning(check, told, advice);
    }
    Finding::ok(check, told)
}

fn redrive(check: &str, receives: Option<u64>) -> Finding {
    match receives {
        None => Finding::warning(
            check,
            "it has no dead-letter queue",
            "a message that fails for ever comes back until it expires: add a RedrivePolicy",
        ),
        Some(receives) if receives < RECEIVES => Finding::warning(
            check,
            format!("a message may be received {receives} times"),
            "each time that its key is busy counts as one: allow 5 or more, or see `when_busy`",
        ),
        Some(receives) => Finding::ok(check, format!("a message may be received {receives} times, and is then kept")),
    }
}
