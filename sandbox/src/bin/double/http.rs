//! As much of an HTTP client as the two APIs need, over one blocking connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A connection to the sandbox.
#[derive(Debug)]
pub(crate) struct Connection {
    host: String,
    stream: BufReader<TcpStream>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    pub(crate) fn open() -> io::Result<Self> {
        let host = super::setting("AWS_LAMBDA_RUNTIME_API");
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(Self { host, stream: BufReader::new(stream) })
    }

    pub(crate) fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        self.send("GET", path, headers, b"")
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        self.send("POST", path, headers, body)
    }

    fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        all.push(("content-length", &length));
        self.head(method, path, &all)?;
        self.write(body)?;
        self.answer()
    }

    /// Posts a body in chunks, with trailers after it.
    pub(crate) fn stream(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        chunks: &[&str],
        trailers: &[(&str, &str)],
    ) -> io::Result<Answer> {
        let mut all = headers.to_vec();
        all.push(("transfer-encoding", "chunked"));
        self.head("POST", path, &all)?;
        for chunk in chunks {
            self.write(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes())?;
        }
        let lines: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        self.write(format!("0\r\n{lines}\r\n").as_bytes())?;
        self.answer()
    }

    fn head(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<()> {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{lines}\r\n", self.host);
        self.write(head.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status in the answer"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the sandbox closed the connection"));
        }
        Ok(line.trim_end().to_owned())
    }
}
