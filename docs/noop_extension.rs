//! The least that an extension can be: it registers and calls Next. What `start_cost.py` measures others against.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

fn main() -> std::io::Result<()> {
    let api = std::env::var("AWS_LAMBDA_RUNTIME_API").map_err(std::io::Error::other)?;
    let program = std::env::args().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let body = r#"{"events":["INVOKE","SHUTDOWN"]}"#;
    let mut stream = TcpStream::connect(&api)?;
    let length = body.len();
    let register = format!(
        "POST /2020-01-01/extension/register HTTP/1.1\r\nhost: {api}\r\nlambda-extension-name: {name}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(register.as_bytes())?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer[..read]).to_ascii_lowercase();
    let id = answer.split("lambda-extension-identifier: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let next = format!(
        "GET /2020-01-01/extension/event/next HTTP/1.1\r\nhost: {api}\r\nlambda-extension-identifier: {id}\r\n\r\n"
    );
    stream.write_all(next.as_bytes())?;
    // Until the other side hangs up.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest)?;
    Ok(())
}
