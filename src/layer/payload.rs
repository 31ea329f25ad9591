//! The handler's own payload, from the same bytes as the key.

use lambda_runtime::LambdaEvent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::EventNotDeserialized;

/// Stands for what is wrong with a value without telling the value.
fn hidden() -> serde_json::Error {
    serde::de::Error::custom("what stands there is not told, as keys are hashed (`hashed_keys`)")
}

/// Deserializes the event into what the handler takes; an error names the place in the event.
pub(super) fn deserialize<T: DeserializeOwned>(
    event: LambdaEvent<Box<RawValue>>,
    hides_values: bool,
) -> Result<(Box<RawValue>, LambdaEvent<T>), EventNotDeserialized> {
    let (raw, context) = event.into_parts();
    let mut json = serde_json::Deserializer::from_str(raw.get());
    match serde_path_to_error::deserialize(&mut json) {
        Ok(payload) => Ok((raw, LambdaEvent::new(payload, context))),
        Err(error) => {
            let path = error.path().to_string();
            let source = if hides_values { hidden() } else { error.into_inner() };
            Err(EventNotDeserialized { expected: std::any::type_name::<T>(), path, source })
        }
    }
}
