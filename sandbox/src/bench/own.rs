//! What the layer and the session cost by themselves: over a keeper whose store answers at once.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use lambda_runtime::{
    Context, LambdaEvent,
    tower::{Layer as _, Service, ServiceExt as _, service_fn},
};
use leasehold::{
    LeaseLayer,
    clock::SystemClock,
    keeper::{Keeper, KeeperOptions, Peer, PlainHome},
};
use serde_json::{Value, value::RawValue};
use tokio::net::UnixListener;

use super::{
    Plan, Row, Section,
    ground::TABLE,
    memory::Memory,
    report::Unit,
    statistics::{Times, micros},
};
use crate::{Error, task::OwnedRuntime};

/// p50 of a call through the layer, less that of the handler alone.
const GOAL_MICROS: f64 = 100.0;

pub(super) async fn measure(plan: &Plan) -> Result<Vec<Row>, Error> {
    let directory = tempfile::tempdir().map_err(Error::io("create a temporary directory"))?;
    let socket = directory.path().join("keeper.sock");
    // One thread, as the extension has.
    let keeper = OwnedRuntime::with_threads("keeper", 1).map_err(Error::io("start the keeper's thread"))?;
    let listener = std::os::unix::net::UnixListener::bind(&socket).map_err(Error::io("bind the keeper's socket"))?;
    listener.set_nonblocking(true).map_err(Error::io("prepare the keeper's socket"))?;
    keeper.spawn(serve(listener));

    let calls = plan.times(2_000, 200);
    let handler = service_fn(async |event: LambdaEvent<Value>| {
        Ok::<_, leasehold::Error>(event.payload["id"].as_u64().unwrap_or_default())
    });
    let layer = layer(&socket)?;
    let locked = timed(layer.layer(handler), calls).await?;
    // The same, but with nothing of ours around it.
    let bare = service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let payload: Value = serde_json::from_str(event.payload.get())?;
        handler.oneshot(LambdaEvent::new(payload, event.context)).await.map_err(lambda_runtime::Error::from)
    });
    let bare = timed(bare, calls).await?;

    let cost = locked.median().saturating_sub(bare.median());
    let slow = locked.percentile(0.99).saturating_sub(bare.median());
    let row = Row::new(
        Section::Own,
        "layer_and_session",
        "layer and session, one whole invocation, p50",
        micros(cost),
        Unit::Micros,
    );
    let note = format!("p99 {:.0} µs; {calls} calls, the keeper on a thread of its own behind a socket", micros(slow));
    Ok(vec![row.at_most(GOAL_MICROS).note(note)])
}

fn layer(socket: &Path) -> Result<LeaseLayer<Value>, Error> {
    let none: [(&str, &str); 0] = [];
    let layer = LeaseLayer::builder("bench:{id}").table(TABLE).socket(socket).environment(none);
    let layer = layer.keeper(leasehold::KeeperChoice::Extension).reserve(Duration::from_secs(1)).build();
    layer.map_err(|error| Error::Setting { setting: "the measured layer", problem: error.to_string() })
}

async fn serve(listener: std::os::unix::net::UnixListener) {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the keeper's socket can't be used"),
    };
    let clock = Arc::new(SystemClock::new());
    let store = Memory::new(clock.clone());
    let keeper = Keeper::new(store, clock, Arc::new(PlainHome), KeeperOptions::default());
    while let Ok((stream, _)) = listener.accept().await {
        let keeper = keeper.clone();
        // Ends with the layer's end of it.
        drop(tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await }));
    }
}

/// So many calls, one after the other, after some that are not counted.
async fn timed<S>(mut service: S, calls: usize) -> Result<Times, Error>
where
    S: Service<LambdaEvent<Box<RawValue>>>,
    S::Error: std::fmt::Debug,
{
    let mut times = Vec::with_capacity(calls);
    for number in 0..calls + calls / 10 {
        let event = event(number)?;
        let began = Instant::now();
        let answered = async { service.ready().await?.call(event).await }.await;
        times.push(began.elapsed());
        answered.map_err(|error| Error::io("measure a call")(std::io::Error::other(format!("{error:?}"))))?;
    }
    Ok(times.split_off(calls / 10).into_iter().collect())
}

fn event(number: usize) -> Result<LambdaEvent<Box<RawValue>>, Error> {
    let payload = RawValue::from_string(format!("{{\"id\":{number}}}"));
    let payload = payload.map_err(|error| Error::io("write an event")(error.into()))?;
    let mut context = Context::default();
    context.request_id = format!("request-{number}");
    let deadline = SystemTime::now() + Duration::from_secs(30);
    let deadline = deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    context.deadline = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    Ok(LambdaEvent::new(payload, context))
}
