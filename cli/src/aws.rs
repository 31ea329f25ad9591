//! Which AWS is asked: profile, Region and endpoint, as AWS's own command line has them.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use clap::Args;

use crate::profile::OfProfile;

/// How long one request may take: an operator waits, but not for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "AWS")]
pub(crate) struct AwsOptions {
    /// The profile of AWS's configuration files; AWS_PROFILE unless given. Given here it wins over keys in the environment.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// The Region; AWS_REGION or the profile's unless given.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Another endpoint than AWS's; AWS_ENDPOINT_URL unless given.
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
}

impl AwsOptions {
    /// The settings that these options and the environment make together.
    pub(crate) async fn config(&self) -> SdkConfig {
        let timeouts = TimeoutConfig::builder().operation_timeout(PATIENCE).build();
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12()).timeout_config(timeouts);
        if let Some(profile) = &self.profile {
            let credentials = OfProfile::named(profile, self.region.as_deref()).await;
            loader = loader.profile_name(profile).credentials_provider(credentials);
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(url) = &self.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        loader.load().await
    }
}

/// A request that AWS refused or never got.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// AWS's name for it, where AWS answered.
    pub(crate) code: Option<String>,
    /// All of it, for people.
    pub(crate) told: String,
}

impl Refused {
    pub(crate) fn of<E, R>(action: &str, error: &SdkError<E, R>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        R: std::fmt::Debug + 'static,
    {
        let service = error.as_service_error();
        let code = service.and_then(ProvideErrorMetadata::code).map(str::to_owned);
        let told = match (&code, service.and_then(ProvideErrorMetadata::message)) {
            (Some(code), Some(message)) => format!("{action}: {code}: {message}"),
            (Some(code), None) => format!("{action}: {code}"),
            // What is at the endpoint is not AWS, as where one for another service is set.
            (None, _) if matches!(error, SdkError::ServiceError(_) | SdkError::ResponseError(_)) => {
                format!(
                    "{action}: the endpoint's answer is not AWS's: {}; look at --endpoint-url and AWS_ENDPOINT_URL",
                    causes(std::error::Error::source(error))
                )
            }
            (None, _) => format!("{action}: {}", causes(Some(error))),
        };
        Self { code, told }
    }

    /// Whether AWS answered by this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.code.as_deref().is_some_and(|code| code.rsplit(['#', '.']).next() == Some(name))
    }
}

/// What is behind an error, in words.
pub(crate) fn causes(first: Option<&(dyn std::error::Error + 'static)>) -> String {
    let all = std::iter::successors(first, |error| error.source()).map(ToString::to_string);
    crate::text::cut(&all.collect::<Vec<_>>().join(": "), 400)
}
