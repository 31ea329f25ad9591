//! What a key's closure sees of a request.

use std::fmt;

use http::request::Parts;

use super::path::Params;

/// A request without its body, and the parameters that its path has.
///
/// It is what a closure of [`keyed_by`](crate::LeaseLayer::keyed_by) sees where the layer is one for routes.
///
/// ```
/// use lambda_runtime::LambdaEvent;
/// use leasehold::LeaseLayer;
/// use leasehold::layer::route::RouteRequest;
///
/// let lease = LeaseLayer::keyed_by(|request: &LambdaEvent<RouteRequest>| {
///     let request = &request.payload;
///     let tenant = request.parts().headers.get("x-tenant-id").ok_or("a request needs a tenant")?.to_str()?;
///     let order = request.param("id").ok_or("a request needs an order")?;
///     // Framed by its length, as a template would: no two pairs make one key.
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(format!("{}:{tenant}:{order}", tenant.len()))
/// })
/// .table("locks")
/// .per_route("/orders/{id}")
/// .build()?;
/// # Ok::<(), leasehold::SettingsError>(())
/// ```
pub struct RouteRequest {
    parts: Parts,
    params: Params,
}

impl RouteRequest {
    pub(super) const fn new(parts: Parts, params: Params) -> Self {
        Self { parts, params }
    }

    /// Method, URI, headers and extensions.
    #[must_use]
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// A parameter of the path, percent-decoded.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }

    pub(super) fn into_parts(self) -> Parts {
        self.parts
    }

    /// The parameters as a template reads them.
    pub(super) fn to_json(&self) -> String {
        let params = self.params.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        serde_json::Value::Object(params.collect()).to_string()
    }
}

// By hand: headers may hold what is not for a log.
impl fmt::Debug for RouteRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteRequest").field("method", &self.parts.method).finish_non_exhaustive()
    }
}
