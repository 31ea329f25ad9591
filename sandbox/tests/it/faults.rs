//! The fault proxy: what passes, what each fault does to a request, its row and its client.

use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use leasehold_sandbox::faults::{Answer, DateHeader, End, Fault, FaultProxy, Step};
use tokio::net::TcpStream;

use crate::*;

/// What a client gets for a request, or how it fails.
type Reply = Result<(StatusCode, HeaderMap, Value), hyper::Error>;

/// A connection that is used until it ends.
struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    async fn open(proxy: &FaultProxy) -> Self {
        let stream = TcpStream::connect(proxy.url().strip_prefix("http://").unwrap()).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        // How it ends is told to who sends.
        tokio::spawn(connection);
        Self(sender)
    }

    async fn send(&mut self, operation: &str, body: Value) -> Reply {
        let request = Request::post("/")
            .header("host", "dynamodb")
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("content-type", "application/x-amz-json-1.0")
            .header("authorization", "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
            .header("x-amz-date", "20260101T000000Z")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        self.0.ready().await?;
        let (parts, body) = self.0.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((parts.status, parts.headers, serde_json::from_slice(&body).unwrap()))
    }

    /// Takes the row for this owner, as the row format does.
    async fn acquire(&mut self, key: &str, owner: &str) -> Reply {
        self.send("UpdateItem", acquisition(key, owner)).await
    }
}

fn acquisition(key: &str, owner: &str) -> Value {
    json!({
        "TableName": "locks",
        "Key": { "key": { "S": key } },
        "UpdateExpression": "SET #owner = :owner",
        "ConditionExpression": "attribute_not_exists(#key) OR attribute_not_exists(#owner)",
        "ExpressionAttributeNames": { "#owner": "owner", "#key": "key" },
        "ExpressionAttributeValues": { ":owner": { "S": owner } },
    })
}

/// A sandbox whose DynamoDB is reached through the proxy, with a lock table.
async fn started() -> Sandbox {
    let sandbox = builder().dynamodb(DynamoDb::Embedded).fault_proxy(true).start().await.unwrap();
    sandbox.tables().create_lock_table("locks").await.unwrap();
    sandbox
}

fn proxy(sandbox: &Sandbox) -> &FaultProxy {
    sandbox.faults().unwrap()
}

async fn owner(sandbox: &Sandbox, key: &str) -> Option<String> {
    let row = sandbox.tables().row("locks", key).await.unwrap();
    row.map(|row| row["owner"].as_s().unwrap().clone())
}

/// Waits until the key's row has this owner: what a client gave up goes on by itself.
async fn owned_by(sandbox: &Sandbox, key: &str, wanted: &str) {
    let polled = async {
        while owner(sandbox, key).await.as_deref() != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, polled).await.unwrap();
}

#[tokio::test]
async fn requests_pass_as_they_are_and_are_told() {
    let sandbox = started().await;
    let proxy = proxy(&sandbox);
    assert_eq!(sandbox.endpoint_url(), Some(proxy.url()));
    assert!(proxy.seen().is_empty(), "preparing the table goes past the proxy");
    let mut connection = Connection::open(proxy).await;
    let (status, headers, _) = connection.acquire("orders:1", "me").await.unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(headers.contains_key("date") && headers.contains_key("x-amzn-requestid"), "{headers:?}");
    let (status, _, refusal) = connection.acquire("orders:1", "you").await.unwrap();
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(refusal["__type"].as_str().unwrap().ends_with("ConditionalCheckFailedException"), "{refusal}");

    let seen = proxy.seen();
    let told: Vec<_> = seen.iter().map(|p| (p.number, p.step, p.key.as_deref(), p.owner.as_deref())).collect();
    let key = Some("orders:1");
    assert_eq!(told, [(0, Step::Acquire, key, Some("me")), (1, Step::Acquire, key, Some("you"))]);
    assert_eq!((proxy.count(Step::Acquire), proxy.count(Step::Renew)), (2, 0));
    assert_eq!(owner(&sandbox, "orders:1").await.as_deref(), Some("me"));
}

#[tokio::test]
async fn a_lost_request_is_not_carried_out_and_a_lost_reply_is() {
    let sandbox = started().await;
    for end in [End::Close, End::Reset] {
        for (fault, written) in [(Fault::LoseRequest(end), false), (Fault::LoseReply(end), true)] {
            let key = format!("{end:?} {written}");
            let injected = proxy(&sandbox).inject(Step::Acquire, 1, fault);
            let mut connection = Connection::open(proxy(&sandbox)).await;
            let error = connection.acquire(&key, "me").await.unwrap_err();
            let is_reset = format!("{error:?}").contains("ConnectionReset");
            assert_eq!(is_reset, end == End::Reset, "{key}: {error:?}");
            assert_eq!(injected.met().len(), 1);
            assert_eq!(owner(&sandbox, &key).await.is_some(), written, "{key}");
            assert!(connection.acquire(&key, "me").await.is_err(), "the connection is over");
        }
    }
}

