//! Lines of metrics, in and out of their order, whole and broken.

use serde_json::json;

use super::*;

fn line(members: Value) -> Result<MetricLine, NotRead> {
    let mut line = json!({
        "_aws": { "Timestamp": 1_800_000_000_000_u64, "CloudWatchMetrics": [] },
        "FunctionName": "ship", "Template": "orders:{id}", "Keeper": "extension", "KeeperId": "k", "Line": 1,
    });
    let Value::Object(members) = members else { panic!("{members}") };
    line.as_object_mut().unwrap().extend(members);
    MetricLine::read(line.as_object().unwrap())
}

#[test]
fn counts_are_added_up_and_what_stands_at_a_moment_is_the_last_lines() {
    let mut metrics = Metrics::default();
    for members in [
        json!({ "Line": 3, "Acquired": 1, "Released": 3, "StillHeld": 1, "Attempts": 1, "Wait": [5, 9], "WriteUnits": 2.5 }),
        json!({ "Line": 1, "Acquired": 4, "Released": 1, "StillHeld": 3, "Attempts": 5, "AttemptsPending": 1, "Wait": 7 }),
        json!({ "Line": 6, "KeeperId": "other", "Acquired": 2, "Lost": 1, "StillHeld": 1, "Attempts": 2, "New": 4 }),
    ] {
        metrics.add(line(members).unwrap());
    }
    assert_eq!((metrics.lines, metrics.keepers(), metrics.missing()), (3, 2, 1), "line 2 is not there");
    let expected =
        [("Acquired", 7), ("Released", 4), ("StillHeld", 2), ("AttemptsPending", 0), ("New", 4), ("Busy", 0)];
    for (name, sum) in expected {
        assert_eq!(metrics.of(name), sum, "{name}");
    }
    assert_eq!(metrics.off_balance(), [("Attempts", 8, 7)]);
    assert_eq!((metrics.waits.count(), metrics.waits.sum_ms(), metrics.write_units), (3, 21, 2.5));
    let [((function, template), of)] = metrics.templates(9)[..] else { panic!("{metrics:?}") };
    assert_eq!((function.as_str(), template.as_str(), of.acquired, of.lost), ("ship", "orders:{id}", 7, 1));
}

#[test]
fn another_programs_metrics_are_none_and_broken_ones_are_told_apart() {
    assert_eq!(MetricLine::read(json!({ "_aws": {}, "Wait": 7 }).as_object().unwrap()), Err(NotRead::Other));
    for members in [
        json!({ "Acquired": -1 }),
        json!({ "Acquired": 1.5 }),
        json!({ "Wait": ["5"] }),
        json!({ "WriteUnits": "2" }),
        json!({ "ReadUnits": -1 }),
        json!({ "Line": "1" }),
        json!({ "KeeperId": 7 }),
        json!({ "_aws": { "Timestamp": "now" } }),
    ] {
        assert_eq!(line(members.clone()), Err(NotRead::Broken), "{members}");
    }
}

#[test]
fn numbers_that_no_keeper_ever_counted_to_are_summed_up_to_the_highest_there_is() {
    let mut metrics = Metrics::default();
    let most = u64::MAX;
    for number in [0, most] {
        for keeper in ["k", "l"] {
            let members = json!({
                "Line": number, "KeeperId": keeper, "Acquired": most, "Contended": most, "Busy": most, "Lost": most,
                "Released": most, "StillHeld": most, "AttemptsPending": most, "Attempts": most, "Wait": most,
                "_aws": { "Timestamp": most }, "WriteUnits": f64::MAX, "ReadUnits": f64::MAX,
            });
            metrics.add(line(members).unwrap());
        }
    }
    for name in ["Acquired", "StillHeld", "AttemptsPending"] {
        assert_eq!(metrics.of(name), most, "{name}");
    }
    assert_eq!((metrics.write_units, metrics.read_units), (f64::MAX, f64::MAX));
    assert_eq!(metrics.missing(), most);
    assert_eq!(metrics.off_balance(), []);
    assert_eq!(metrics.templates(9)[0].1.acquired, most);
}
