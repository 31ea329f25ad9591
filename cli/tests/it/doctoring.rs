//! `doctor`, against a stand-in that answers as Lambda and SQS document it.

use serde_json::{Value, json};

use crate::stage::{Ran, run};
use crate::stand_in::{self, Answer, Asked};

/// A function and its sources, all in order, which each test then spoils.
#[derive(Clone)]
struct Account {
    configuration: Value,
    invoke_config: Answer,
    mappings: Value,
    queue: Value,
}

impl Account {
    fn good() -> Self {
        Self {
            configuration: json!({
                "FunctionName": "orders", "FunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:orders",
                "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": 30, "MemorySize": 256, "Version": "$LATEST",
                "PackageType": "Zip", "State": "Active", "LastUpdateStatus": "Successful",
                "Layers": [{ "Arn": "arn:aws:lambda:us-east-1:123456789012:layer:LeaseholdLayer:3", "CodeSize": 1 }],
                "Environment": { "Variables": { "LEASEHOLD_TABLE": "locks", "LEASEHOLD_RESERVE": "5s", "OTHER": "x" } },
                "LoggingConfig": { "LogFormat": "JSON", "LogGroup": "/aws/lambda/orders" },
            }),
            invoke_config: (
                200,
                json!({
                    "MaximumRetryAttempts": 2,
                    "DestinationConfig": { "OnFailure": { "Destination": "arn:aws:sqs:us-east-1:123456789012:failed" } },
                }),
            ),
            mappings: json!([
                {
                    "UUID": "1", "EventSourceArn": "arn:aws:sqs:us-east-1:123456789012:orders", "State": "Enabled",
                    "FunctionResponseTypes": ["ReportBatchItemFailures"], "BatchSize": 10,
                    "MaximumBatchingWindowInSeconds": 5,
                },
                {
                    "UUID": "2", "EventSourceArn": "arn:aws:kinesis:us-east-1:123456789012:stream/clicks", "State": "Enabled",
                    "FunctionResponseTypes": ["ReportBatchItemFailures"], "MaximumRetryAttempts": 50,
                    "DestinationConfig": { "OnFailure": { "Destination": "arn:aws:sqs:us-east-1:123456789012:failed" } },
                },
            ]),
            queue: json!({
                "VisibilityTimeout": "185",
                "RedrivePolicy": "{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:123456789012:dead\",\"maxReceiveCount\":5}",
            }),
        }
    }

    fn with(mut self, pointer: &str, value: Value) -> Self {
        let (root, pointer) = pointer.split_once('.').unwrap();
        let document = match root {
            "configuration" => &mut self.configuration,
            "mappings" => &mut self.mappings,
            "queue" => &mut self.queue,
            other => panic!("{other}"),
        };
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
        self
    }

    fn doctor(self, more: &[&str]) -> Ran {
        let url = stand_in::start(move |asked| self.answer(asked));
        run(&[&["doctor", "--function", "orders", "--endpoint-url", &url, "--json"], more].concat())
    }

    fn answer(&self, asked: &Asked) -> Answer {
        match asked.what.as_str() {
            "GET /2015-03-31/functions/orders/configuration" => (200, self.configuration.clone()),
            "GET /2019-09-25/functions/orders/event-invoke-config" => self.invoke_config.clone(),
            what if what.starts_with("GET /2015-03-31/event-source-mappings") => {
                (200, json!({ "EventSourceMappings": self.mappings }))
            }
            "GetQueueUrl" => {
                assert_eq!(
                    (&asked.body["QueueName"], &asked.body["QueueOwnerAWSAccountId"]),
                    (&"orders".into(), &"123456789012".into())
                );
                (200, json!({ "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders" }))
            }
            "GetQueueAttributes" => (200, json!({ "Attributes": self.queue })),
            other => stand_in::error(404, "ResourceNotFoundException", &format!("nothing answers {other}")),
        }
    }
}

fn statuses(told: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = told["checks"].as_array().unwrap().iter();
    checks
        .map(|of| (text(&of["check"]), text(&of["status"]), format!("{} → {}", text(&of["told"]), text(&of["advice"]))))
        .collect()
}

#[test]
fn a_function_in_order_has_nothing_to_tell() {
    let told = Account::good().doctor(&[]).ended(0).json();
    assert!(statuses(&told).iter().all(|(_, status, _)| status == "ok"), "{told:#}");
    for check in ["function", "variables", "layer", "timeout", "log", "asynchronous", "queue orders", "stream clicks"] {
        assert!(statuses(&told).iter().any(|(of, _, _)| of == check), "{check}: {told:#}");
    }
}