#[tokio::test]
async fn silence_leaves_the_client_waiting_and_the_row_written_or_not() {
    let sandbox = started().await;
    for (key, fault, written) in
        [("asked", Fault::LoseRequest(End::Silence), false), ("answered", Fault::LoseReply(End::Silence), true)]
    {
        let injected = proxy(&sandbox).inject(Step::Acquire, 1, fault);
        let mut connection = Connection::open(proxy(&sandbox)).await;
        tokio::select! {
            reply = connection.acquire(key, "me") => panic!("{reply:?}"),
            met = injected.reached(LONG) => assert_eq!(met.unwrap().key.as_deref(), Some(key)),
        }
        assert_eq!(owner(&sandbox, key).await.is_some(), written, "{key}");
    }
}

#[tokio::test]
async fn what_is_late_arrives_although_its_client_has_gone() {
    let sandbox = started().await;
    let late = Duration::from_millis(300);
    let injected = proxy(&sandbox).inject(Step::Acquire, 1, Fault::DelayRequest(late));
    let mut connection = Connection::open(proxy(&sandbox)).await;
    tokio::select! {
        reply = connection.acquire("late", "me") => panic!("{reply:?}"),
        met = injected.reached(LONG) => drop(met.unwrap()),
    }
    drop(connection);
    owned_by(&sandbox, "late", "me").await;

    proxy(&sandbox).inject(Step::Acquire, 1, Fault::DelayReply(late));
    let sent = std::time::Instant::now();
    let (status, ..) = Connection::open(proxy(&sandbox)).await.acquire("slow", "me").await.unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(sent.elapsed() >= late);
}

#[tokio::test]
async fn a_held_request_waits_in_front_and_a_held_reply_behind() {
    let sandbox = started().await;
    for (key, fault, written) in [("request", Fault::HoldRequest, false), ("reply", Fault::HoldReply, true)] {
        let injected = proxy(&sandbox).inject(Step::Acquire, 1, fault);
        let mut connection = Connection::open(proxy(&sandbox)).await;
        let asked = tokio::spawn(async move { connection.acquire(key, "me").await });
        injected.reached(LONG).await.unwrap();
        assert_eq!(owner(&sandbox, key).await.is_some(), written, "{key}");
        assert!(!asked.is_finished());
        injected.open();
        assert_eq!(asked.await.unwrap().unwrap().0, StatusCode::OK);
        assert_eq!(owner(&sandbox, key).await.as_deref(), Some("me"));
    }
    let held = proxy(&sandbox).inject(Step::Acquire, 1, Fault::HoldRequest);
    let mut connection = Connection::open(proxy(&sandbox)).await;
    let asked = tokio::spawn(async move { connection.acquire("cleared", "me").await });
    held.reached(LONG).await.unwrap();
    proxy(&sandbox).clear();
    assert_eq!(asked.await.unwrap().unwrap().0, StatusCode::OK);
}

#[tokio::test]
async fn answers_that_dynamodb_did_not_give_come_with_their_name_and_a_date() {
    let sandbox = started().await;
    let mut connection = Connection::open(proxy(&sandbox)).await;
    let throttles = Answer::THROTTLES.map(|name| (Answer::throttled(name), 400, name));
    let others = [
        (Answer::server_error(500), 500, "InternalServerError"),
        (Answer::transaction_conflict(), 400, "TransactionConflictException"),
        (Answer::expired_token(), 400, "ExpiredTokenException"),
        (Answer::error(503, "ServiceUnavailable", "later"), 503, "ServiceUnavailable"),
    ];
    for (answer, status, name) in throttles.into_iter().chain(others) {
        proxy(&sandbox).inject(Step::Acquire, 1, Fault::Answer(answer.clone()));
        let (got, headers, body) = connection.acquire(name, "me").await.unwrap();
        assert_eq!(got, status);
        assert!(body["__type"].as_str().unwrap().ends_with(&format!("#{name}")), "{body}");
        assert!(headers.contains_key("date") && headers.contains_key("x-amzn-requestid"), "{headers:?}");
        assert_eq!(owner(&sandbox, name).await, None);

        proxy(&sandbox).inject(Step::Acquire, 1, Fault::AnswerAfterWrite(answer));
        assert_eq!(connection.acquire(name, "me").await.unwrap().0, status);
        assert_eq!(owner(&sandbox, name).await.as_deref(), Some("me"), "carried out all the same");
    }
}

