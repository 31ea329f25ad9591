//! A route layer's own settings, beside those of the layer that it was begun as.

use std::fmt;
use std::sync::Arc;

use http::Response;

use super::begun::ContextMissed;
use super::path::{Paths, names};
use super::refusal::Refusals;
use super::{ProblemDetails, RouteLayer, RouteRequest, Shape};
use crate::error::{Error, SettingsError};
use crate::key::{Placeholder, Segment, Template};
use crate::layer::answers::OnRefusal;
use crate::layer::answers::http::BusyStatus;
use crate::layer::key_source::{ByClosure, ByTemplate, TemplateText};
use crate::layer::{LayerKeys, LeaseLayerBuilder, Plan};

const NO_ALSO: &str = "put a second route layer with that template around the route instead";

impl<K: LayerKeys> LeaseLayerBuilder<RouteRequest, K> {
    /// Makes it a layer around single routes of an HTTP service, over `http::Request`: for axum's routers and for
    /// `lambda_http`'s handlers. See [`route`](crate::layer::route).
    ///
    /// The template's values are the path's parameters then: `route` is the path with their names, `/orders/{id}`, as
    /// axum writes it.
    pub fn per_route(self, route: impl Into<String>) -> RouteLayerBuilder<K> {
        RouteLayerBuilder { layer: self, routes: vec![route.into()], busy: BusyStatus::Locked, answers: ProblemDetails }
    }
}

/// Collects the settings of a [`RouteLayer`]; [`LeaseLayerBuilder::per_route`] begins one.
#[must_use = "a layer is made by `build`"]
pub struct RouteLayerBuilder<K = TemplateText, A = ProblemDetails> {
    layer: LeaseLayerBuilder<RouteRequest, K>,
    routes: Vec<String>,
    busy: BusyStatus,
    answers: A,
}

impl<K, A> RouteLayerBuilder<K, A> {
    /// One more route that the layer stands around: each has to have the parameters of the template.
    pub fn route(mut self, route: impl Into<String>) -> Self {
        self.routes.push(route.into());
        self
    }

    /// Answers a busy key with 409 Conflict instead of 423 Locked.
    pub const fn busy_is_conflict(mut self) -> Self {
        self.busy = BusyStatus::Conflict;
        self
    }

    /// Answers refusals with a response that a closure makes, of the error and of what would be answered without it.
    ///
    /// The response's body is the routes' own: needed where that is not made of a `String`, as axum's and
    /// `lambda_http`'s are.
    ///
    /// ```
    /// use http::{HeaderValue, Response};
    /// use leasehold::LeaseLayer;
    ///
    /// let lease = LeaseLayer::builder("orders:{id}")
    ///     .table("locks")
    ///     .per_route("/orders/{id}")
    ///     .on_refusal(|error, mut problem: Response<String>| {
    ///         problem.headers_mut().insert("x-error", HeaderValue::from_static(error.error_type()));
    ///         problem.map(axum::body::Body::from)
    ///     })
    ///     .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn on_refusal<R, F>(self, respond: F) -> RouteLayerBuilder<K, OnRefusal<F>>
    where
        F: Fn(&Error, Response<String>) -> Response<R>,
    {
        let Self { layer, routes, busy, answers: _ } = self;
        RouteLayerBuilder { layer, routes, busy, answers: OnRefusal(respond) }
    }
}

impl<A> RouteLayerBuilder<TemplateText, A> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is: in the routes, in the template, values of which no route has
    /// among them, in the code's settings and in the environment's.
    pub fn build(self) -> Result<RouteLayer<ByTemplate, A>, SettingsError> {
        let Self { layer, routes, busy, answers } = self;
        let mut problems = Vec::new();
        let paths = Paths::parse(routes, &mut problems);
        let (TemplateText(source), rest) = layer.without_keys();
        problems.extend(rest.no_also(NO_ALSO));
        let template = Template::parse(&source);
        if let Ok(template) = &template {
            problems.extend(paths.routes().iter().flat_map(|route| without_parameter(template, route)));
            if let Some(warning) = template.warning() {
                tracing::warn!("{warning}");
            }
        }
        let keys = template.map(ByTemplate).map_err(|error| error.to_string());
        let plan = rest.plan(source, keys, problems)?;
        Ok(layer_of(plan, paths, Refusals { busy, answers }))
    }
}

impl<F, A> RouteLayerBuilder<ByClosure<F>, A> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is, in the routes, in the code's settings and in the environment's.
    pub fn build(self) -> Result<RouteLayer<ByClosure<F>, A>, SettingsError> {
        let Self { layer, routes, busy, answers } = self;
        let mut problems = Vec::new();
        let paths = Paths::parse(routes, &mut problems);
        let (keys, rest) = layer.without_keys();
        problems.extend(rest.no_also(NO_ALSO));
        let plan = rest.plan("keyed_by".to_owned(), Ok(keys), problems)?;
        Ok(layer_of(plan, paths, Refusals { busy, answers }))
    }
}

fn layer_of<K, A>(plan: Plan<K>, paths: Paths, refusals: Refusals<A>) -> RouteLayer<K, A> {
    let shape = Shape { paths, refusals, missed: ContextMissed::default() };
    RouteLayer { plan: Arc::new(plan), shape: Arc::new(shape) }
}

/// The values of the template that no request of this route has.
fn without_parameter(template: &Template, route: &str) -> Vec<String> {
    let names = names(route);
    let missing = template.placeholders().filter_map(|placeholder| {
        let Placeholder::Event(path) = placeholder else { return None };
        let has_it = matches!(path.segments(), [Segment::Name(name)] if names.contains(&name.as_str()));
        let has = if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) };
        (!has_it).then(|| {
            format!("the key template has `{{{path}}}`, which the route `{route}` does not: its parameters are {has}")
        })
    });
    missing.collect()
}

impl<K, A> fmt::Debug for RouteLayerBuilder<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteLayerBuilder")
            .field("layer", &self.layer)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