#[test]
fn each_thing_that_can_be_wrong_is_found_alone() {
    let good = Account::good;
    let none = || json!([]);
    let variables =
        |name: &str, value: &str| json!({ "LEASEHOLD_TABLE": "locks", "LEASEHOLD_RESERVE": "5s", name: value });
    for (account, check, status, says) in [
        (good().with("configuration./Layers", none()), "layer", "problem", "the function has no layers"),
        (
            good().with("configuration./Layers", json!([{ "Arn": "arn:aws:lambda:us-east-1:1:layer:other:1" }])),
            "layer",
            "problem",
            "none of its layers is called `leasehold`",
        ),
        (good().with("configuration./PackageType", json!("Image")), "layer", "unknown", "container image"),
        (
            good().with("configuration./Environment/Variables", variables("LEASEHOLD_MAX_WIAT", "1s")),
            "variables",
            "warning",
            "did you mean LEASEHOLD_MAX_WAIT?",
        ),
        (
            good().with("configuration./Environment/Variables", variables("LEASEHOLD_MAX_WAIT", "1")),
            "variables",
            "problem",
            "LEASEHOLD_MAX_WAIT: \"1\" has no unit",
        ),
        (
            good().with("configuration./Environment/Variables", json!({ "LEASEHOLD_RESERVE": "5s" })),
            "variables",
            "warning",
            "LEASEHOLD_TABLE is not set",
        ),
        (
            good().with("configuration./Environment/Variables", variables("LEASEHOLD_MODE", "observe")),
            "mode",
            "warning",
            "nothing is locked",
        ),
        (good().with("configuration./Timeout", json!(5)), "timeout", "problem", "DeadlineTooClose"),
        (good().with("configuration./Timeout", json!(6)), "timeout", "warning", "at most 1s can be waited"),
        (
            good().with("configuration./LoggingConfig", json!({ "LogFormat": "Text" })),
            "log",
            "warning",
            "LogFormat: JSON",
        ),
        (
            good().with("mappings./0/FunctionResponseTypes", none()),
            "queue orders",
            "problem",
            "with `per_record` what was busy or failed is deleted",
        ),
        (
            good().with("mappings./1/FunctionResponseTypes", none()),
            "stream clicks",
            "problem",
            "ReportBatchItemFailures is not set",
        ),
        (
            good().with("mappings./1/MaximumRetryAttempts", json!(0)),
            "stream clicks",
            "problem",
            "the first busy key loses",
        ),
        (good().with("mappings./1/MaximumRetryAttempts", json!(-1)), "stream clicks", "warning", "blocks its shard"),
        (good().with("mappings./0/State", json!("Disabled")), "queue orders", "warning", "is Disabled"),
        (
            good().with("queue./VisibilityTimeout", json!("29")),
            "queue orders",
            "problem",
            "comes again while the first",
        ),
        (good().with("queue./VisibilityTimeout", json!("184")), "queue orders", "warning", "3m05s or more"),
        (
            good().with("queue./RedrivePolicy", json!("{\"maxReceiveCount\":\"3\"}")),
            "queue orders",
            "warning",
            "received 3 times",
        ),
        (
            Account { invoke_config: (404, json!({ "__type": "ResourceNotFoundException" })), ..good() },
            "asynchronous",
            "warning",
            "and then dropped",
        ),
    ] {
        let told = account.doctor(&[]).ended(i32::from(status == "problem")).json();
        let odd: Vec<_> = statuses(&told).into_iter().filter(|(_, status, _)| status != "ok").collect();
        match &odd[..] {
            [(of, has, text)] if of == check && has == status && text.contains(says) => {}
            other => panic!("{check}, {status}, {says:?}: {other:#?}"),
        }
    }
}

#[test]
fn what_the_code_sets_is_told_by_options() {
    let account = Account::good().with("configuration./Environment/Variables", json!({ "LEASEHOLD_TABLE": "locks" }));
    let told = account.clone().doctor(&[]).ended(0).json();
    assert!(told.to_string().contains("no reserve is known"), "{told:#}");
    account
        .clone()
        .doctor(&["--reserve", "5s", "--max-wait", "1s"])
        .ended(0)
        .says(&["30s, reserve 5s, longest wait 1s"]);
    account.doctor(&["--reserve", "40s"]).ended(1);
    let account =
        Account::good().with("configuration./Layers", json!([{ "Arn": "arn:aws:lambda:us-east-1:1:layer:mine:1" }]));
    account.doctor(&["--layer", "MINE"]).ended(0);
    let account = Account::good().with("mappings./0/FunctionResponseTypes", json!([]));
    account.doctor(&["--whole-batch"]).ended(0).says(&["the whole batch comes back"]);
}

#[test]
fn a_function_that_is_not_there_is_a_problem_and_a_refusal_is_status_3() {
    let url = stand_in::start(|_| stand_in::error(404, "ResourceNotFoundException", "Function not found: orders"));
    run(&["doctor", "--function", "orders", "--endpoint-url", &url]).ended(1).says(&["Function not found"]);
    let url = stand_in::start(|_| stand_in::error(403, "AccessDeniedException", "no"));
    let ran = run(&["doctor", "--function", "orders", "--endpoint-url", &url]).ended(3);
    assert!(ran.err.contains("AccessDeniedException"), "{}", ran.err);
}
