//! The way to DynamoDB over HTTPS, and which root certificates vouch for it.
//!
//! The system's root certificates are some 140, and to read them is most of what a start costs; Amazon's own services are
//! vouched for by five. So those five are brought along, and the system's are read where they turn out to be needed: behind
//! a proxy that looks into TLS, in partitions with other authorities, at endpoints that are not Amazon's.

mod roots;
mod unreached;

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_http_client::{Connector, ConnectorBuilder};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::shared::IntoShared;
use rustls::CertificateError;

use self::roots::Roots;
pub(crate) use self::unreached::{ROUTE, Unreached, by_proxy, endpoint};

#[cfg(test)]
mod tests;

/// Those of Amazon Trust Services: <https://www.amazontrust.com/repository/>.
const AMAZON: &[u8] = include_bytes!("amazon_roots.pem");

/// Which root certificates count, for all connections of a store.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    /// Whether the system's are asked from the start.
    by_system: Arc<AtomicBool>,
}

impl Trust {
    /// Amazon's root certificates before the system's, unless a variable names which they are.
    pub(super) fn from_env() -> Self {
        Self { by_system: Arc::new(AtomicBool::new(roots::are_named(|name| std::env::var_os(name)))) }
    }

    /// A client with connections of its own; they are closed when its last clone is gone.
    pub(super) fn client(&self) -> SharedHttpClient {
        Https { trust: self.clone(), connector: OnceLock::new() }.into_shared()
    }

    /// A client for requests that are seldom made, each with a time limit of its own: it keeps no connection.
    pub(super) fn client_for_credentials(&self) -> SharedHttpClient {
        let trust = self.clone();
        aws_smithy_runtime_api::client::http::http_client_fn(move |settings, components| {
            Trusting::new(trust.clone(), settings, components).into_shared()
        })
    }
}

/// Makes its connector once: its requests all have the same settings.
#[derive(Debug)]
struct Https {
    trust: Trust,
    connector: OnceLock<SharedHttpConnector>,
}

impl HttpClient for Https {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        self.connector.get_or_init(|| Trusting::new(self.trust.clone(), settings, components).into_shared()).clone()
    }
}

/// Sends by a connection that Amazon's root certificates vouch for, or else the system's.
#[derive(Clone, Debug)]
struct Trusting {
    trust: Trust,
    base: ConnectorBuilder,
    by_amazon: Arc<OnceLock<Connector>>,
    by_system: Arc<OnceLock<Connector>>,
}

impl Trusting {
    fn new(trust: Trust, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> Self {
        let mut base = Connector::builder().connector_settings(settings.clone()).proxy_config(ProxyConfig::from_env());
        base.set_sleep_impl(components.sleep_impl());
        Self { trust, base, by_amazon: Arc::default(), by_system: Arc::default() }
    }

    fn by_amazon(&self) -> &Connector {
        self.by_amazon.get_or_init(|| connector(&self.base, TrustStore::empty().with_pem_certificate(AMAZON)))
    }

    /// Reads the certificates itself first: the SDK's connector does not tell what is wrong with them.
    fn by_system(&self) -> Result<&Connector, ConnectorError> {
        if let Some(made) = self.by_system.get() {
            return Ok(made);
        }
        Roots::read().required()?;
        Ok(self.by_system.get_or_init(|| connector(&self.base, TrustStore::default())))
    }

    async fn send(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let uri = request.uri().to_owned();
        self.attempt(request).await.map_err(|error| unreached::explained(&uri, error, || Roots::read().told()))
    }

    async fn attempt(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        if self.trust.by_system.load(Ordering::Relaxed) {
            return self.by_system()?.call(request).await;
        }
        let again = request.try_clone();
        let answer = self.by_amazon().call(request).await;
        // It ended in the handshake: no request was sent.
        let (Err(error), Some(again)) = (&answer, again) else { return answer };
        if !is_unknown_issuer(error) {
            return answer;
        }
        let answer = self.by_system()?.call(again).await;
        if answer.is_ok() && !self.trust.by_system.swap(true, Ordering::Relaxed) {
            tracing::info!(
                "not Amazon's own certificate but one that this system trusts is at the endpoint, or before it"
            );
        }
        answer
    }
}

impl HttpConnector for Trusting {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().send(request))
    }
}

fn connector(base: &ConnectorBuilder, store: TrustStore) -> Connector {
    // Building it does not fail: it only keeps what it was given.
    let context = TlsContext::builder().with_trust_store(store).build().unwrap_or_default();
    base.clone().tls_provider(Provider::Rustls(CryptoMode::Ring)).tls_context(context).build()
}

/// Whether the handshake failed for want of a root certificate that vouches for the other side's.
fn is_unknown_issuer(error: &(dyn Error + 'static)) -> bool {
    unreached::causes(error).any(|cause| {
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        cause.downcast_ref::<rustls::Error>().is_some_and(|error| *error == unknown)
    })
}
