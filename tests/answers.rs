//! What each source of events is answered when there is no lease.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, Error, LambdaEvent};
use leasehold::layer::{AnswerFor, Answered};
use leasehold::testing::TestKeeper;
use leasehold::{InvocationError, LeaseLayer};
use serde_json::{Value, json};

const KEY: &str = "orders:17";

type Answer = Result<Answered<Value>, InvocationError<Error>>;

async fn handler(_: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(json!("handled"))
}

/// What a busy key, a deadline too close and a lost lease are answered with.
async fn answers(source: AnswerFor) -> [Answer; 3] {
    let keeper = TestKeeper::new();
    let layer = || LeaseLayer::builder("orders:{id}").reserve(Duration::from_secs(5)).test_keeper(&keeper);
    let mut service = layer().answer_for(source.clone()).build().unwrap().layer(service_fn(handler));
    let order = json!({ "id": 17 });
    assert_eq!(keeper.invoke(&mut service, &order).await.unwrap(), Answered::Handler(json!("handled")));

    keeper.hold_elsewhere_for(KEY, Duration::from_millis(12_500));
    let busy = keeper.invoke(&mut service, &order).await;
    keeper.free_elsewhere(KEY);

    let event = keeper.event_within(&order, Duration::from_secs(4));
    let too_close = service.call(event).await;

    let taker = keeper.clone();
    let loses = service_fn(move |_: LambdaEvent<Value>| {
        taker.lose(KEY);
        std::future::pending::<Result<Value, Error>>()
    });
    let mut service = layer().answer_for(source).build().unwrap().layer(loses);
    let lost = keeper.invoke(&mut service, &order).await;
    [busy, too_close, lost]
}

fn responses(answers: [Answer; 3]) -> [Value; 3] {
    answers.map(|answer| match answer {
        Ok(Answered::Layer(response)) => response,
        other => panic!("{other:?}"),
    })
}

fn errors(answers: [Answer; 3]) -> [Diagnostic; 3] {
    answers.map(|answer| answer.unwrap_err().into())
}

#[tokio::test]
async fn an_http_api_is_answered_with_statuses_and_when_to_try_again() {
    for source in [AnswerFor::api_gateway_v1(), AnswerFor::api_gateway_v2(), AnswerFor::function_url()] {
        let responses = responses(answers(source).await);
        assert_eq!(
            responses.each_ref().map(|response| response["statusCode"].clone()),
            [423, 503, 500].map(Value::from)
        );
        let retry_after = responses.each_ref().map(|response| response["headers"]["retry-after"].clone());
        // Two of the twelve and a half seconds were waited away.
        assert_eq!(retry_after, [json!("11"), json!("1"), Value::Null]);
        for response in &responses {
            assert_eq!(response["headers"]["content-type"], "application/problem+json");
            assert_eq!(response["isBase64Encoded"], false);
            let body: Value = serde_json::from_str(response["body"].as_str().unwrap()).unwrap();
            assert_eq!(body["status"], response["statusCode"]);
        }
    }
}

