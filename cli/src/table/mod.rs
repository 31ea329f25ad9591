//! `table`: a lock table made, and a lock table looked over.

pub(crate) mod check;
mod clock;
mod create;
mod permissions;
mod schema;
mod ttl;

use clap::Subcommand;

use crate::aws::AwsOptions;
use crate::ended::{Ended, Stop};

/// Make a lock table, or check one that is there.
#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    Create(Box<create::Create>),
    Check(Box<check::Check>),
}

impl Table {
    /// As whom it asks AWS.
    pub(crate) fn aws(&self) -> &AwsOptions {
        match self {
            Self::Create(create) => &create.table.aws,
            Self::Check(check) => &check.table.aws,
        }
    }

    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        match self {
            Self::Create(create) => create.run(json).await,
            Self::Check(check) => check.run(json).await,
        }
    }
}