#[tokio::test]
async fn a_reply_has_the_date_that_it_is_to_have() {
    let sandbox = started().await;
    let mut connection = Connection::open(proxy(&sandbox)).await;
    let mut date_under = async |date: DateHeader| {
        proxy(&sandbox).inject(Step::Acquire, 1, Fault::Date(date));
        let (_, headers, _) = connection.acquire("dated", "me").await.unwrap();
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        (text("date"), text("age"))
    };
    assert_eq!(date_under(DateHeader::Missing).await, (None, None));
    assert_eq!(date_under(DateHeader::Text("soon".to_owned())).await, (Some("soon".to_owned()), None));
    let (date, age) = date_under(DateHeader::Aged(7)).await;
    assert!(date.is_some() && age.as_deref() == Some("7"));
    let (date, _) = date_under(DateHeader::Shifted(-3_600)).await;
    let ago = std::time::SystemTime::now().duration_since(httpdate::parse_http_date(&date.unwrap()).unwrap()).unwrap();
    assert!(ago >= Duration::from_secs(3_600) && ago < Duration::from_secs(3_600) + LONG, "{ago:?}");
}

#[tokio::test]
async fn a_fault_meets_as_many_requests_as_asked_and_only_those_that_are_meant() {
    let sandbox = started().await;
    let proxy = proxy(&sandbox);
    let first = proxy.inject(Step::Acquire, 2, Fault::Answer(Answer::server_error(500)));
    let second = proxy.inject(Step::Acquire, 1, Fault::Answer(Answer::throttled("Throttling")));
    let renewals = proxy.inject(Step::Renew, 1, Fault::Answer(Answer::server_error(500)));
    let keyed = proxy.inject_where(usize::MAX, |passing| {
        (passing.key.as_deref() == Some("b")).then(|| Fault::Answer(Answer::transaction_conflict()))
    });
    let mut connection = Connection::open(proxy).await;
    let mut statuses = vec![];
    for key in ["a", "a", "a", "a", "b", "b"] {
        statuses.push(connection.acquire(key, "me").await.unwrap().0.as_u16());
    }
    assert_eq!(statuses, [500, 500, 400, 200, 400, 400]);
    assert_eq!([first.met().len(), second.met().len(), renewals.met().len(), keyed.met().len()], [2, 1, 0, 2]);
    assert_eq!(first.reached_by(2, LONG).await.unwrap().len(), 2);
    let problem = renewals.reached(Duration::ZERO).await.unwrap_err().to_string();
    assert!(problem.contains("fewer than 1"), "{problem}");
    proxy.clear();
    assert_eq!(connection.acquire("b", "me").await.unwrap().0, StatusCode::OK);
}

#[tokio::test]
async fn connections_can_be_cut_reset_and_refused() {
    let sandbox = started().await;
    let proxy = proxy(&sandbox);
    let mut cut = Connection::open(proxy).await;
    cut.acquire("a", "me").await.unwrap();
    let stream = TcpStream::connect(proxy.url().strip_prefix("http://").unwrap()).await.unwrap();
    // The kernel may take a connection before the proxy does: once it has answered, it is the proxy's.
    let mut buffer = [0; 64];
    stream.writable().await.unwrap();
    assert!(stream.try_write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap() > 0);
    while stream.try_read(&mut buffer).is_ok_and(|read| read > 0) || proxy.seen().len() < 2 {
        stream.readable().await.unwrap();
    }
    proxy.reset_connections();
    assert!(cut.acquire("b", "me").await.is_err());
    let end = loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut buffer) {
            Ok(0) => panic!("an end in good order"),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => break error,
        }
    };
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);

    let held = proxy.inject(Step::Acquire, 1, Fault::HoldRequest);
    let mut connection = Connection::open(proxy).await;
    let asked = tokio::spawn(async move { connection.acquire("c", "me").await });
    held.reached(LONG).await.unwrap();
    proxy.cut_connections();
    assert!(asked.await.unwrap().is_err());
    assert_eq!(owner(&sandbox, "c").await, None);
    held.open();
    owned_by(&sandbox, "c", "me").await;

    proxy.refuse_connections(true);
    let mut refused = Connection::open(proxy).await;
    assert!(refused.acquire("d", "me").await.is_err());
    proxy.refuse_connections(false);
    Connection::open(proxy).await.acquire("d", "me").await.unwrap();
}

#[tokio::test]
async fn a_proxy_with_nothing_behind_it_says_so() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = FaultProxy::start(&format!("http://{free}")).unwrap();
    let (status, _, body) = Connection::open(&proxy).await.acquire("a", "me").await.unwrap();
    assert_eq!(status, StatusCode::BAD_GATEWAY, "{body}");
    for wrong in ["nonsense", "https://127.0.0.1:1", ""] {
        assert!(FaultProxy::start(wrong).is_err(), "{wrong}");
    }
}
