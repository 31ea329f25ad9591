//! The handler's own payload, from the same bytes as the key.

use lambda_runtime::LambdaEvent;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::EventNotDeserialized;

/// Deserializes the event into what the handler takes; an error names the place in the event.
pub(super) fn deserialize<T: DeserializeOwned>(
    event: LambdaEvent<Box<RawValue>>,
) -> Result<(Box<RawValue>, LambdaEvent<T>), EventNotDeserialized> {
    let (raw, context) = event.into_parts();
    let mut json = serde_json::Deserializer::from_str(raw.get());
    match serde_path_to_error::deserialize(&mut json) {
        Ok(payload) => Ok((raw, LambdaEvent::new(payload, context))),
        Err(error) => {
            let path = error.path().to_string();
            Err(EventNotDeserialized { expected: std::any::type_name::<T>(), path, source: error.into_inner() })
        }
    }
}
