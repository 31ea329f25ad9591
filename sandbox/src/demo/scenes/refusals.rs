//! Scenes in which a contender is refused, and told why.

use std::time::Duration;

use serde_json::json;

use crate::{
    Invocation,
    demo::{
        Failed, Shown,
        stage::{SOON, Stage},
    },
};

/// Less time is left than the sample's own reserve of half a second.
pub(super) async fn too_late(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(1).await?;
    let invocation = Invocation::from(stage.event()).timeout(Duration::from_millis(400));
    let outcome = stage.begin(0, invocation).outcome().await;
    let error = outcome.error().ok_or_else(|| Failed::because("it ran, though its time was too short"))?;
    if outcome.error_type() != Some("DeadlineTooClose") {
        return Err(Failed::because(format!("another error was told: {error}")));
    }
    let rows = stage.sandbox().tables().rows("locks").await?;
    if !rows.is_empty() {
        return Err(Failed::because("a row was written all the same"));
    }
    Ok(error.to_string())
}

/// The holder needs longer than the contender may wait.
pub(super) async fn busy(stage: &Stage) -> Result<Shown, Failed> {
    stage.warm(2).await?;
    let holder = stage.begin(0, stage.event_with(json!({ "sleep_ms": 2500 })));
    stage.at_work(&holder, SOON).await?;
    let id = holder.request_id().to_owned();
    let refused = stage.begin(1, stage.event()).outcome().await;
    let error = refused.error().ok_or_else(|| Failed::because("it ran, though the key was held"))?;
    if refused.error_type() != Some("LeaseBusy") {
        return Err(Failed::because(format!("another error was told: {error}")));
    }
    if !error.to_string().contains(&id) {
        return Err(Failed::because(format!("the error does not name the holder's request {id}: {error}")));
    }
    let told = error.to_string();
    if let Some(error) = holder.outcome().await.error() {
        return Err(Failed::because(format!("the holder failed: {error}")));
    }
    Ok(told)
}
