//! A stack's functions behind Lambda's own API: what a caller over HTTP is answered.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leasehold_sandbox::{EventKind, LambdaApi, Stack, StackFunction};

use crate::{LONG, double, steps};

/// The whole answer to a request, head and body.
async fn ask(api: &LambdaApi, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = api.url().trim_start_matches("http://").to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

async fn serve(function: StackFunction) -> LambdaApi {
    LambdaApi::start(Stack::new("mine").function(function), "http://127.0.0.1:9").await.unwrap()
}

const INVOKE: &str = "/2015-03-31/functions/tested/invocations";

#[tokio::test]
async fn answers_have_lambdas_form() {
    let api = serve(StackFunction::new("tested", double()).extension(double()).timeout(LONG)).await;
    let (head, _) = ask(&api, "POST", INVOKE, "x-amz-log-type: Tail\r\n", &steps(&[]).to_string()).await;
    assert!(head.starts_with("http/1.1 200") && !head.contains("x-amz-function-error"), "{head}");
    let tail = head.lines().find_map(|line| line.strip_prefix("x-amz-log-result: ")).unwrap();
    // 4 KB in base64, at most.
    assert!(!tail.is_empty() && tail.len() <= 4 * 1024 * 4 / 3 + 4, "{}", tail.len());

    let (head, body) = ask(&api, "POST", INVOKE, "", &steps(&["fail:told to"]).to_string()).await;
    assert!(head.contains("x-amz-function-error: unhandled") && body.contains("Double.Failed"), "{head}\n{body}");
    let (head, _) = ask(&api, "POST", "/2015-03-31/functions/other/invocations", "", "{}").await;
    assert!(head.starts_with("http/1.1 404") && head.contains("x-amzn-errortype: resourcenotfoundexception"), "{head}");

    let arn = "arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Afunction%3Atested";
    let (_, body) = ask(&api, "GET", &format!("/2015-03-31/functions/{arn}/configuration"), "", "").await;
    let told: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&told["State"], &told["Timeout"]), (&"Active".into(), &60.into()), "{told}");

    let invoked = |event: &leasehold_sandbox::Event| matches!(event.kind, EventKind::InvocationAnswered { .. });
    let log = api.sandbox("tested").unwrap().log();
    let mark = log.len();
    let (head, _) = ask(&api, "POST", INVOKE, "x-amz-invocation-type: Event\r\n", &steps(&[]).to_string()).await;
    assert!(head.starts_with("http/1.1 202"), "{head}");
    log.wait_for_after(mark, invoked, LONG).await.unwrap();
}

#[tokio::test]
async fn what_is_no_json_reaches_no_function_and_nothing_is_an_empty_object() {
    let api = serve(StackFunction::new("tested", double()).extension(double()).timeout(LONG)).await;
    for asynchronous in ["", "x-amz-invocation-type: Event\r\n"] {
        let (head, body) = ask(&api, "POST", INVOKE, asynchronous, "{\"steps\": [").await;
        assert!(head.starts_with("http/1.1 400") && head.contains("invalidrequestcontentexception"), "{head}\n{body}");
    }
    let received = |event: &leasehold_sandbox::Event| matches!(event.kind, EventKind::InvocationAnswered { .. });
    assert_eq!(api.sandbox("tested").unwrap().log().events().iter().filter(|event| received(event)).count(), 0);
    let (head, _) = ask(&api, "POST", INVOKE, "", "").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[tokio::test]
async fn a_function_that_is_busy_or_not_ready_is_refused_as_lambda_refuses_it() {
    let api = serve(StackFunction::new("tested", double()).pending_for(LONG)).await;
    let (head, _) = ask(&api, "POST", INVOKE, "", "{}").await;
    assert!(head.starts_with("http/1.1 409") && head.contains("resourceconflictexception"), "{head}");

    let api = serve(StackFunction::new("tested", double()).extension(double()).concurrency(1).timeout(LONG)).await;
    let sandbox = api.sandbox("tested").unwrap();
    let busy = sandbox.start_invocation(steps(&["sleep:60000"]));
    sandbox.log().wait_for(crate::invoked, LONG).await.unwrap();
    let (head, body) = ask(&api, "POST", INVOKE, "", "{}").await;
    assert!(head.starts_with("http/1.1 429") && head.contains("toomanyrequestsexception"), "{head}\n{body}");
    sandbox.environment(0).kill_runtime().await.unwrap();
    let _ = tokio::time::timeout(Duration::from_secs(60), busy.outcome()).await.unwrap();
}
