//! A lost lease: what runs under it is ended, what was done stays done, what did not begin does not begin.

use leasehold::OnLoss;
use leasehold::layer::batch::ReportBatchItemFailures;
use leasehold::testing::TestKeeper;
use serde_json::{Value, json};

use crate::stage::{message, per_message, run, settings};

fn group(what: &str) -> [Value; 4] {
    [
        message("1", &json!({ "id": "a" })),
        message("2", &json!({ "id": "a", "do": what })),
        message("3", &json!({ "id": "a" })),
        message("4", &json!({ "id": "b" })),
    ]
}

#[tokio::test]
async fn a_lost_lease_ends_what_runs_and_fails_the_rest_of_its_key() {
    let keeper = TestKeeper::new();
    let (reported, said) = run(&keeper, per_message(&keeper), group("lose")).await;
    assert_eq!(reported, ["2", "3"]);
    assert_eq!(said, ["+1", "+4", "-1", "+2", "-4"]);
}

#[tokio::test]
async fn a_record_that_ends_together_with_its_lease_is_not_done_unless_it_is_to_be_kept() {
    let keeper = TestKeeper::new();
    let (reported, _) = run(&keeper, per_message(&keeper), group("lose and end")).await;
    assert_eq!(reported, ["2", "3"]);

    let keeper = TestKeeper::new();
    let kept = settings("{body.id}", &keeper).keep_finished_response(true).per_record(ReportBatchItemFailures);
    let (reported, said) = run(&keeper, kept, group("lose and end")).await;
    assert_eq!(reported, ["3"]);
    assert!(!said.contains(&"+3".to_owned()), "nothing begins under a lost lease: {said:?}");
}

#[tokio::test]
async fn a_record_that_is_only_told_of_the_loss_goes_on_and_the_next_does_not_begin() {
    let keeper = TestKeeper::new();
    let told = settings("{body.id}", &keeper).on_loss(OnLoss::Signal).per_record(ReportBatchItemFailures);
    let (reported, said) = run(&keeper, told, group("lose and end")).await;
    assert_eq!(reported, ["3"]);
    assert!(said.contains(&"-2".to_owned()), "{said:?}");
}

#[tokio::test]
async fn a_vanished_keeper_fails_what_it_held_for() {
    let keeper = TestKeeper::new();
    let gone = keeper.clone();
    let handler = lambda_runtime::tower::service_fn(move |event: lambda_runtime::LambdaEvent<Value>| {
        let gone = gone.clone();
        async move {
            if event.payload["messageId"] == "2" {
                gone.vanish();
                std::future::pending::<()>().await;
            }
            Ok::<_, lambda_runtime::Error>(())
        }
    });
    use lambda_runtime::tower::Layer as _;
    let mut service = per_message(&keeper).concurrency(1).build().unwrap().layer(handler);
    let records = ["1", "2", "3"].map(|id| message(id, &json!({ "id": id })));
    let response = keeper.invoke(&mut service, crate::stage::batch(records)).await.unwrap();
    assert_eq!(crate::stage::reported(response), ["2", "3"], "the first was done");
}
