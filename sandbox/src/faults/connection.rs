//! One client's connection to the proxy.

use std::{
    fmt,
    sync::{Arc, PoisonError},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt::set_socket_linger;
use tokio::{net::TcpStream, sync::oneshot, time::sleep};

use super::{Answer, End, Fault, Passing, Shared, rules::Verdict};

/// What comes of a request for its client.
type Reply = Result<Response<Full<Bytes>>, Ended>;

/// The connection ends without a reply.
#[derive(Debug)]
struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection ends here, on purpose")
    }
}

impl std::error::Error for Ended {}

/// Serves the connection until either side ends it or all are cut.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let (stream, socket) = match prepare(stream) {
        Ok((stream, socket)) => (stream, Arc::new(socket)),
        Err(error) => return tracing::warn!(%error, "a connection to the fault proxy can't be used"),
    };
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
        async move { answer(request, shared, &socket).await }
    });
    let mut http = http1::Builder::new();
    // Left to itself, hyper gives every reply a `Date`, also one that is to have none.
    let served = http.header_read_timeout(None).auto_date_header(false).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a connection through the fault proxy ended early");
        },
        _ = cuts.changed() => if cuts.borrow().reset {
            make_reset(&socket);
        }
    }
}

/// The stream to serve, and a second name for its socket, by which its end can be made a reset.
fn prepare(stream: TcpStream) -> std::io::Result<(TcpStream, std::net::TcpStream)> {
    stream.set_nodelay(true)?;
    let socket = stream.into_std()?;
    let stream = TcpStream::from_std(socket.try_clone()?)?;
    Ok((stream, socket))
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>, socket: &std::net::TcpStream) -> Reply {
    let (parts, body) = request.into_parts();
    // A client that went away in the middle of its request: nothing to answer.
    let body = body.collect().await.map_err(|_| Ended)?.to_bytes();
    let passing = {
        let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let passing = Passing::of(seen.len() as u64, &parts.headers, &body);
        seen.push(passing.clone());
        passing
    };
    let verdict = shared.rules.judge(&passing);
    let way = Way { shared: &shared, parts, body };
    let Some(verdict) = verdict else { return way.pass().await };
    tracing::debug!(?passing, fault = ?verdict.fault, "a request meets a fault");
    meet(verdict, way, socket).await
}

async fn meet(verdict: Verdict, way: Way<'_>, socket: &std::net::TcpStream) -> Reply {
    match verdict.fault.clone() {
        Fault::None => {
            verdict.meet();
            way.pass().await
        }
        Fault::LoseRequest(by) => {
            verdict.meet();
            end(by, socket).await
        }
        Fault::LoseReply(by) => {
            way.pass().await?;
            verdict.meet();
            end(by, socket).await
        }
        Fault::DelayRequest(delay) => {
            verdict.meet();
            way.after(sleep(delay), || {}).await
        }
        Fault::DelayReply(delay) => {
            let reply = way.pass().await;
            verdict.meet();
            sleep(delay).await;
            reply
        }
        Fault::Answer(answer) => {
            verdict.meet();
            Ok(answer.into_http())
        }
        Fault::AnswerAfterWrite(answer) => {
            way.pass().await?;
            verdict.meet();
            Ok(answer.into_http())
        }
        Fault::Date(date) => {
            let mut reply = way.pass().await?;
            date.apply(reply.headers_mut());
            verdict.meet();
            Ok(reply)
        }
        Fault::HoldRequest => {
            verdict.meet();
            let carried_out = verdict.carried_out();
            way.after(async move { verdict.opened().await }, carried_out).await
        }
        Fault::HoldReply => {
            let reply = way.pass().await;
            verdict.meet();
            verdict.opened().await;
            reply
        }
    }
}

/// A request on its way to DynamoDB.
struct Way<'a> {
    shared: &'a Arc<Shared>,
    parts: Parts,
    body: Bytes,
}

impl Way<'_> {
    async fn pass(self) -> Reply {
        self.after(std::future::ready(()), || {}).await
    }

    /// Forwards it in a task of its own, once something else is over, and then tells so: a client that hangs up does not
    /// take back what is on its way. The task ends with the proxy's executor.
    async fn after(
        self,
        before: impl Future<Output = ()> + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> Reply {
        let (sender, receiver) = oneshot::channel();
        let upstream = self.shared.upstream.clone();
        drop(tokio::spawn(async move {
            before.await;
            let reply = upstream.forward(self.parts, self.body).await;
            then();
            // Whoever asked may be gone.
            let _ = sender.send(reply);
        }));
        match receiver.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(problem)) => {
                tracing::warn!(problem, "DynamoDB could not be reached by the fault proxy");
                Ok(Answer::error(502, "BadGateway", &problem).into_http())
            }
            Err(_) => Err(Ended),
        }
    }
}

async fn end(by: End, socket: &std::net::TcpStream) -> Reply {
    match by {
        End::Close => {}
        End::Reset => make_reset(socket),
        End::Silence => std::future::pending().await,
    }
    Err(Ended)
}

/// The socket's end, when it comes, is a reset.
fn make_reset(socket: &std::net::TcpStream) {
    if let Err(error) = set_socket_linger(socket, Some(Duration::ZERO)) {
        tracing::warn!(%error, "a connection could not be made to end by a reset");
    }
}
