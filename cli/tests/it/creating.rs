//! `table create`.

use aws_sdk_dynamodb::types::TimeToLiveStatus;
use leasehold::protocol::Format;
use leasehold::session::Table;
use leasehold_sandbox::LockTable;

use crate::stage::Stage;

async fn ttl(stage: &Stage) -> Option<String> {
    let client = stage.client().await;
    let output = client.describe_time_to_live().table_name("locks").send().await.unwrap();
    let described = output.time_to_live_description.unwrap();
    let on = matches!(described.time_to_live_status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    described.attribute_name.filter(|_| on)
}

#[tokio::test]
async fn a_new_table_has_key_billing_tags_and_ttl_and_passes_its_check() {
    let stage = Stage::without_tables(Table::new("locks"));
    let told = stage.run(&["table", "create", "--tag", "team=orders", "--json"]).ended(0).json();
    assert_eq!(
        (&told["created"], &told["ttl"], &told["billing"]),
        (&true.into(), &"on `ttl`".into(), &"PAY_PER_REQUEST".into())
    );
    assert_eq!(ttl(&stage).await.as_deref(), Some("ttl"));
    let client = stage.client().await;
    let arn = told["arn"].as_str().unwrap();
    let tags = client.list_tags_of_resource().resource_arn(arn).send().await.unwrap().tags.unwrap();
    assert_eq!(tags.iter().map(|tag| (tag.key(), tag.value())).collect::<Vec<_>>(), [("team", "orders")]);
    stage.run(&["table", "check"]).ended(0);
    // A second time nothing is left to do.
    stage.run(&["table", "create"]).ended(0).says(&["was there already, with this key"]);
    stage.run(&["table", "create", "--tag", "team=orders"]).ended(0);
}

#[tokio::test]
async fn what_a_table_that_is_there_lacks_of_what_was_asked_for_is_told_and_left() {
    let stage = Stage::new().await;
    let capacity = ["--billing", "provisioned", "--read-capacity", "5", "--write-capacity", "5"];
    let wanted = [&["table", "create", "--deletion-protection", "--tag", "team=orders"][..], &capacity].concat();
    stage.run(&wanted).ended(1).says(&[
        "its deletion protection is off, and was left so",
        "its billing is not as asked, and was left so",
        "without team=orders",
    ]);
    stage.run(&["table", "create"]).ended(0);
}

#[tokio::test]
async fn another_table_of_that_name_is_told_apart_and_left_as_it_is() {
    let other = LockTable::new("locks").partition_key("pk").sort_key("sk").ttl("expires_at");
    let stage = Stage::with(other, Table::new("locks")).await;
    let ran = stage.run(&["table", "create"]).ended(1);
    ran.says(&[
        "is there already, and is another table; nothing was changed",
        "its partition key is `pk` of type S, not `key` of type S",
        "it has the sort key `sk` of type S, and none is asked for",
    ]);
    assert_eq!(ttl(&stage).await.as_deref(), Some("expires_at"));
    let told = stage.run(&["table", "create", "--json"]).ended(1).json();
    assert_eq!((told["differences"].as_array().unwrap().len(), &told["created"]), (2, &false.into()));
    // With the key that it has it is the right table, but for its TTL.
    let ran = stage.run(&["table", "create", "--key-attribute", "pk", "--sort-key", "sk=lock"]).ended(1);
    ran.says(&["its TTL is on `expires_at`"]);
}

#[tokio::test]
async fn ttl_is_switched_on_where_it_is_off_and_where_rows_stay() {
    let stage = Stage::without_tables(Table::new("locks").speaking(Format::PydynoxV1));
    stage.run(&["table", "create"]).ended(0);
    assert_eq!(ttl(&stage).await, None, "a release of this format deletes its row");
    // The same table for rows that stay.
    let arguments = ["table", "create", "--table", "locks", "--endpoint-url", stage.dynamodb.url()];
    crate::stage::run(&arguments).ended(0);
    assert_eq!(ttl(&stage).await.as_deref(), Some("ttl"));
}

#[tokio::test]
async fn capacity_is_held_ready_only_where_it_is_named() {
    let stage = Stage::without_tables(Table::new("locks"));
    let ran = stage.run(&["table", "create", "--billing", "provisioned"]).ended(2);
    assert!(ran.err.contains("--read-capacity and --write-capacity"), "{}", ran.err);
    let ran = stage.run(&["table", "create", "--read-capacity", "5"]).ended(2);
    assert!(ran.err.contains("--billing provisioned"), "{}", ran.err);
    let arguments = ["table", "create", "--billing", "provisioned", "--read-capacity", "5", "--write-capacity", "20"];
    stage.run(&arguments).ended(0);
    stage.run(&["table", "check"]).ended(0).says(&["provisioned, 5 read and 20 write units"]);
}
