//! Making busy messages visible again at the right moment.

use std::fmt;
use std::future::{Future, Ready};
use std::time::Duration;

use super::source::Message;
use crate::layer::sealed::Sealed;

/// The longest visibility timeout that SQS takes.
const LONGEST: Duration = Duration::from_secs(12 * 60 * 60);

/// A message whose key somebody else holds, or that has to wait in its message group behind such a one.
///
/// It is handed to the closure of [`change_visibility`](super::BatchLayerBuilder::change_visibility).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusyMessage {
    /// The queue, as `ChangeMessageVisibility` names it: `https://sqs.region.amazonaws.com/account/name`, made from the ARN in
    /// the event, with the domain of the ARN's partition.
    ///
    /// It only *names* the queue. Where the request goes is the client's endpoint, which its region or
    /// `AWS_ENDPOINT_URL_SQS` decides: a VPC endpoint and an emulator are set there, and read account and name out of this URL's
    /// path. Where a queue has another URL still, make it from [`queue_arn`](Self::queue_arn), or ask `GetQueueUrl` once.
    ///
    /// Empty when the ARN is none: SQS refuses such a request, and the message is left to its queue.
    pub queue_url: String,
    /// The queue's ARN, as the event has it.
    pub queue_arn: String,
    /// What `ChangeMessageVisibility` knows the message by.
    pub receipt_handle: String,
    /// The message's id.
    pub message_id: String,
    /// How often it was received by now, this time included: the queue's `maxReceiveCount` bounds it.
    pub receive_count: u32,
    /// When the holder's lease can end, from now.
    pub retry_after: Duration,
}

impl BusyMessage {
    pub(super) fn new(message: Message, message_id: String, retry_after: Duration) -> Self {
        let Message { queue_arn, receipt_handle, receive_count } = message;
        let queue_url = queue_url(&queue_arn);
        Self { queue_url, queue_arn, receipt_handle, message_id, receive_count, retry_after }
    }

    /// [`retry_after`](Self::retry_after) as SQS wants it: in whole seconds, rounded up, from 1 to 43,200.
    #[must_use]
    pub fn visibility_timeout(&self) -> i32 {
        let at_most = self.retry_after.min(LONGEST);
        let seconds = at_most.as_secs() + u64::from(at_most.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX).max(1)
    }
}

/// `arn:aws:sqs:region:account:name` as a URL.
fn queue_url(arn: &str) -> String {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", partition, "sqs", region, account, name] = parts.as_slice() else { return String::new() };
    format!("https://sqs.{region}.{}/{account}/{name}", domain(partition))
}

/// Where a partition's services are found; as the AWS SDK's own list of partitions has it.
fn domain(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "amazonaws.com.cn",
        "aws-eusc" => "amazonaws.eu",
        "aws-iso" => "c2s.ic.gov",
        "aws-iso-b" => "sc2s.sgov.gov",
        "aws-iso-e" => "cloud.adc-e.uk",
        "aws-iso-f" => "csp.hci.ic.gov",
        _ => "amazonaws.com",
    }
}

/// Decides when busy messages are visible again.
///
/// [`change_visibility`](super::BatchLayerBuilder::change_visibility) chooses. The trait is sealed: write it in bounds,
/// to be generic over layers.
pub trait Visibility: Sealed {
    /// Why it did not work.
    type Error: fmt::Debug;
    /// The request.
    type Change: Future<Output = Result<(), Self::Error>>;

    /// Begins to make the message visible when its key may be free; `None` to leave it to the queue.
    #[doc(hidden)]
    fn change(&self, message: BusyMessage) -> Option<Self::Change>;
}

/// Busy messages come back when the queue's visibility timeout is over.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaveToQueue;

impl Sealed for LeaveToQueue {}

impl Visibility for LeaveToQueue {
    type Error = std::convert::Infallible;
    type Change = Ready<Result<(), Self::Error>>;

    fn change(&self, _: BusyMessage) -> Option<Self::Change> {
        None
    }
}

/// A closure makes busy messages visible; see [`change_visibility`](super::BatchLayerBuilder::change_visibility).
pub struct ChangeVisibility<F>(pub(super) F);

impl<F> Sealed for ChangeVisibility<F> {}

impl<F, C, E> Visibility for ChangeVisibility<F>
where
    F: Fn(BusyMessage) -> C,
    C: Future<Output = Result<(), E>>,
    E: fmt::Debug,
{
    type Error = E;
    type Change = C;

    fn change(&self, message: BusyMessage) -> Option<C> {
        Some((self.0)(message))
    }
}

impl<F> fmt::Debug for ChangeVisibility<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeVisibility").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queues_arn_is_its_url() {
        let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo";
        assert_eq!(queue_url("arn:aws:sqs:eu-central-1:123456789012:orders.fifo"), url);
        let url = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders";
        assert_eq!(queue_url("arn:aws-cn:sqs:cn-north-1:123456789012:orders"), url);
        let url = "https://sqs.eusc-de-east-1.amazonaws.eu/123456789012/orders";
        assert_eq!(queue_url("arn:aws-eusc:sqs:eusc-de-east-1:123456789012:orders"), url);
        let url = "https://sqs.us-gov-west-1.amazonaws.com/123456789012/orders";
        assert_eq!(queue_url("arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders"), url);
        for nonsense in ["nonsense", "", "arn:aws:kinesis:eu-central-1:123456789012:stream/orders"] {
            assert_eq!(queue_url(nonsense), "");
        }
    }

    #[test]
    fn a_visibility_timeout_is_in_whole_seconds_and_never_too_early() {
        let timeout = |retry_after| {
            let message = Message { queue_arn: String::new(), receipt_handle: String::new(), receive_count: 1 };
            BusyMessage::new(message, String::new(), Duration::from_millis(retry_after)).visibility_timeout()
        };
        assert_eq!([0, 1, 1_000, 1_001, 100_000_000].map(timeout), [1, 1, 1, 2, 43_200]);
    }
}
