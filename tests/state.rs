//! States as a handler sees them, with a test double for the keeper.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, service_fn};
use leasehold::session::FailKind;
use leasehold::testing::TestKeeper;
use leasehold::{Error, Lease, LeaseLayer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoint {
    rows: u128,
}

/// Invokes a handler that does this under the lock `imports:17`, in a layer with these variables.
async fn under<F>(keeper: &TestKeeper, variables: &[(&str, &str)], act: impl Fn(Lease) -> F) -> Result<Value, Error>
where
    F: Future<Output = Result<Value, Error>>,
{
    let layer = LeaseLayer::builder("imports:{id}").test_keeper(keeper).environment(variables.iter().copied());
    let layer = layer.build().unwrap();
    let handler = |_: LambdaEvent<Value>| async {
        match Lease::current() {
            Ok(lease) => act(lease).await,
            Err(error) => Err(error),
        }
    };
    let answer = keeper.invoke(&mut layer.layer(service_fn(handler)), json!({ "id": 17 })).await;
    answer.map_err(|error| match error {
        leasehold::InvocationError::Lease { error, .. } | leasehold::InvocationError::Handler(error) => error,
        other => panic!("{other}"),
    })
}

#[tokio::test]
async fn a_handler_reads_what_was_left_and_leaves_what_it_saves() {
    let keeper = TestKeeper::new();
    keeper.leave_state("imports:17", &Checkpoint { rows: u128::MAX });
    under(&keeper, &[], |lease| async move {
        assert_eq!(lease.state().await?, Some(Checkpoint { rows: u128::MAX }));
        lease.save_state(&Checkpoint { rows: 2 }).await?;
        assert_eq!(lease.state().await?, Some(Checkpoint { rows: 2 }));
        Ok(json!(null))
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left("imports:17"), Some(Checkpoint { rows: 2 }));
    under(&keeper, &[], |lease| async move { lease.clear_state().await.map(|()| json!(null)) }).await.unwrap();
    assert_eq!(keeper.state_left::<Value>("imports:17"), None);
}

#[tokio::test]
async fn what_is_for_the_release_is_left_by_a_handler_that_finished_and_by_no_other() {
    let keeper = TestKeeper::new();
    under(&keeper, &[], |lease| async move {
        lease.save_state_on_release(&Checkpoint { rows: 1 })?;
        assert_eq!(lease.state::<Checkpoint>().await?, None, "not yet");
        Ok(json!(null))
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left("imports:17"), Some(Checkpoint { rows: 1 }));
    let lost = keeper.clone();
    let answer = under(&keeper, &[], move |lease| {
        let lost = lost.clone();
        async move {
            lease.clear_state_on_release()?;
            lost.lose("imports:17");
            std::future::pending().await
        }
    });
    assert!(matches!(answer.await, Err(Error::LeaseLost(_))));
    assert_eq!(keeper.state_left("imports:17"), Some(Checkpoint { rows: 1 }));
    under(&keeper, &[], |lease| async move { lease.clear_state_on_release().map(|()| json!(null)) }).await.unwrap();
    assert_eq!(keeper.state_left::<Value>("imports:17"), None);
}

#[tokio::test]
async fn misuse_is_told_with_what_to_change_before_anything_is_sent() {
    let keeper = TestKeeper::new();
    under(&keeper, &[], |lease| async move {
        let long = "x".repeat(32 * 1024);
        for error in [lease.save_state(&long).await.unwrap_err(), lease.save_state_on_release(&long).unwrap_err()] {
            assert_eq!(error.error_type(), "StateTooLarge");
            let told = error.to_string();
            assert!(told.contains("32770 bytes") && told.contains("32768") && told.contains("S3"), "{told}");
        }
        let deep = |levels| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
        for error in
            [lease.save_state(&deep(128)).await.unwrap_err(), lease.save_state_on_release(&deep(200)).unwrap_err()]
        {
            assert_eq!(error.error_type(), "StateTooDeep");
            assert!(error.to_string().contains("at most 127"), "{error}");
        }
        lease.save_state(&deep(127)).await?;
        assert_eq!(lease.state::<Value>().await?, Some(deep(127)), "what was saved can be read");
        let no_json = BTreeMap::from([((1, 2), 3)]);
        assert_eq!(lease.save_state(&no_json).await.unwrap_err().error_type(), "StateNotSerialized");
        lease.save_state(&"a text").await?;
        let error = lease.state::<Checkpoint>().await.unwrap_err();
        assert_eq!(error.error_type(), "StateNotSerialized");
        assert!(error.to_string().contains("serde(default)"), "{error}");
        Ok(json!(null))
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left("imports:17"), Some("a text".to_owned()));
    let unsupported = under(&keeper, &[("LEASEHOLD_FORMAT", "pydynox/1")], |lease| async move {
        lease.save_state_on_release(&1).map(|()| json!(null))
    });
    let error = unsupported.await.unwrap_err();
    assert!(error.error_type() == "StateUnsupported" && error.to_string().contains("`leasehold/1`"), "{error}");
    let long_key = |_: &LambdaEvent<Value>| Ok::<_, Error>("k".repeat(2_043));
    let layer = LeaseLayer::keyed_by(long_key).test_keeper(&keeper).build().unwrap();
    let handler = |_: LambdaEvent<Value>| async { Lease::current()?.state::<Value>().await };
    let refused = keeper.invoke(&mut layer.layer(service_fn(handler)), json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("room for 2042"), "{refused}");
}

#[tokio::test]
async fn what_dynamodb_refuses_and_a_loss_are_errors_of_their_own() {
    let keeper = TestKeeper::new();
    let failing = keeper.clone();
    under(&keeper, &[("LEASEHOLD_ON_LOSS", "signal"), ("LEASEHOLD_KEEP_FINISHED_RESPONSE", "true")], move |lease| {
        let failing = failing.clone();
        async move {
            failing.fail(FailKind::AccessDenied);
            assert_eq!(lease.save_state(&1).await.unwrap_err().error_type(), "AccessDenied");
            lease.ensure_held()?;
            failing.recover();
            failing.lose("imports:17");
            for error in [
                lease.save_state(&1).await.unwrap_err(),
                lease.state::<u8>().await.unwrap_err(),
                lease.save_state_on_release(&1).unwrap_err(),
            ] {
                assert_eq!(error.error_type(), "LeaseLost");
            }
            Ok(json!(null))
        }
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left::<u8>("imports:17"), None);
}

#[tokio::test]
async fn a_handler_under_a_mode_that_refuses_nothing_works_without_a_state() {
    let keeper = TestKeeper::new();
    keeper.leave_state("imports:17", &1);
    under(&keeper, &[("LEASEHOLD_MODE", "off")], |lease| async move {
        assert_eq!(lease.state::<u8>().await?, None);
        lease.save_state(&2).await?;
        lease.save_state_on_release(&3)?;
        Ok(json!(null))
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left("imports:17"), Some(1));
    // With a lease, `observe` keeps states as `enforce` does.
    under(&keeper, &[("LEASEHOLD_MODE", "observe")], |lease| async move {
        assert_eq!(lease.state::<u8>().await?, Some(1));
        lease.save_state(&4).await.map(|()| json!(null))
    })
    .await
    .unwrap();
    assert_eq!(keeper.state_left("imports:17"), Some(4));
}

#[tokio::test]
async fn a_dropped_question_takes_no_other_ones_answer() {
    let keeper = TestKeeper::new();
    under(&keeper, &[], |lease| async move {
        drop(tokio_test::task::spawn(lease.save_state(&1)).poll());
        assert_eq!(lease.state::<u8>().await?, Some(1));
        let (saved, read) = tokio::join!(lease.save_state(&2), lease.state::<u8>());
        saved?;
        assert_eq!(read?, Some(2));
        Ok(json!(null))
    })
    .await
    .unwrap();
}

#[test]
fn what_a_row_has_no_place_for_is_a_problem_of_the_settings() {
    let build = |name: &str, value: &str, format: &str| {
        let layer = LeaseLayer::<Value>::builder("a:{id}").table("locks").key_attribute("key").format(format);
        let layer = layer.environment([("A", "B")]).attribute(name, value);
        layer.build().map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(build("team", "billing", "leasehold/1"), Ok(()));
    let long = "x".repeat(1_025);
    for (name, value, told) in [
        ("owner", "x", "`owner` is reserved"),
        ("data", "x", "`data` is reserved"),
        ("key", "x", "keys"),
        ("", "x", "0 bytes"),
        ("team", "", "0 bytes"),
        ("team", long.as_str(), "1025 bytes"),
        ("team", "a\nb", "control characters"),
    ] {
        let error = build(name, value, "leasehold/1").unwrap_err();
        assert!(error.contains("`attribute`") && error.contains(told), "{error}");
    }
    assert!(build("team", "x", "pydynox/1").unwrap_err().contains("`attribute` is set"));
    let note = LeaseLayer::<Value>::builder("a:{id}").table("locks").environment([("LEASEHOLD_STATE_RETENTION", "0s")]);
    let error = note.holder_note(long).build().map(drop).unwrap_err().to_string();
    assert!(error.contains("`holder_note`") && error.contains("`state_retention`"), "{error}");
}
