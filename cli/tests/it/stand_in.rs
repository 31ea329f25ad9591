//! A stand-in for services that the embedded DynamoDB is not: it answers each request with given JSON.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

/// A request as it came: `GET /path`, or the operation of `X-Amz-Target`.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) what: String,
    pub(crate) body: Value,
    /// The id of the access key that signed it.
    pub(crate) key: String,
}

/// An answer: its status and JSON.
pub(crate) type Answer = (u16, Value);

/// An error by its name, as JSON services write it.
pub(crate) fn error(status: u16, code: &str, message: &str) -> Answer {
    (status, serde_json::json!({ "__type": code, "message": message, "Message": message }))
}

/// Starts it; its threads end with the test. Answers where it is found.
pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            // A client that goes away in the middle is no failure of the test.
            thread::spawn(move || drop(serve(&stream, &*answer)));
        }
    });
    url
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&Asked) -> Answer) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut target, mut key) = (String::new(), 0, None, String::new());
    reader.read_line(&mut line)?;
    let mut what = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => {
                let after = value.split_once("Credential=").map_or("", |(_, after)| after);
                key = after.split('/').next().unwrap_or_default().to_owned();
            }
            "x-amz-target" => target = value.rsplit('.').next().map(str::to_owned),
            _ => {}
        }
    }
    if let Some(target) = target {
        what = target;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, body) = answer(&Asked { what, body: serde_json::from_slice(&body).unwrap_or_default(), key });
    let code = body["__type"].as_str().map_or(String::new(), |code| format!("X-Amzn-ErrorType: {code}\r\n"));
    let body = body.to_string();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{code}X-Amzn-RequestId: 1\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
