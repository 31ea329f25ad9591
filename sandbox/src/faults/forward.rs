//! The way to DynamoDB and back.

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, Uri,
    body::Bytes,
    header,
    http::{request::Parts, uri::PathAndQuery},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::Error;

/// The DynamoDB behind the proxy.
#[derive(Clone)]
pub(super) struct Upstream {
    base: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Upstream {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Setting { setting: "the fault proxy's upstream", problem };
        let base: Uri = url.parse().map_err(|error| wrong(format!("`{url}` is no URL: {error}")))?;
        if base.scheme_str() != Some("http") || base.authority().is_none() {
            return Err(wrong(format!("`{url}` is not of the form `http://host:port`")));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self { base, client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Sends a request on and brings the whole reply.
    pub(super) async fn forward(&self, parts: Parts, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
        let mut uri = self.base.clone().into_parts();
        uri.path_and_query = parts.uri.path_and_query().cloned().or(Some(PathAndQuery::from_static("/")));
        let uri = Uri::from_parts(uri).map_err(|error| error.to_string())?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method;
        *request.uri_mut() = uri;
        // The host stays as the client signed it; the connection is the proxy's own.
        *request.headers_mut() = parts.headers;
        request.headers_mut().remove(header::CONNECTION);
        let reply = self.client.request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = reply.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(parts, Full::new(body)))
    }
}