#[tokio::test]
async fn no_response_tells_a_stranger_what_is_locked_where_and_by_whom() {
    for source in [AnswerFor::api_gateway_v2(), AnswerFor::alb()] {
        for response in responses(answers(source).await) {
            let text = response.to_string();
            for secret in ["17", "orders", "elsewhere", "locks", "test-request"] {
                assert!(!text.replace("\"11\"", "").contains(secret), "{secret} in {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_load_balancer_gets_both_kinds_of_headers_and_a_description() {
    let [busy, ..] = responses(answers(AnswerFor::alb().busy_is_conflict()).await);
    assert_eq!(busy["statusCode"], 409);
    assert_eq!(busy["statusDescription"], "409 Conflict");
    assert_eq!(busy["headers"]["retry-after"], "11");
    assert_eq!(busy["multiValueHeaders"]["retry-after"], json!(["11"]));
}

#[tokio::test]
async fn a_state_machine_gets_names_to_retry_on_and_a_cause_to_read() {
    for source in [AnswerFor::step_functions(), AnswerFor::direct().busy_is_conflict()] {
        let refused = answers(source).await;
        // Whoever matches on refusals finds those with a cause among them.
        assert!(matches!(
            &refused[0],
            Err(InvocationError::Lease { error: leasehold::Error::LeaseBusy(_), cause: Some(_), .. })
        ));
        let [busy, too_close, lost] = errors(refused);
        let cause = |error: &Diagnostic| serde_json::from_str::<Value>(&error.error_message).unwrap();
        assert_eq!(busy.error_type, "LeaseBusy");
        let mut told = cause(&busy);
        assert!(told["message"].as_str().unwrap().contains("orders:17"));
        told["message"].take();
        assert_eq!(
            told,
            json!({
                "message": null, "key": KEY, "waitedMs": 2_000, "attempts": 1, "retryAfterMs": 10_500,
                "holder": {
                    "function": "elsewhere", "version": "", "requestId": "", "template": "", "acquiredAt": null, "parked": false,
                },
            })
        );
        assert_eq!(too_close.error_type, "DeadlineTooClose");
        assert_eq!(cause(&too_close)["remainingMs"], 4_000);
        assert_eq!(lost.error_type, "LeaseLost");
        assert_eq!(cause(&lost)["reason"], "the row now belongs to another owner");
    }
}

/// What is answered where `end_before_deadline` ends the handler.
async fn ended(source: AnswerFor) -> Answer {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("orders:{id}").reserve(Duration::from_millis(900));
    let layer = layer.end_before_deadline(Duration::from_millis(800)).answer_for(source).test_keeper(&keeper);
    let hangs = |_: LambdaEvent<Value>| std::future::pending::<Result<Value, Error>>();
    let mut service = layer.build().unwrap().layer(service_fn(hangs));
    let answer = service.call(keeper.event_within(json!({ "id": 17 }), Duration::from_secs(1))).await;
    assert!(!keeper.is_held(KEY));
    answer
}

#[tokio::test]
async fn a_handler_that_was_ended_is_no_success_anywhere() {
    for source in [AnswerFor::api_gateway_v1(), AnswerFor::api_gateway_v2(), AnswerFor::alb()] {
        let Ok(Answered::Layer(response)) = ended(source).await else { panic!() };
        assert_eq!(response["statusCode"], 504);
        // It may have been carried out in part: nobody is told to send it again.
        assert_eq!(response["headers"]["retry-after"], Value::Null);
    }
    let told = Diagnostic::from(ended(AnswerFor::step_functions()).await.unwrap_err());
    let cause: Value = serde_json::from_str(&told.error_message).unwrap();
    assert_eq!((told.error_type.as_str(), &cause["marginMs"]), ("OutOfTime", &json!(800)));
    let whole_batch = AnswerFor::whole_batch(leasehold::layer::batch::ReportBatchItemFailures);
    for source in [AnswerFor::schedule(), whole_batch] {
        assert_eq!(Diagnostic::from(ended(source).await.unwrap_err()).error_type, "OutOfTime");
    }
}

#[tokio::test]
async fn a_scheduled_job_is_skipped_only_where_another_one_runs() {
    let [busy, too_close, lost] = answers(AnswerFor::schedule()).await;
    let Ok(Answered::Layer(skipped)) = busy else { panic!("{busy:?}") };
    assert_eq!(skipped["skipped"], true);
    assert_eq!(skipped["reason"], "someone else is running");
    assert_eq!(skipped["cause"]["holder"]["function"], "elsewhere");
    assert_eq!(Diagnostic::from(too_close.unwrap_err()).error_type, "DeadlineTooClose");
    assert_eq!(Diagnostic::from(lost.unwrap_err()).error_type, "LeaseLost");
}

#[tokio::test]
async fn what_is_the_operators_to_mend_stays_an_error_everywhere() {
    let keeper = TestKeeper::new();
    keeper.fail(leasehold::session::FailKind::AccessDenied);
    for source in [AnswerFor::api_gateway_v2(), AnswerFor::schedule(), AnswerFor::step_functions()] {
        let layer = LeaseLayer::builder("orders:{id}").answer_for(source).test_keeper(&keeper).build().unwrap();
        let answer = keeper.invoke(&mut layer.layer(service_fn(handler)), json!({ "id": 17 })).await;
        assert_eq!(Diagnostic::from(answer.unwrap_err()).error_type, "AccessDenied");
    }
}

#[tokio::test]
async fn a_closure_says_the_rest_in_the_handlers_own_type() {
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("orders:{id}")
        .on_refusal(|error| matches!(error, leasehold::Error::KeyNotFound(_)).then(|| json!("an order needs an id")))
        .test_keeper(&keeper)
        .build()
        .unwrap();
    let mut service = layer.layer(service_fn(handler));
    assert_eq!(keeper.invoke(&mut service, json!({})).await.unwrap(), "an order needs an id");
    keeper.hold_elsewhere(KEY);
    let busy = keeper.invoke(&mut service, json!({ "id": 17 })).await;
    assert_eq!(Diagnostic::from(busy.unwrap_err()).error_type, "LeaseBusy");
}

#[tokio::test]
async fn the_handlers_own_errors_pass_through_every_source() {
    let keeper = TestKeeper::new();
    let fails = |_: LambdaEvent<Value>| async { Err::<Value, Error>("out of stock".into()) };
    let layer = LeaseLayer::builder("orders:{id}")
        .answer_for(AnswerFor::api_gateway_v2())
        .test_keeper(&keeper)
        .build()
        .unwrap();
    let answer = keeper.invoke(&mut layer.layer(service_fn(fails)), json!({ "id": 17 })).await;
    assert_eq!(Diagnostic::from(answer.unwrap_err()).error_message, "out of stock");
}
