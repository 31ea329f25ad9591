//! Whose certificates are believed, against servers that speak TLS; each client in a process of its own, for the system's
//! root certificates are read once a process, and `SSL_CERT_FILE` stands for them.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

use super::*;

/// Speaks TLS with a certificate of an authority of its own, and answers each request on one connection with an empty item.
struct Server {
    url: String,
    /// The authority's certificate.
    authority: String,
    requests: Arc<Mutex<usize>>,
}

impl Server {
    fn start(authority: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, authority);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let (config, requests) = (Arc::new(config), Arc::new(Mutex::new(0)));
        let counted = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, counted) = (config.clone(), counted.clone());
                thread::spawn(move || answer(stream.unwrap(), config, &counted));
            }
        });
        Self { url, authority: authority.pem(), requests }
    }
}

/// Until the other side has enough; a handshake that it refuses is an error here.
fn answer(mut stream: TcpStream, config: Arc<ServerConfig>, counted: &Mutex<usize>) {
    let mut connection = ServerConnection::new(config).unwrap();
    let mut tls = BufReader::new(Stream::new(&mut connection, &mut stream));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !tls.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        if tls.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        *counted.lock().unwrap() += 1;
        if tls.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").is_err() {
            return;
        }
    }
}

const URL: &str = "LEASEHOLD_TEST_URL";

/// Run by the other tests, in the environment that they want: tells what came of two requests.
#[tokio::test]
#[ignore = "run by the other tests in a process of its own"]
async fn child() {
    let named = Trust::from_env().by_system.load(Ordering::Relaxed);
    // As if no variable had named them: the test's have to be the system's own.
    let trust = Trust { by_system: Arc::new(AtomicBool::new(false)) };
    let config = Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("AKIDEXAMPLE", "not a secret", None, None, "tests"))
        .retry_config(aws_sdk_dynamodb::config::retry::RetryConfig::disabled())
        .endpoint_url(std::env::var(URL).unwrap())
        .http_client(trust.client())
        .build();
    let client = Client::from_conf(config);
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let sent = client.get_item().table_name("locks").key("key", AttributeValue::S("k".to_owned())).send().await;
        outcomes.push(sent.map(|_| ()).map_err(|error| crate::store::text::chain(&error, 600)));
    }
    println!("outcome: {named} {} {outcomes:?}", trust.by_system.load(Ordering::Relaxed));
}

fn outcome(server: &Server, system: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roots.pem");
    std::fs::write(&file, system).unwrap();
    outcome_with(&server.url, &[("SSL_CERT_FILE", file.to_str().unwrap())])
}

fn outcome_with(url: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "store::https::tests::child"]);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    let output = command.env(URL, url).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("outcome: ")).unwrap().1.to_owned()
}

#[test]
fn the_systems_certificates_are_asked_where_amazons_do_not_vouch() {
    let server = Server::start("one");
    assert_eq!(outcome(&server, &server.authority), "true true [Ok(()), Ok(())]");
    assert_eq!(*server.requests.lock().unwrap(), 2, "each request was sent once");
}

#[test]
fn nobody_is_believed_whom_nobody_vouches_for() {
    let (server, other) = (Server::start("one"), Server::start("another"));
    let outcome = outcome(&server, &other.authority);
    assert!(outcome.starts_with("true false [Err(") && outcome.matches("UnknownIssuer").count() == 2, "{outcome}");
    assert_eq!(*server.requests.lock().unwrap(), 0);
}

#[test]
fn who_is_vouched_for_by_nobody_is_told_with_where_the_certificates_are_from() {
    let (server, other) = (Server::start("one"), Server::start("another"));
    let outcome = outcome(&server, &other.authority);
    for part in [server.url.as_str(), "none of the 1 root certificates of SSL_CERT_FILE (`", "roots.pem`)"] {
        assert!(outcome.contains(part), "{part:?} is missing in {outcome}");
    }
}

#[test]
fn certificates_that_can_not_be_read_are_told_by_their_variable_and_file() {
    let server = Server::start("one");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (missing, garbage, broken, empty) = (path("missing"), path("garbage"), path("broken"), path("empty"));
    std::fs::write(&garbage, "no certificate").unwrap();
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::create_dir(&empty).unwrap();
    for (variable, value, says) in [
        ("SSL_CERT_FILE", &missing, "No such file or directory"),
        ("SSL_CERT_FILE", &garbage, "no root certificate was found"),
        ("SSL_CERT_FILE", &broken, "1 that can't be read"),
        ("SSL_CERT_DIR", &missing, "No such file or directory"),
        ("SSL_CERT_DIR", &empty, "no root certificate was found"),
    ] {
        let outcome = outcome_with(&server.url, &[(variable, value)]);
        for part in [&format!("{} was not asked", server.url), &format!("{variable} (`{value}`)"), says] {
            assert!(outcome.contains(part), "{part:?} is missing in {outcome}");
        }
    }
    assert_eq!(*server.requests.lock().unwrap(), 0);
}

#[test]
fn a_proxy_is_named_only_where_one_is_set() {
    let nobody = "https://localhost:9";
    assert!(!outcome_with(nobody, &[]).contains("proxy"));
    let outcome = outcome_with(nobody, &[("HTTPS_PROXY", "http://127.0.0.1:9")]);
    assert!(outcome.contains("a proxy is set by HTTPS_PROXY"), "{outcome}");
}

#[test]
fn an_empty_variable_names_no_certificates() {
    for (value, named) in [(None, false), (Some(""), false), (Some("/etc/roots.pem"), true)] {
        for variable in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
            let found = roots::are_named(|name| value.filter(|_| name == variable).map(OsString::from));
            assert_eq!(found, named, "{variable}={value:?}");
        }
    }
}

#[test]
fn the_certificates_are_amazons() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    // As https://www.amazontrust.com/repository/ lists them.
    let listed = [
        "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",
        "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
        "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
        "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
        "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",
    ];
    let found: Vec<String> = CertificateDer::pem_slice_iter(AMAZON)
        .map(|certificate| hmac_sha256::Hash::hash(&certificate.unwrap()))
        .map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    assert_eq!(found, listed);
}
