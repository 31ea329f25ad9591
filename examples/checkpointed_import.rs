//! An import that is done in chunks, and goes on where an earlier one was killed.
//!
//! Each file is locked by its key. After each chunk a checkpoint is saved: it is durable when `save_state` returns, and only
//! the holder of the lock can write it. Who is killed in the middle of a chunk has it done again by the next, and no other.
//!
//! There are twelve chunks of 0.3 s, too many for a timeout of 3 s: the first invocation does not come to the end, and the
//! second one goes on.
//!
//! ```sh
//! cargo run -p leasehold-sandbox -- invoke --example checkpointed_import --timeout 3s \
//!   --event events/s3-upload.json --event events/s3-upload.json
//! ```
//!
//! ```text
//! {"errorMessage":"…Task timed out after 3.00 seconds"…}
//! {"chunks":12,"resumed_at":…}
//! ```
//!
//! The function needs `dynamodb:ConditionCheckItem` on the lock table beside `UpdateItem` and `GetItem`.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent, tower::ServiceBuilder, tracing};
use leasehold::{Lease, LeaseLayer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const CHUNK_BYTES: u64 = 4_096;

/// Where the import has got to.
#[derive(Default, Deserialize, Serialize)]
struct Checkpoint {
    /// How many chunks are done.
    chunks: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let locked = LeaseLayer::builder("imports:{Records[0].s3.object.key}")
        .reserve(Duration::from_secs(1))
        .holder_note("imports an uploaded file, chunk by chunk")
        .build()?;
    lambda_runtime::run(ServiceBuilder::new().layer(locked).service_fn(import)).await
}

async fn import(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let object = &event.payload["Records"][0]["s3"]["object"];
    let chunks = object["size"].as_u64().unwrap_or_default().div_ceil(CHUNK_BYTES);

    let lease = Lease::current()?;
    let resumed_at = lease.state::<Checkpoint>().await?.unwrap_or_default().chunks;
    for chunk in resumed_at..chunks {
        import_chunk(chunk).await;
        tracing::info!(chunk = %chunk, "imported");
        lease.save_state(&Checkpoint { chunks: chunk + 1 }).await?;
        tracing::info!(chunk = %chunk, "checkpoint saved");
    }
    lease.clear_state_on_release()?; // done: the next upload begins anew
    Ok(json!({ "resumed_at": resumed_at, "chunks": chunks }))
}

/// Stands for reading a part of the file and writing its rows.
async fn import_chunk(_chunk: u64) {
    tokio::time::sleep(Duration::from_millis(300)).await;
}
