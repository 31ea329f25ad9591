//! Handlers of all kinds fit: ones that borrow, ones that are not ready at once, ones for many invocations at a time.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll};

use aws_lambda_events::event::kinesis::{KinesisEvent, KinesisEventRecord};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use lambda_runtime::tower::{Layer as _, Service, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::LeaseLayer;
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use serde_json::{Value, json};

use crate::stage::{asked, batch, message, per_message, reported, settings};

fn two() -> Value {
    batch(["1", "2"].map(|id| message(id, &json!({ "id": id }))))
}

#[tokio::test]
async fn a_handler_may_borrow_and_need_not_be_send() {
    let keeper = TestKeeper::new();
    let seen = Rc::new(Cell::new(0));
    let borrowed = &seen;
    let handler = service_fn(async |_: LambdaEvent<Value>| {
        borrowed.set(borrowed.get() + 1);
        Ok::<_, Error>("whatever it returns")
    });
    let mut service = per_message(&keeper).build().unwrap().layer(handler);
    assert_eq!(reported(keeper.invoke(&mut service, two()).await.unwrap()), [""; 0]);
    assert_eq!(seen.get(), 2);
}

#[tokio::test]
async fn what_is_send_stays_send_for_many_invocations_at_a_time() {
    fn many_at_a_time<S>(service: S) -> S
    where
        S: Service<LambdaEvent<Box<serde_json::value::RawValue>>, Future: Send + 'static> + Clone + Send + 'static,
    {
        service
    }
    let keeper = TestKeeper::new();
    let handler = service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>(()));
    let mut service = many_at_a_time(per_message(&keeper).build().unwrap().layer(handler));
    assert_eq!(reported(keeper.invoke(&mut service, two()).await.unwrap()), [""; 0]);
}

/// Ready only when it is asked for the second time.
#[derive(Clone)]
struct Slow {
    asked: u32,
}

impl Service<LambdaEvent<Value>> for Slow {
    type Response = ();
    type Error = String;
    type Future = std::future::Ready<Result<(), String>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        self.asked += 1;
        if self.asked == 1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Value>) -> Self::Future {
        assert_eq!(self.asked, 2, "called without having been ready");
        std::future::ready(if event.payload["messageId"] == "2" { Err("no".to_owned()) } else { Ok(()) })
    }
}

#[tokio::test]
async fn each_record_has_a_clone_of_the_handler_that_is_ready_when_it_is_called() {
    let keeper = TestKeeper::new();
    let mut service = per_message(&keeper).build().unwrap().layer(Slow { asked: 0 });
    assert_eq!(reported(keeper.invoke(&mut service, two()).await.unwrap()), ["2"]);
}

/// A worker of whole events under a layer of records: the error says which of the two it has to become.
#[tokio::test]
async fn a_handler_of_whole_events_is_told_that_it_gets_single_records() {
    let keeper = TestKeeper::new();
    let handler = service_fn(async |_: LambdaEvent<SqsEvent>| Ok::<_, Error>(()));
    let layer = LeaseLayer::builder("{body.id}").test_keeper(&keeper).per_record(ReportBatchItemFailures);
    let refused = keeper.invoke(&mut layer.build().unwrap().layer(handler), two()).await.unwrap_err();
    assert_eq!(refused.error_type(), "NoUsableRecord");
    let said = refused.to_string();
    assert!(said.contains("under `per_record` neither sees the whole event") && said.contains("`Records`"), "{said}");
}

/// Such a worker, each message handed to it as a batch of one; what it reports of it counts.
#[tokio::test]
async fn a_worker_of_whole_events_can_be_handed_batches_of_one() {
    let keeper = TestKeeper::new();
    let worker = async |batch: SqsEvent| {
        let mut response = SqsBatchResponse::default();
        for message in batch.records.iter().filter(|message| message.message_id.as_deref() == Some("2")) {
            response.add_failure(message.message_id.clone().unwrap());
        }
        response
    };
    let one = service_fn(async |message: LambdaEvent<SqsMessage>| {
        let mut batch = SqsEvent::default();
        batch.records = vec![message.payload];
        let failed = worker(batch).await.batch_item_failures;
        if failed.is_empty() { Ok(()) } else { Err("the worker reports this message") }
    });
    let layer = LeaseLayer::builder("{body.id}").test_keeper(&keeper).per_record(ReportBatchItemFailures);
    let response = keeper.invoke(&mut layer.build().unwrap().layer(one), two()).await.unwrap();
    assert_eq!(reported(response), ["2"]);
}

/// `aws_lambda_events` writes `null` for what a test's event does not set.
#[tokio::test]
async fn events_that_a_test_makes_of_their_types_are_batches() {
    let mut message = SqsMessage::default();
    message.message_id = Some("1".to_owned());
    message.event_source = Some("aws:sqs".to_owned());
    message.body = Some(json!({ "id": "a" }).to_string());
    let mut messages = SqsEvent::default();
    messages.records = vec![message];

    let mut record = KinesisEventRecord::default();
    record.event_source = Some("aws:kinesis".to_owned());
    record.kinesis.sequence_number = "1".to_owned();
    record.kinesis.partition_key = "a".to_owned();
    let mut records = KinesisEvent::default();
    records.records = vec![record];

    for (template, event) in [("{body.id}", json!(messages)), ("{kinesis.partitionKey}", json!(records))] {
        assert!(event["Records"][0].as_object().unwrap().values().any(Value::is_null), "{event}");
        let keeper = TestKeeper::new();
        let layer = settings(template, &keeper).per_record(ReportBatchItemFailures).build().unwrap();
        let mut service = layer.layer(service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>(())));
        assert_eq!(reported(keeper.invoke(&mut service, event).await.unwrap()), [""; 0]);
        assert_eq!(asked(&keeper, "a"), 1);
    }
}
