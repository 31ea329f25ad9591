//! Whose credentials requests are signed with, where the environment says so plainly.
//!
//! The SDK's chain asks one provider after the other until one has an answer. On Lambda it is known beforehand which one that
//! is, and the others need not be made.

use aws_config::ConfigLoader;
use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, SharedCredentialsProvider, future};
use aws_smithy_runtime_api::client::http::SharedHttpClient;

/// The provider that the environment leaves no doubt about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    /// Keys in variables, as on Lambda. They go first in the SDK's chain as well.
    Variables,
    /// The container's endpoint, as under SnapStart: its clones must not share their original's credentials, so Lambda
    /// gives them no keys in variables: <https://docs.aws.amazon.com/lambda/latest/dg/snapstart-security.html>.
    Container,
}

/// Sets the provider that the environment names; where it is not plain which one that is, the SDK's chain finds out.
pub(super) fn chosen(loader: ConfigLoader, http: SharedHttpClient) -> ConfigLoader {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    match plain(set, is) {
        Some(Plain::Variables) => loader.credentials_provider(EnvironmentVariableCredentialsProvider::new()),
        Some(Plain::Container) => {
            let config = ProviderConfig::default().with_http_client(http);
            loader.credentials_provider(EcsCredentialsProvider::builder().configure(&config).build())
        }
        None => loader,
    }
}

fn plain(set: impl Fn(&str) -> bool, is: impl Fn(&str, &str) -> bool) -> Option<Plain> {
    if set("AWS_ACCESS_KEY_ID") && set("AWS_SECRET_ACCESS_KEY") {
        return Some(Plain::Variables);
    }
    // What the SDK's chain would ask before the container.
    let before = ["AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE"];
    let endpoint = set("AWS_CONTAINER_CREDENTIALS_FULL_URI") || set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let container =
        is("AWS_LAMBDA_INITIALIZATION_TYPE", "snap-start") && endpoint && !before.iter().any(|name| set(name));
    container.then_some(Plain::Container)
}

/// The same credentials, if they fit into a request's headers. The SDK panics at a key that does not, as with the end of the
/// line that a file had.
pub(super) fn fitting(provider: SharedCredentialsProvider) -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(Fitting(provider))
}

#[derive(Debug)]
struct Fitting(SharedCredentialsProvider);

impl ProvideCredentials for Fitting {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async { self.0.provide_credentials().await.and_then(fits) })
    }

    fn fallback_on_interrupt(&self) -> Option<Credentials> {
        self.0.fallback_on_interrupt()
    }
}

fn fits(credentials: Credentials) -> provider::Result {
    let token = credentials.session_token().unwrap_or_default();
    let (key, secret) = (credentials.access_key_id(), credentials.secret_access_key());
    let parts = [("access key", key), ("secret key", secret), ("session token", token)];
    let unfit = parts.iter().find(|(_, part)| part.chars().any(char::is_control)).map(|(name, _)| *name);
    let Some(name) = unfit else { return Ok(credentials) };
    let message = format!("the {name} has a control character, as the end of a line is one: take it out");
    Err(CredentialsError::invalid_configuration(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<Plain> {
        let value = |name: &str| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value);
        plain(|name| value(name).is_some_and(|value| !value.is_empty()), |name, wanted| value(name) == Some(wanted))
    }

    #[test]
    fn keys_in_variables_leave_no_doubt() {
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        assert_eq!(found(&keys), Some(Plain::Variables));
        assert_eq!(
            found(&[&keys[..], &[("AWS_PROFILE", "p")]].concat()),
            Some(Plain::Variables),
            "as in the SDK's chain"
        );
        assert_eq!(found(&keys[..1]), None);
        assert_eq!(found(&[keys[0], ("AWS_SECRET_ACCESS_KEY", "")]), None);
    }

    #[test]
    fn a_snapshots_clone_asks_the_container() {
        let snap_start = ("AWS_LAMBDA_INITIALIZATION_TYPE", "snap-start");
        let endpoint = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9001/credentials");
        assert_eq!(found(&[snap_start, endpoint]), Some(Plain::Container));
        assert_eq!(found(&[snap_start]), None);
        assert_eq!(found(&[endpoint]), None, "elsewhere a profile may go before it");
        assert_eq!(found(&[snap_start, endpoint, ("AWS_PROFILE", "p")]), None);
    }
}
