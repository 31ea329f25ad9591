//! A function whose handler borrows what `main` owns.

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::Lease;
use serde_json::{Value, json};

use crate::work::{Job, layer};

pub(crate) async fn run() -> Result<(), Error> {
    let greeting = String::from("hello from main");
    let borrowed = &greeting;
    let handler = async |event: LambdaEvent<Job>| -> Result<Value, Error> {
        let done = event.payload.run(&event.context.request_id).await?;
        Ok(json!({ "greeting": borrowed, "key": done.key, "held": Lease::current()?.ensure_held().is_ok() }))
    };
    lambda_runtime::run(ServiceBuilder::new().layer(layer()?).service_fn(handler)).await
}
