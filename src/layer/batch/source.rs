//! What each source's records look like, as far as it matters here: who they are, and which order they stand in.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::NotABatch;
use crate::key::names;

/// Where a batch comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    SqsStandard,
    SqsFifo,
    /// Kinesis or DynamoDB Streams: all that a batch holds is of one shard.
    Stream,
}

/// A record of a batch, before its handler's type is looked at.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) json: &'a RawValue,
    /// What Lambda calls it.
    pub(super) id: String,
    /// The message group, or what all records of a shard share.
    pub(super) line: Option<String>,
    /// What it takes to make it visible again, for a message.
    pub(super) message: Option<Message>,
}

/// A message of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) queue_arn: String,
    pub(super) receipt_handle: String,
    pub(super) receive_count: u32,
}

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow, rename = "Records")]
    records: Vec<&'a RawValue>,
}

/// `null` is as good as nothing: `aws_lambda_events` writes it for whatever an event of a test does not set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    event_source: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
    message_id: Option<String>,
    receipt_handle: Option<String>,
    attributes: Option<Attributes>,
    kinesis: Option<Kinesis>,
    dynamodb: Option<DynamoDb>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    message_group_id: Option<String>,
    approximate_receive_count: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kinesis {
    sequence_number: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DynamoDb {
    sequence_number: Option<String>,
}

/// Reads what an event has for records.
///
/// # Errors
///
/// When it is no batch of one of the sources, or holds a record that could not be reported.
pub(super) fn records(event: &RawValue) -> Result<(Source, Vec<Record<'_>>), NotABatch> {
    let batch: Batch<'_> = serde_json::from_str(event.get()).map_err(|error| match names(event.get(), &[], None) {
        Some(names) => not_a_batch(format!("{error}; what it has is {names}")),
        None => not_a_batch(error),
    })?;
    let mut source = Source::SqsStandard;
    let mut records = Vec::with_capacity(batch.records.len());
    for (index, json) in batch.records.into_iter().enumerate() {
        let (its_source, record) =
            record(json).map_err(|reason| not_a_batch(format!("`Records[{index}]`: {reason}")))?;
        if index > 0 && its_source != source {
            return Err(not_a_batch("its records come from different sources"));
        }
        source = its_source;
        records.push(record);
    }
    Ok((source, records))
}

fn record(json: &RawValue) -> Result<(Source, Record<'_>), String> {
    let known: Known = serde_json::from_str(json.get()).map_err(|error| error.to_string())?;
    let Some(event_source) = known.event_source else { return Err("it has no `eventSource`".to_owned()) };
    let queue_arn = known.event_source_arn.unwrap_or_default();
    let attributes = known.attributes.unwrap_or_default();
    let (source, id) = match event_source.as_str() {
        // A standard queue's messages may have a group as well, for fairness: only the queue's name tells.
        "aws:sqs" if queue_arn.ends_with(".fifo") => (Source::SqsFifo, known.message_id),
        "aws:sqs" => (Source::SqsStandard, known.message_id),
        "aws:kinesis" => (Source::Stream, known.kinesis.and_then(|kinesis| kinesis.sequence_number)),
        "aws:dynamodb" => (Source::Stream, known.dynamodb.and_then(|dynamodb| dynamodb.sequence_number)),
        other => return Err(format!("its `eventSource` is {other:?}")),
    };
    // Without an id Lambda would take the whole batch for failed, or for done.
    let id = id.filter(|id| !id.is_empty()).ok_or("it has no message id or sequence number")?;
    let line = match source {
        Source::SqsStandard => None,
        Source::SqsFifo => Some(attributes.message_group_id.unwrap_or_default()),
        Source::Stream => Some(String::new()),
    };
    let receive_count = attributes.approximate_receive_count.and_then(|count| count.parse().ok());
    let message = (source != Source::Stream).then(|| Message {
        queue_arn,
        receipt_handle: known.receipt_handle.unwrap_or_default(),
        receive_count: receive_count.unwrap_or(1),
    });
    Ok((source, Record { json, id, line, message }))
}

fn not_a_batch(reason: impl Display) -> NotABatch {
    NotABatch { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    type IdAndLine = (String, Option<String>);

    fn read(event: &Value) -> Result<(Source, Vec<IdAndLine>), String> {
        let event = to_raw_value(event).unwrap();
        let (source, records) = records(&event).map_err(|error| error.reason)?;
        Ok((source, records.into_iter().map(|record| (record.id, record.line)).collect()))
    }

    fn message(queue: &str, id: &str) -> Value {
        let arn = format!("arn:aws:sqs:eu-central-1:123456789012:{queue}");
        let attributes = json!({ "ApproximateReceiveCount": "3", "MessageGroupId": "g" });
        json!({
            "messageId": id, "receiptHandle": "r", "body": "", "attributes": attributes, "eventSource": "aws:sqs",
            "eventSourceARN": arn,
        })
    }

    #[test]
    fn a_queue_with_groups_is_in_order_only_if_it_is_fifo() {
        let event = json!({ "Records": [message("orders", "1"), message("orders", "2")] });
        let ids = |line: Option<&str>| vec![("1".into(), line.map(String::from)), ("2".into(), line.map(String::from))];
        assert_eq!(read(&event), Ok((Source::SqsStandard, ids(None))));
        let event = json!({ "Records": [message("orders.fifo", "1"), message("orders.fifo", "2")] });
        assert_eq!(read(&event), Ok((Source::SqsFifo, ids(Some("g")))));
    }

    #[test]
    fn a_shards_records_are_one_line_under_their_sequence_numbers() {
        let kinesis = |n| json!({ "eventSource": "aws:kinesis", "kinesis": { "sequenceNumber": n, "data": "" } });
        let dynamodb = |n| json!({ "eventSource": "aws:dynamodb", "dynamodb": { "SequenceNumber": n, "Keys": {} } });
        let line = || Some(String::new());
        let expected = Ok((Source::Stream, vec![("495".into(), line()), ("496".into(), line())]));
        assert_eq!(read(&json!({ "Records": [kinesis("495"), kinesis("496")] })), expected);
        assert_eq!(read(&json!({ "Records": [dynamodb("495"), dynamodb("496")] })), expected);
    }

    #[test]
    fn what_could_not_be_reported_is_no_batch() {
        for (event, said) in [
            (json!({ "detail": {} }), "missing field `Records`"),
            (json!({ "Records": [{ "eventSource": "aws:s3" }] }), "`Records[0]`: its `eventSource` is \"aws:s3\""),
            (json!({ "Records": [message("q", "1"), message("q", "")] }), "`Records[1]`: it has no message id"),
            (json!({ "Records": [message("q", "1"), message("q.fifo", "2")] }), "from different sources"),
            (json!({ "Records": [{ "eventSource": "aws:kinesis" }] }), "no message id or sequence number"),
            (
                json!({ "Records": [{ "eventSource": "aws:dynamodb", "dynamodb": { "SequenceNumber": null } }] }),
                "no message id",
            ),
            (json!({ "Records": [{ "eventSource": null }] }), "no `eventSource`"),
        ] {
            let reason = read(&event).unwrap_err();
            assert!(reason.contains(said), "{reason}");
        }
        assert_eq!(read(&json!({ "Records": [] })), Ok((Source::SqsStandard, Vec::new())));
    }
}
