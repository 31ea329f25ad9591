//! A function for a queue's messages, each locked by the `id` in its body.

use std::time::Duration;

use aws_lambda_events::event::sqs::SqsMessage;
use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder};
use leasehold::LeaseLayer;
use leasehold::layer::batch::ReportBatchItemFailures;

use crate::work::Job;

pub(crate) async fn run() -> Result<(), Error> {
    let layer = LeaseLayer::builder("jobs:{body.id}").reserve(Duration::from_millis(200));
    let layer = layer.per_record(ReportBatchItemFailures).build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(layer).service_fn(work)).await
}

async fn work(message: LambdaEvent<SqsMessage>) -> Result<(), Error> {
    let job: Job = serde_json::from_str(&message.payload.body.unwrap_or_default())?;
    job.run(&message.context.request_id).await?;
    Ok(())
}
