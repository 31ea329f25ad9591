//! A function for Managed Instances: many invocations at once in one process.

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};

use crate::work::{Done, Job, layer};

pub(crate) async fn run() -> Result<(), Error> {
    lambda_runtime::run_concurrent(ServiceBuilder::new().layer(layer()?).service_fn(work)).await
}

async fn work(event: LambdaEvent<Job>) -> Result<Done, leasehold::Error> {
    event.payload.run(&event.context.request_id).await
}
