//! Which AWS is asked: profile, Region and endpoint, as AWS's own command line has them.

use std::time::Duration;

use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::SharedCredentialsProvider;
use clap::Args;
use http::Uri;
use leasehold::operator;

use crate::ended::Stop;
use crate::text::cut;

/// How long one request may take: an operator waits, but not for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// The variable that names an endpoint for every service; with `_` and a service's name behind it, for that one.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "AWS")]
pub(crate) struct AwsOptions {
    /// The profile of AWS's configuration files, and its credentials; AWS_PROFILE unless given.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// The Region; AWS_REGION or the profile's unless given.
    #[arg(long, value_name = "NAME", value_parser = region)]
    region: Option<String>,

    /// Another endpoint than AWS's, for every service; AWS_ENDPOINT_URL unless given.
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    endpoint_url: Option<String>,
}

impl AwsOptions {
    /// The settings that these options and the environment make together, for requests to these services.
    ///
    /// # Errors
    ///
    /// [`Stop::Usage`] for a Region or an endpoint that is none, and where there is no Region.
    pub(crate) async fn config(&self, services: &[&str]) -> Result<SdkConfig, Stop> {
        self.check_variables(services)?;
        let (timeouts, credentials) =
            (TimeoutConfig::builder().operation_timeout(PATIENCE).build(), credentials_client());
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .timeout_config(timeouts)
            // Else it reads AWS_MAX_ATTEMPTS, and panics at what is no number.
            .retry_config(RetryConfig::standard())
            .http_client(credentials.clone());
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(url) = &self.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        let Some(chosen) = config.region().cloned() else {
            return Err(Stop::Usage(
                "no Region is set: give --region, or set AWS_REGION or one in the profile".to_owned(),
            ));
        };
        region(chosen.as_ref())
            .map_err(|wrong| Stop::Usage(format!("the Region (AWS_REGION, or the profile's): {wrong}")))?;
        let mut builder = config.into_builder();
        builder.set_http_client(Some(operator::https_client()));
        if let Some(profile) = &self.profile {
            // As with AWS's own command line a profile that was asked for goes before keys in variables.
            let from = ProviderConfig::default().with_http_client(credentials).with_region(Some(chosen));
            let provider = ProfileFileCredentialsProvider::builder().profile_name(profile).configure(&from).build();
            builder.set_credentials_provider(Some(SharedCredentialsProvider::new(provider)));
        }
        Ok(builder.build())
    }

    /// The SDK panics at an endpoint that is empty, and tells of a wrong one with the whole request.
    fn check_variables(&self, services: &[&str]) -> Result<(), Stop> {
        if self.endpoint_url.is_some() {
            return Ok(());
        }
        let of_services = services.iter().map(|service| format!("{ENDPOINT}_{service}"));
        for name in std::iter::once(ENDPOINT.to_owned()).chain(of_services) {
            let Some(value) = std::env::var_os(&name) else { continue };
            endpoint(&value.to_string_lossy())
                .map_err(|wrong| Stop::Usage(format!("{name}: {wrong}, or take it out")))?;
        }
        Ok(())
    }

    /// Which options and variables say who is asked, and as whom: for who wonders at the answer.
    pub(crate) fn told(&self) -> String {
        let shown = |value: &str| cut(&without_password(value), 120);
        let option =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name} {}", shown(value)));
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(format!("{name}={}", shown(&value.to_string_lossy())))
        };
        let mut told = Vec::new();
        match option("endpoint-url", &self.endpoint_url) {
            Some(option) => told.push(option),
            None => {
                let services = ["", "_DYNAMODB", "_LAMBDA", "_SQS", "_CLOUDFORMATION"];
                told.extend(services.iter().filter_map(|service| variable(&format!("{ENDPOINT}{service}"))));
            }
        }
        told.extend(
            option("region", &self.region)
                .or_else(|| variable("AWS_REGION"))
                .or_else(|| variable("AWS_DEFAULT_REGION")),
        );
        match option("profile", &self.profile) {
            Some(option) => told.push(option),
            None if variable("AWS_ACCESS_KEY_ID").is_some() => told.push("the keys in AWS_ACCESS_KEY_ID".to_owned()),
            None => told.extend(variable("AWS_PROFILE")),
        }
        told.join(", ")
    }
}

fn credentials_client() -> aws_sdk_dynamodb::config::SharedHttpClient {
    operator::https_client_for_credentials()
}

/// A URL without the name and the password that may stand in it; what is none as it is.
fn without_password(url: &str) -> String {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        Some((scheme, &rest[rest[..end].rfind('@')? + 1..]))
    });
    parts.map_or_else(|| url.to_owned(), |(scheme, rest)| format!("{scheme}://…@{rest}"))
}

/// Reads an endpoint's URL.
///
/// # Errors
///
/// What is wrong with it.
fn endpoint(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty: give it a URL".to_owned());
    }
    let wrong =
        || format!("{text:?} is no URL of an endpoint: write `https://` or `http://`, a host and, if need be, a port");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    // Behind an IPv6 address' bracket, or a name.
    let has_port =
        uri.authority().is_some_and(|all| all.as_str().rsplit(']').next().is_some_and(|end| end.contains(':')));
    if known && (!has_port || uri.port_u16().is_some()) { Ok(text.to_owned()) } else { Err(wrong()) }
}

/// Reads a Region's name: it becomes a part of a host's.
///
/// # Errors
///
/// What is wrong with it.
fn region(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if text.is_empty() || text.len() > 63 || !text.chars().all(plain) || text.starts_with('-') || text.ends_with('-') {
        return Err(format!("{text:?} is no Region: write one's name, such as eu-central-1"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        assert_eq!(without_password("https://me:se@cret@host:8000/a@b"), "https://…@host:8000/a@b");
        for plain in ["https://host/a@b", "eu-central-1", "me@host", ""] {
            assert_eq!(without_password(plain), plain);
        }
    }

    #[test]
    fn endpoints_and_regions_are_checked_before_they_are_used() {
        for good in ["http://127.0.0.1:8000", "https://dynamodb.eu-central-1.amazonaws.com", "http://[::1]:8000/path"] {
            assert_eq!(endpoint(good).as_deref(), Ok(good));
        }
        for bad in ["", "127.0.0.1:8000", "localhost", "ftp://host", "http://", "http://a b", "http://host:port"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
        assert!(region("eu-central-1").is_ok() && region("eusc-de-east-1").is_ok());
        for bad in ["", "eu central 1", "eu/central", "-eu", "é"] {
            assert!(region(bad).is_err(), "{bad}");
        }
    }
}
