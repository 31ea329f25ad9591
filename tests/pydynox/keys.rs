//! A template and the same values give the same key on both sides, whatever the values are made of.

use leasehold::key::{ContextValues, Template};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::python::Python;

/// How many templates and rows of values are tried.
const CASES: u32 = 500;

/// A template's text between its placeholders, with what either grammar gives a meaning.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z:/0-9]{0,6}", "(\\{\\{|\\}\\}|:|é|🔒|\"|\\\\){0,3}"]
}

/// Values that look like framing or templates, and any others; an empty one makes no key of ours.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9:{}/]{1,8}", "\\PC{1,12}", any::<String>(), any::<i64>().prop_map(|number| number.to_string())]
        .prop_filter("not empty", |value| !value.is_empty())
}

#[tokio::test]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn the_same_template_and_values_give_the_same_key() {
    let witnesses = tempfile::tempdir().unwrap();
    let python = Python::start("http://127.0.0.1:1", witnesses.path()).await;
    let cases = tokio::task::spawn_blocking(move || {
        let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
        runner.run(&(vec(text(), 4), vec(value(), 1..=3)), |(texts, values)| {
            let mut template = String::new();
            let mut event = Map::new();
            for (number, value) in values.iter().enumerate() {
                template += &format!("{}{{v{number}}}", texts[number]);
                event.insert(format!("v{number}"), json!(value));
            }
            template += &texts[3];
            let event = Value::Object(event);
            let parsed = Template::parse(&template).expect("a template");
            let ours = parsed.resolve(None, &event.to_string(), &ContextValues::default()).expect("a key");
            let theirs = python.resolve(&template, &event).blocking_next();
            prop_assert_eq!(theirs["key"].as_str(), Some(ours.as_str()), "{} {}: {}", template, event, theirs);
            Ok(())
        })
    });
    cases.await.unwrap().unwrap();
}
