//! Where an invocation's key comes from: the template over the raw event, or a closure over the deserialized one.

use std::fmt;

use lambda_runtime::{Context, LambdaEvent};

use super::sealed::Sealed;
use crate::error::{Error, KeyInvalid, KeyNotFound};
use crate::key::{ContextValues, LockKey, Namespace, Open, ResolveError, Template, names, opened};

/// Where a layer's keys come from, while its settings are collected: a template or a closure.
///
/// It keeps the settings of layers off [`Leasehold::builder`](super::Leasehold::builder), whose keys are named where leases
/// are taken. The trait is sealed.
pub trait LayerKeys: Sealed {}

/// Picks the key of an invocation.
///
/// [`LeaseLayer::builder`](super::LeaseLayer::builder) and [`keyed_by`](super::LeaseLayer::keyed_by) choose one. The trait
/// is sealed: write it in bounds, to be generic over layers.
pub trait KeySource<T>: Sealed {
    /// The key, from the event as it came and as the handler sees it.
    ///
    /// # Errors
    ///
    /// When the event gives no key.
    #[doc(hidden)]
    fn key(&self, raw: &str, event: &LambdaEvent<T>, namespace: Option<&Namespace>) -> Result<LockKey, Error>;
}

/// A template as it was written; `build` parses it.
#[derive(Clone, Debug)]
pub struct TemplateText(pub(super) String);

impl Sealed for TemplateText {}
impl LayerKeys for TemplateText {}

/// Keys by a template; see [`key`](crate::key).
#[derive(Clone, Debug)]
pub struct ByTemplate(pub(super) Template);

impl Sealed for ByTemplate {}

impl<T> KeySource<T> for ByTemplate {
    fn key(&self, raw: &str, event: &LambdaEvent<T>, namespace: Option<&Namespace>) -> Result<LockKey, Error> {
        by_template(&self.0, raw, &event.context, namespace)
    }
}

/// The key that a template makes of an event.
pub(super) fn by_template(
    template: &Template,
    raw: &str,
    context: &Context,
    namespace: Option<&Namespace>,
) -> Result<LockKey, Error> {
    template.resolve(namespace, raw, &values(context)).map_err(|error| no_key(template, error, raw, None))
}

/// Keys by a template over a record, which also looks into strings; see
/// [`Template::resolve_into_strings`](crate::key::Template::resolve_into_strings).
#[derive(Clone, Debug)]
pub struct ByRecordTemplate(pub(super) Template);

impl Sealed for ByRecordTemplate {}

impl<T> KeySource<T> for ByRecordTemplate {
    fn key(&self, raw: &str, event: &LambdaEvent<T>, namespace: Option<&Namespace>) -> Result<LockKey, Error> {
        let resolved = self.0.resolve_into_strings(namespace, raw, &values(&event.context));
        resolved.map_err(|error| no_key(&self.0, error, raw, Some(opened)))
    }
}

fn no_key(template: &Template, error: ResolveError, raw: &str, open: Option<Open>) -> Error {
    match error {
        ResolveError::Missing(missing) => {
            let has = missing.path.segments().get(..missing.depth).and_then(|steps| names(raw, steps, open));
            KeyNotFound { template: template.source().to_owned(), missing, has }.into()
        }
        error => KeyInvalid::from_template(template.source(), error).into(),
    }
}

fn values(context: &Context) -> ContextValues<'_> {
    ContextValues {
        function_name: &context.env_config.function_name,
        function_version: &context.env_config.version,
        tenant_id: context.tenant_id.as_deref(),
        request_id: &context.request_id,
    }
}

/// Keys by a closure; see [`LeaseLayer::keyed_by`](super::LeaseLayer::keyed_by).
pub struct ByClosure<F> {
    pick: F,
}

impl<F> Sealed for ByClosure<F> {}
impl<F> LayerKeys for ByClosure<F> {}

impl<F> ByClosure<F> {
    pub(super) const fn new(pick: F) -> Self {
        Self { pick }
    }
}

impl<T, F, Key, E> KeySource<T> for ByClosure<F>
where
    F: Fn(&LambdaEvent<T>) -> Result<Key, E>,
    Key: Into<String>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn key(&self, _raw: &str, event: &LambdaEvent<T>, namespace: Option<&Namespace>) -> Result<LockKey, Error> {
        let picked = (self.pick)(event).map_err(KeyInvalid::from_closure)?.into();
        // Checked by itself first: a namespace before an empty key would make it one for every event.
        let key = LockKey::new(picked).map_err(KeyInvalid::from_closure)?;
        match namespace {
            None => Ok(key),
            Some(namespace) => Ok(LockKey::new(format!("{namespace}/{key}")).map_err(KeyInvalid::from_closure)?),
        }
    }
}

impl<F> fmt::Debug for ByClosure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByClosure").finish_non_exhaustive()
    }
}
