//! Stops around the layer and within it, at steps of an invocation that nothing outside of the process can hold it at.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::Service;
use serde::Deserialize;
use serde_json::value::RawValue;
use tower::Layer;
use tower::layer::layer_fn;

use crate::gates::Gate;
use crate::work::now_us;

/// Where an invocation is to stop until its gate `stop` is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stop {
    /// Nowhere.
    #[default]
    Nowhere,
    /// Before the layer is polled for the first time.
    BeforeBegin,
    /// When the layer has sent `begin` and waits for the handler to be ready.
    BeginSent,
    /// Once its gate `unread` is open: the layer then reads no more of what the keeper says.
    Unread,
}

/// What the stops need of an event.
#[derive(Debug, Deserialize)]
struct Wanted {
    name: String,
    #[serde(default)]
    stop: Stop,
}

type Response<S> = Pin<Box<dyn Future<Output = Answer<S>> + Send>>;
type Answer<S> =
    Result<<S as Service<LambdaEvent<Box<RawValue>>>>::Response, <S as Service<LambdaEvent<Box<RawValue>>>>::Error>;

/// What the inner stop waits for; one invocation runs at a time.
type Readiness = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// The layers for both sides of the one that is tested.
pub(crate) fn both<S, T>() -> (impl Layer<S, Service = Outside<S>> + Clone, impl Layer<T, Service = Inside<T>> + Clone)
{
    let readiness = Readiness::default();
    let inner = readiness.clone();
    (
        layer_fn(move |service| Outside { service, readiness: readiness.clone() }),
        layer_fn(move |service| Inside { service, readiness: inner.clone() }),
    )
}

/// Stops before the first poll, and between polls.
#[derive(Clone)]
pub(crate) struct Outside<S> {
    service: S,
    readiness: Readiness,
}

impl<S> Service<LambdaEvent<Box<RawValue>>> for Outside<S>
where
    S: Service<LambdaEvent<Box<RawValue>>, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Response<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        let wanted = serde_json::from_str::<Wanted>(event.payload.get());
        let request = event.context.request_id.clone();
        // Nothing happens before its first poll.
        let response = self.service.call(event);
        let Ok(Wanted { name, stop }) = wanted else { return Box::pin(response) };
        let gate = Gate::new(&name, "stop");
        match stop {
            Stop::Nowhere => Box::pin(response),
            Stop::BeforeBegin => Box::pin(async move {
                stopped(&request, gate).await;
                response.await
            }),
            Stop::BeginSent => {
                let hesitation = Box::pin(async move { stopped(&request, gate).await });
                *self.readiness.lock().unwrap_or_else(PoisonError::into_inner) = Some(hesitation);
                Box::pin(response)
            }
            Stop::Unread => Box::pin(async move {
                let mut response = Box::pin(response);
                tokio::select! {
                    biased;
                    () = Gate::new(&name, "unread").passed() => {}
                    answer = &mut response => return answer,
                }
                stopped(&request, gate).await;
                response.await
            }),
        }
    }
}

/// Stops the layer where it waits for its handler to be ready: the session has begun, the lease is not asked for.
#[derive(Clone)]
pub(crate) struct Inside<S> {
    service: S,
    readiness: Readiness,
}

impl<S, E> Service<E> for Inside<S>
where
    S: Service<E>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let mut readiness = self.readiness.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hesitation) = &mut *readiness {
            ready!(hesitation.as_mut().poll(cx));
            *readiness = None;
        }
        drop(readiness);
        self.service.poll_ready(cx)
    }

    fn call(&mut self, event: E) -> Self::Future {
        self.service.call(event)
    }
}

async fn stopped(request: &str, gate: Gate) {
    tracing::info!(request, at_us = now_us(), "stopped");
    gate.passed().await;
}
