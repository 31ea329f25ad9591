//! The modes that refuse nothing: a batch is taken apart all the same, and what its handler fails is reported.

use leasehold::layer::TemplateText;
use leasehold::layer::batch::{BatchLayerBuilder, ReportBatchItemFailures};
use leasehold::testing::{Happened, TestKeeper};
use serde_json::{Value, json};

use crate::stage::{asked, message, releases, run, settings};

fn in_mode(mode: &str, keeper: &TestKeeper) -> BatchLayerBuilder<Value, TemplateText> {
    let variables = [("LEASEHOLD_MODE", mode)];
    settings("{body.id}", keeper).environment(variables).per_record(ReportBatchItemFailures)
}

fn records() -> [Value; 4] {
    [
        message("1", &json!({ "id": "a", "do": "ask" })),
        message("2", &json!({ "id": "a", "do": "fail" })),
        message("3", &json!({ "id": "b" })),
        message("4", &json!({})),
    ]
}

#[tokio::test]
async fn observe_takes_leases_and_lets_no_record_suffer_from_it() {
    let keeper = TestKeeper::new();
    keeper.hold_elsewhere("b");
    let (reported, said) = run(&keeper, in_mode("observe", &keeper), records()).await;
    assert_eq!(reported, ["2"], "neither the busy one nor the one without a key");
    assert!(said.contains(&"-4".to_owned()) && said.contains(&"-3".to_owned()), "{said:?}");
    assert_eq!((asked(&keeper, "a"), asked(&keeper, "b"), releases(&keeper, "a").len()), (1, 1, 1));
}

#[tokio::test]
async fn off_only_takes_the_batch_apart() {
    let keeper = TestKeeper::new();
    let (reported, said) = run(&keeper, in_mode("off", &keeper), records()).await;
    assert_eq!(reported, ["2"]);
    assert_eq!(said.iter().filter(|said| said.starts_with('+')).count(), 4);
    assert_eq!(keeper.happened(), Vec::<Happened>::new());
}

#[tokio::test]
async fn observe_without_a_keeper_runs_everything() {
    let keeper = TestKeeper::new();
    keeper.vanish();
    let (reported, _) = run(&keeper, in_mode("observe", &keeper), records()).await;
    assert_eq!(reported, ["2"]);
}
