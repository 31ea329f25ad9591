//! Initialization, a good invocation, freeze and thaw.

use leasehold_sandbox::{EventKind, Invocation, InvokeOrder, Process};

use crate::*;

#[tokio::test]
async fn extensions_register_before_the_runtime_starts_and_init_ends_with_both_in_next() {
    let sandbox = builder().start().await.unwrap();
    sandbox.environment(0).start().await.unwrap();
    let log = sandbox.log();
    log.in_order(&[
        ("init", &kind(EventKind::InitStarted)),
        (
            "extension",
            &|event| matches!(&event.kind, EventKind::ProcessStarted { process, .. } if process.is_extension()),
        ),
        ("registration", &registered),
        ("runtime", &runtime_started),
        ("Next of the runtime", &kind(EventKind::RuntimeNext)),
        ("init done", &kind(EventKind::InitDone)),
        ("frozen", &kind(EventKind::Frozen)),
    ])
    .unwrap();
    let done = log.find(kind(EventKind::InitDone)).unwrap();
    let next = log.find(|event| matches!(event.kind, EventKind::ExtensionNext { .. })).unwrap();
    assert!(next.index < done.index);
}

#[tokio::test]
async fn an_invocation_is_answered_and_the_environment_freezes_after_both_called_next() {
    let sandbox = builder().name("orders").env("COLOUR", "blue").start().await.unwrap();
    let event = steps(&["env:COLOUR", "env:AWS_LAMBDA_FUNCTION_NAME", "env:AWS_LAMBDA_INITIALIZATION_TYPE"]);
    let outcome = sandbox.invoke(Invocation::from(&event).tenant("acme").request_id("r-1")).await;
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}"));
    assert_eq!(outcome.request_id, "r-1");
    assert_eq!(response["event"], event);
    assert_eq!(response["tenant"], "acme");
    assert_eq!(response["COLOUR"], "blue");
    assert_eq!(response["AWS_LAMBDA_FUNCTION_NAME"], "orders");
    assert_eq!(response["AWS_LAMBDA_INITIALIZATION_TYPE"], "on-demand");
    assert_eq!(response["arn"], "arn:aws:lambda:us-east-1:123456789012:function:orders");
    assert!(response["trace"].as_str().unwrap().starts_with("Root=1-"));

    let frozen = sandbox.log().wait_for(kind(EventKind::Frozen), LONG).await.unwrap();
    let started = sandbox.log().find(invoked).unwrap();
    for next in [
        sandbox.log().all(|event| event.kind == EventKind::RuntimeNext),
        sandbox.log().all(|event| matches!(event.kind, EventKind::ExtensionNext { .. })),
    ] {
        assert_eq!(next.len(), 2, "{}", sandbox.log().timeline());
        assert!(next[0].index < started.index && started.index < next[1].index && next[1].index < frozen.index);
    }
}

#[tokio::test]
async fn a_frozen_environment_is_thawed_before_the_next_invocation_and_keeps_its_processes() {
    let sandbox = builder().start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    let first = sandbox.log().wait_for(kind(EventKind::Frozen), LONG).await.unwrap();
    let pid = sandbox.environment(0).pid(Process::Runtime).await.unwrap();
    wait_until_stopped(pid).await;

    assert!(sandbox.invoke(json!({})).await.is_success());
    sandbox.log().wait_for_after(first.index + 1, kind(EventKind::Frozen), LONG).await.unwrap();
    let after = |wanted: &dyn Fn(&Event) -> bool| {
        sandbox.log().find(|event| event.index > first.index && wanted(event)).unwrap().index
    };
    assert!(after(&kind(EventKind::Thawed)) < after(&invoked));
    assert_eq!(sandbox.log().count(runtime_started), 1);
    assert_eq!(sandbox.environment(0).pid(Process::Runtime).await.unwrap(), pid);
}

