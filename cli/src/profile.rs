//! The credentials of a profile that is named on the command line.

use aws_config::Region;
use aws_config::default_provider::region::DefaultRegionChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};

use crate::aws::causes;

/// Those of one profile and no others. The SDK's own chain asks the environment first, so that keys that are exported there
/// would be taken for the profile's.
#[derive(Debug)]
pub(crate) struct OfProfile {
    name: String,
    provider: ProfileFileCredentialsProvider,
}

impl OfProfile {
    /// `region` is where the token service is asked, if the profile takes a role; the usual one unless given.
    pub(crate) async fn named(name: &str, region: Option<&str>) -> Self {
        let region = match region {
            Some(region) => Some(Region::new(region.to_owned())),
            None => DefaultRegionChain::builder().profile_name(name).build().region().await,
        };
        let settings = ProviderConfig::without_region().with_region(region);
        let provider = ProfileFileCredentialsProvider::builder().profile_name(name).configure(&settings).build();
        Self { name: name.to_owned(), provider }
    }

    fn failed(&self, error: &CredentialsError) -> CredentialsError {
        let name = &self.name;
        CredentialsError::provider_error(match error {
            CredentialsError::CredentialsNotLoaded(_) => {
                format!("no profile `{name}` with credentials in AWS's configuration files")
            }
            error => format!("profile `{name}`: {}", causes(Some(error))),
        })
    }
}

impl ProvideCredentials for OfProfile {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async move {
            self.provider.provide_credentials().await.map_err(|error| self.failed(&error))
        })
    }
}
