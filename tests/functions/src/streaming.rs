//! A function that streams its response and keeps the lease until the last byte of it.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, StreamResponse, streaming::channel, tower::ServiceBuilder};
use leasehold::Lease;

use crate::work::{Job, layer};

pub(crate) async fn run() -> Result<(), Error> {
    lambda_runtime::run(ServiceBuilder::new().layer(layer()?).service_fn(stream)).await
}

async fn stream(event: LambdaEvent<Job>) -> Result<StreamResponse<lambda_runtime::streaming::Body>, Error> {
    let lease = Lease::current()?;
    let guard = lease.guard()?;
    let (mut sender, body) = channel();
    let request = event.context.request_id;
    let pause = Duration::from_millis(event.payload.sleep_ms);
    tracing::info!(key = %lease.key(), request, "handler returns");
    tokio::spawn(async move {
        for part in ["one", "two", "three"] {
            tokio::time::sleep(pause).await;
            if sender.send_data(part.into()).await.is_err() {
                break;
            }
        }
        drop(sender);
        tracing::info!(request, "stream ends");
        drop(guard);
    });
    Ok(StreamResponse::from(body))
}
