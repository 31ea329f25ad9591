//! The Runtime API and the Extensions API of one environment, over HTTP on the loopback interface.
//!
//! This room only translates: a request becomes a [`Call`] in the environment's mailbox, and the environment's
//! [`Reply`] becomes the response. All decisions are the environment's.

mod body;
mod reply;
mod route;

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinSet,
};

pub(crate) use self::reply::Reply;
use crate::{environment::Message, invocation::InvocationError, task::OwnedTask};

/// A request of a runtime or an extension.
#[derive(Debug)]
pub(crate) enum Call {
    /// `GET /runtime/invocation/next`
    RuntimeNext,
    /// `POST /runtime/invocation/{id}/response`
    Response { request_id: String, posted: Posted },
    /// `POST /runtime/invocation/{id}/error`
    HandlerError { request_id: String, error: InvocationError },
    /// `POST /runtime/init/error`
    RuntimeInitError { error: InvocationError },
    /// `POST /extension/register`
    Register { name: String, events: Vec<String>, wants_account: bool },
    /// `GET /extension/event/next`
    ExtensionNext { id: String },
    /// `POST /extension/init/error` and `POST /extension/exit/error`
    ExtensionError { id: String, during: During, error: InvocationError },
}

/// Which of its two error calls an extension made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    Init,
    Exit,
}

/// A response body that has come in whole.
#[derive(Debug)]
pub(crate) enum Posted {
    /// A response within its limit.
    Whole { body: Bytes, content_type: Option<String>, streamed: bool },
    /// A stream that the handler ended with an error.
    Broken(InvocationError),
    /// A response over the limit.
    TooLarge,
}

/// The line back to the process that asked. The process is gone when it is closed.
pub(crate) type Replier = oneshot::Sender<Reply>;

/// Sends an environment's mailbox what its processes ask.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    pub(crate) sender: mpsc::UnboundedSender<Message>,
    /// The initialization that the connection belongs to.
    pub(crate) init: u32,
}

/// The server for one initialization; dropping it closes its connections, the listener stays open.
#[derive(Debug)]
pub(crate) struct Server {
    _task: OwnedTask,
}

impl Server {
    pub(crate) fn start(listener: Arc<TcpListener>, mailbox: Mailbox) -> Self {
        Self { _task: OwnedTask::spawn(accept(listener, mailbox)) }
    }
}

/// Accepts until aborted. The connections are tasks of this one and end with it.
async fn accept(listener: Arc<TcpListener>, mailbox: Mailbox) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Small packets both ways: waiting to fill them costs milliseconds.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "no-delay could not be set");
                    }
                    connections.spawn(serve(TokioIo::new(stream), mailbox.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(io: TokioIo<tokio::net::TcpStream>, mailbox: Mailbox) {
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let mailbox = mailbox.clone();
        async move { Ok::<_, Infallible>(answer(request, mailbox).await.into_http()) }
    });
    // A process waits in Next for as long as it is frozen: no timeout on its side of the connection.
    let served = http1::Builder::new().header_read_timeout(None).serve_connection(io, service).await;
    if let Err(error) = served {
        // Usual: a killed process doesn't say goodbye.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Hands the request to the environment and waits for its reply, which for Next may take until the next invocation.
async fn answer(request: hyper::Request<Incoming>, mailbox: Mailbox) -> Reply {
    let call = match route::call(request, &mailbox).await {
        Ok(call) => call,
        Err(reply) => return reply,
    };
    let (replier, reply) = oneshot::channel();
    let message = Message::Call { init: mailbox.init, call, replier };
    if mailbox.sender.send(message).is_err() {
        return Reply::gone();
    }
    reply.await.unwrap_or_else(|_| Reply::gone())
}