#[tokio::test]
async fn the_order_in_which_runtime_and_extension_hear_of_an_invocation_can_be_chosen() {
    let sandbox = builder().start().await.unwrap();
    let mut mark = 0;
    for (order, runtime_first) in [(InvokeOrder::RuntimeFirst, true), (InvokeOrder::ExtensionFirst, false)] {
        assert!(sandbox.invoke(Invocation::from(json!({})).order(order)).await.is_success());
        let runtime = sandbox.log().wait_for_after(mark, invoked, LONG).await.unwrap().index;
        let extension = sandbox.log().wait_for_after(mark, extension_invoked, LONG).await.unwrap().index;
        assert_eq!(runtime < extension, runtime_first);
        mark = sandbox.log().wait_for_after(mark, kind(EventKind::Frozen), LONG).await.unwrap().index + 1;
    }
    assert!(sandbox.invoke(Invocation::from(json!({})).order(InvokeOrder::AfterHandler)).await.is_success());
    let answer = sandbox.log().wait_for_after(mark, answered, LONG).await.unwrap().index;
    let extension = sandbox.log().wait_for_after(mark, extension_invoked, LONG).await.unwrap().index;
    assert!(answer < extension);
}

#[tokio::test]
async fn a_handlers_error_reaches_the_caller_and_leaves_the_environment_as_it_is() {
    let sandbox = builder().start().await.unwrap();
    let outcome = sandbox.invoke(steps(&["fail:no such order"])).await;
    let error = outcome.error().unwrap();
    assert_eq!((error.error_type.as_str(), error.message.as_str()), ("Double.Failed", "no such order"));
    assert!(sandbox.invoke(json!({})).await.is_success());
    assert_eq!(sandbox.log().count(runtime_started), 1);
}

#[tokio::test]
async fn the_environment_stays_busy_until_the_extension_calls_next() {
    let sandbox = builder().env("DOUBLE_EXTENSION", "busy:300").start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    let idle = sandbox.log().wait_for(kind(EventKind::Idle), LONG).await.unwrap();
    let answer = sandbox.log().find(answered).unwrap();
    assert!(idle.at - answer.at > std::time::Duration::from_millis(100), "{}", sandbox.log().timeline());
}

#[tokio::test]
async fn streamed_responses_are_collected_and_their_beginning_is_noted() {
    let sandbox = builder().start().await.unwrap();
    let outcome = sandbox.invoke(steps(&["stream"])).await;
    let response = outcome.response().unwrap();
    assert_eq!(response.text(), "one two three");
    assert!(response.is_streamed());
    sandbox
        .log()
        .in_order(&[
            ("first byte", &|event| matches!(event.kind, EventKind::ResponseStarted { .. })),
            ("whole", &|event| matches!(event.kind, EventKind::ResponsePosted { streamed: true, .. })),
            ("answer", &answered),
        ])
        .unwrap();
    let outcome = sandbox.invoke(steps(&["break-stream"])).await;
    assert_eq!(outcome.error_type(), Some("Double.StreamBroke"));
}

#[tokio::test]
async fn answers_that_are_too_large_or_come_twice_and_an_early_next_are_refused() {
    let sandbox = builder().start().await.unwrap();
    assert_eq!(sandbox.invoke(steps(&["large"])).await.error_type(), Some("Function.ResponseSizeTooLarge"));
    let outcome = sandbox.invoke(steps(&["next", "answer"])).await;
    assert_eq!(outcome.response().unwrap().text(), "\"early\"");
    for line in ["early Next got 403", "answered with 202", "answered with 400"] {
        sandbox.log().wait_for(|event| event.is_output(line), LONG).await.unwrap();
    }
}

#[tokio::test]
async fn without_an_extension_the_runtime_alone_decides() {
    let sandbox = Sandbox::builder().function(double()).dynamodb(DynamoDb::None).start().await.unwrap();
    assert!(sandbox.invoke(json!({})).await.is_success());
    sandbox.log().wait_for(kind(EventKind::Frozen), LONG).await.unwrap();
}
