//! A DynamoDB lock per key around AWS Lambda handlers.
#![forbid(unsafe_code)]

pub mod budget;
pub mod clock;
pub mod error;
pub mod keeper;
pub mod key;
pub mod layer;
mod lease;
pub mod metrics;
pub mod protocol;
pub mod session;
mod settings;
#[cfg(feature = "in-process")]
pub mod store;

pub use error::{Error, InvocationError, SettingsError};
pub use layer::{LeaseLayer, LeaseLayerBuilder};
pub use lease::{Lease, LeaseGuard};
pub use protocol::{FencingToken, HolderInfo, OwnerId};
pub use session::OnCrash;
pub use settings::{KeeperChoice, MissingPath, Mode, OnLoss, OnUnavailable, ReleaseWhen};
