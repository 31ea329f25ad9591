//! A client with connections of its own, which can be given up as a whole, and credentials, which can be asked for anew.

use std::ffi::OsString;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, IdentityCache, StalledStreamProtectionConfig};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::sync::{OnceCell, watch};

use super::credentials;
use super::https::Trust;

/// Credentials that are refused although they were asked for within this time are not asked for anew: many leases renew by
/// the same ones, and what hands them out may have a limit of its own.
const ASKED_ANEW_AFTER: Duration = Duration::from_millis(250);

/// The connections in use now, and how to make new ones.
#[derive(Debug)]
pub(super) struct Connections {
    config: OnceCell<SdkConfig>,
    trust: Trust,
    current: Mutex<Arc<Connection>>,
}

impl Connections {
    /// None yet: the first request makes one, and reads the settings from the environment unless they are given.
    pub(super) fn new(config: Option<SdkConfig>) -> Self {
        Self { config: OnceCell::new_with(config), trust: Trust::from_env(), current: Mutex::default() }
    }

    /// Reads the settings from the environment unless that was done, or they were given.
    pub(super) async fn config(&self) -> &SdkConfig {
        let load = async || {
            let http = self.trust.client_for_credentials();
            // Else it reads `AWS_MAX_ATTEMPTS`, and panics at what is no number.
            let loader =
                aws_config::defaults(behavior()).http_client(http.clone()).retry_config(RetryConfig::standard());
            let mut config = credentials::chosen(loader, http).load().await.into_builder();
            // That one is the credentials': each set of connections has a client of its own.
            config.set_http_client(None);
            config.build()
        };
        self.config.get_or_init(load).await
    }

    /// What the next request is to be sent by.
    pub(super) fn current(&self) -> Arc<Connection> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The client of a connection, made at its first use.
    pub(super) async fn client<'a>(&self, connection: &'a Connection) -> &'a Client {
        let config = self.config().await;
        connection.client.get_or_init(|| Client::from_conf(self.client_config(config, connection)))
    }

    /// The protocol alone retries and limits time, for only it knows what an unknown outcome means.
    ///
    /// Credentials are asked for anew with each set of connections: a clone of a snapshot must not go on with those of its
    /// original, and connections are given up after every long silence.
    fn client_config(&self, config: &SdkConfig, connection: &Connection) -> Config {
        let own = || connection.pool.http.get_or_init(|| self.trust.client()).clone();
        let mut builder = aws_sdk_dynamodb::config::Builder::from(config);
        let (of_dynamodb, general) = (variable("AWS_ENDPOINT_URL_DYNAMODB"), variable("AWS_ENDPOINT_URL"));
        // The SDK panics at an endpoint that is empty, as templates leave variables: it says nothing.
        if of_dynamodb.or(general).is_some_and(|value| value.is_empty()) {
            builder.set_endpoint_url(config.endpoint_url().filter(|url| !url.is_empty()).map(str::to_owned));
        }
        builder.set_credentials_provider(config.credentials_provider().map(credentials::fitting));
        builder
            .behavior_version(behavior())
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .identity_cache(IdentityCache::lazy().build())
            .http_client(config.http_client().unwrap_or_else(own))
            .build()
    }

    /// Lets later requests ask for credentials anew, by the same connections; unless they do already, or have only just
    /// done so. What is in flight goes on.
    pub(super) fn renew_credentials(&self, used: &Arc<Connection>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&current, used) && used.renewed.is_none_or(|at| at.elapsed() >= ASKED_ANEW_AFTER) {
            let pool = used.pool.clone();
            *current = Arc::new(Connection { client: OnceLock::new(), renewed: Some(Instant::now()), pool });
        }
    }

    /// Gives up the current connections with everything in flight on them.
    pub(super) fn drop_all(&self) {
        let old = std::mem::take(&mut *self.current.lock().unwrap_or_else(PoisonError::into_inner));
        old.pool.given_up.send_replace(true);
    }
}

/// A client with the credentials that it has asked for.
#[derive(Debug, Default)]
pub(super) struct Connection {
    client: OnceLock<Client>,
    /// When it took the place of one whose credentials were refused.
    renewed: Option<Instant>,
    pool: Arc<Pool>,
}

/// The connections that clients share, one after the other. The pool closes the idle ones when the last handle to it is
/// gone, and each one in flight when its request's future is dropped.
#[derive(Debug)]
struct Pool {
    http: OnceLock<SharedHttpClient>,
    given_up: watch::Sender<bool>,
}

impl Default for Pool {
    fn default() -> Self {
        Self { http: OnceLock::new(), given_up: watch::Sender::new(false) }
    }
}

impl Connection {
    /// Done once the connections were given up.
    pub(super) fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut given_up = self.pool.given_up.subscribe();
        async move {
            // An error would mean that the pool itself is gone.
            let _ = given_up.wait_for(|given_up| *given_up).await;
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The SDK's defaults that this crate was written against.
fn behavior() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}

#[cfg(test)]
mod tests;
