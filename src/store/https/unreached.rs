//! What went wrong on the way to an endpoint, in plain words: which endpoint, what failed, what to look at.
//!
//! The layers below each say their part of it (`dispatch failure: io error: client error (Connect): tcp connect error: …`), and
//! none says where the request was going.

use std::error::Error;
use std::fmt;
use std::io;

use aws_smithy_runtime_api::client::result::ConnectorError;
use rustls::{CertificateError, InvalidMessage};

/// An error for who wants to look further: what it was made of.
#[derive(Debug)]
pub(crate) struct Unreached {
    told: String,
    cause: ConnectorError,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl Error for Unreached {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl Unreached {
    /// The one that an error of the SDK is made of, if it is.
    pub(crate) fn in_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        causes(error).find_map(|cause| cause.downcast_ref())
    }
}

/// The same kind of error, with what it means for a request to this URI. `roots` tells which root certificates were asked.
pub(super) fn explained(uri: &str, cause: ConnectorError, roots: impl FnOnce() -> String) -> ConnectorError {
    let at = endpoint(uri);
    let told = format!("{}{}", words(&at, &cause, roots), by_proxy(at.starts_with("https:")));
    let (timeout, user, io, kind) = (cause.is_timeout(), cause.is_user(), cause.is_io(), cause.as_other());
    let explained = Box::new(Unreached { told, cause });
    match (timeout, user, io) {
        (true, ..) => ConnectorError::timeout(explained),
        (_, true, _) => ConnectorError::user(explained),
        (.., true) => ConnectorError::io(explained),
        _ => ConnectorError::other(explained, kind),
    }
}

/// Scheme, host and port of a URI.
pub(crate) fn endpoint(uri: &str) -> String {
    let (scheme, rest) = uri.split_once("://").unwrap_or(("", uri));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // What stands before an `@` may be a secret.
    let host = authority.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// All that an error is made of, itself first. An I/O error tells what it is made of, but does not name it as its source.
pub(super) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

fn words(at: &str, error: &ConnectorError, roots: impl FnOnce() -> String) -> String {
    let says = |text: &str| causes(error).any(|cause| cause.to_string().contains(text));
    if let Some(unrooted) = causes(error).find_map(|cause| cause.downcast_ref::<Unrooted>()) {
        return format!("{at} was not asked: {unrooted}");
    }
    if let Some(tls) = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        return of_tls(at, tls, roots);
    }
    if says("handshake eof") {
        return format!("{at} ended the TLS handshake; if it speaks no TLS, its URL begins with `http://`");
    }
    if says("dns error") {
        let name = at.split_once("://").map_or(at, |(_, host)| host);
        let name = name.rsplit_once(':').map_or(name, |(host, _)| host);
        return format!(
            "the name `{name}` of {at} has no address; check that the endpoint and the Region are written right, and name \
             resolution (DNS) where this runs"
        );
    }
    if let Some(told) = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).find_map(|io| of_io(at, io))
    {
        return told;
    }
    if error.is_timeout() {
        let phase = if says("connect timeout") { "no connection to" } else { "no answer from" };
        return format!("{phase} {at} in time{ROUTE}");
    }
    if says("connection closed before message completed") {
        return format!("{at} closed the connection without an answer; if it lasts, check what runs there");
    }
    if says("invalid HTTP") {
        return format!(
            "what answers at {at} does not speak HTTP, or it is https; check the endpoint's port and scheme"
        );
    }
    format!("{at} could not be asked: {}{ROUTE}", crate::store::text::chain(error, 400))
}

/// What to look at where there seems to be no way.
pub(crate) const ROUTE: &str = "; if it lasts, check the way to it: the endpoint, name resolution, a firewall or security \
                                group, and in a VPC the gateway endpoint for DynamoDB";

fn of_io(at: &str, error: &io::Error) -> Option<String> {
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "nothing listens at {at}: the connection was refused; check the endpoint's host and port, and that it runs"
        ),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            format!("the connection to {at} broke{ROUTE}")
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            format!("there is no route to {at}{ROUTE}")
        }
        io::ErrorKind::TimedOut => format!("no connection to {at} in time{ROUTE}"),
        _ => return None,
    })
}

fn of_tls(at: &str, error: &rustls::Error, roots: impl FnOnce() -> String) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            format!("the certificate that {at} shows is vouched for by none of {}", roots())
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("the certificate that {at} shows is for another name; check the endpoint's name ({error})"),
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => format!(
            "the certificate that {at} shows is over or not yet valid; check it, and this host's clock ({error})"
        ),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            format!("{at} answers, but does not speak TLS; if it speaks plain HTTP, its URL begins with `http://`")
        }
        _ => format!("the TLS handshake with {at} failed: {error}"),
    }
}

/// There is no root certificate to vouch for anybody.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unrooted(pub(super) String);

/// Which variable sets a proxy that may be what failed, where one does.
pub(crate) fn by_proxy(tls: bool) -> String {
    let names = if tls { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let found = names.iter().chain(&["ALL_PROXY", "all_proxy"]).find(|name| set(name));
    found.map_or_else(String::new, |name| format!(" (a proxy is set by {name}: it may be that one)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(uri: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> String {
        let error = explained(uri, ConnectorError::io(error.into()), || "ROOTS".to_owned());
        assert!(error.is_io(), "the kind stays");
        Unreached::in_error(&error).unwrap().to_string()
    }

    #[test]
    fn an_endpoint_is_told_without_secrets_and_paths() {
        assert_eq!(endpoint("https://me:secret@host:8000/path?query"), "https://host:8000");
        assert_eq!(endpoint("http://127.0.0.1:9"), "http://127.0.0.1:9");
        assert_eq!(endpoint("host/path"), "host");
    }

    #[test]
    fn each_failure_of_the_way_has_its_own_words() {
        let at = "http://db.example:8000/";
        for (error, words) in [
            (io::Error::from(io::ErrorKind::ConnectionRefused), "nothing listens at http://db.example:8000:"),
            (io::Error::from(io::ErrorKind::ConnectionReset), "the connection to http://db.example:8000 broke"),
            (io::Error::from(io::ErrorKind::NetworkUnreachable), "there is no route to http://db.example:8000"),
            (io::Error::other("dns error"), "the name `db.example` of http://db.example:8000 has no address"),
            (io::Error::other("tls handshake eof"), "ended the TLS handshake"),
            (io::Error::other("something new"), "could not be asked: "),
            (io::Error::other(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)), "does not speak TLS"),
            (
                io::Error::other(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)),
                "vouched for by none of ROOTS",
            ),
            (
                io::Error::other(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)),
                "is for another name",
            ),
            (io::Error::other(rustls::Error::InvalidCertificate(CertificateError::Expired)), "this host's clock"),
        ] {
            let told = told(at, error);
            assert!(told.contains(words), "{words:?} is missing in {told}");
            assert!(!told.contains("proxy"), "none is set: {told}");
        }
    }
}
