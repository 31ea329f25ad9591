//! A second key that is locked beside the layer's own, while a deployment changes the template.

use super::LeaseLayerBuilder;
use crate::key::Template;
use crate::layer::LayerKeys;

impl<T, K: LayerKeys, B> LeaseLayerBuilder<T, K, B> {
    /// Locks the key of this template as well, for the time in which a deployment changes the template.
    ///
    /// While the old version and the new one both run, the one locks by the old template and the other by the new: they
    /// would not exclude each other. Deploy the new template with the old one as `also`; once no old version runs any
    /// more, take it out again.
    ///
    /// Both keys are taken one after the other within one `max_wait`, in the order of their bytes, whichever is the `also`:
    /// so no two invocations wait for each other. `LeaseBusy` names the one that was busy. The loss of one is the loss of
    /// the lease, and both are given back, the last one first. [`Lease::key`](crate::Lease::key) and the fencing token
    /// are those of the layer's own key; `ensure_held` and guarded transactions check both rows. Where both templates give
    /// one text, there is one lock. An event that has no value for this template is an error, or, as
    /// [`missing_path`](Self::missing_path) says, takes the layer's own key only.
    ///
    /// It is for layers over whole events, not for single records of a batch.
    ///
    /// ```
    /// use leasehold::LeaseLayer;
    /// use serde_json::Value;
    ///
    /// let lease = LeaseLayer::<Value>::builder("orders:{detail.tenant}:{detail.orderId}")
    ///     .also("orders:{detail.orderId}") // as it was until now
    ///     .table("locks")
    ///     .build()?;
    /// # Ok::<(), leasehold::SettingsError>(())
    /// ```
    pub fn also(mut self, template: impl Into<String>) -> Self {
        self.draft.also = Some(template.into());
        self
    }
}

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    /// What is wrong with a second template where there is no whole event to take a second key from.
    pub(in crate::layer) fn no_also(&self, instead: &str) -> Option<String> {
        let also = self.draft.also.as_deref()?;
        Some(format!("`also` (`{also}`) is for layers over whole events: {instead}"))
    }
}

/// What is wrong with a second template beside a layer's own one.
pub(super) fn also_problem(also: Option<&str>, own: &str) -> Option<String> {
    let normal = |source| Template::parse(source).map(|template| template.to_string()).ok();
    (normal(also?)? == normal(own)?).then(|| {
        format!("`also` is the layer's own template `{own}`: name the one that it replaces, or take `also` out")
    })
}
