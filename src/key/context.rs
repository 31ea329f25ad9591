//! The invocation's context, as far as a key may depend on it.

use std::fmt;

/// What a template's `{@…}` placeholders are filled with.
///
/// An empty text counts as absent: local emulators send those. Fields may be added: write `..ContextValues::default()`
/// behind those that you set.
///
/// ```
/// use leasehold::key::ContextValues;
///
/// let context = ContextValues { function_name: "billing", request_id: "r-1", ..ContextValues::default() };
/// assert_eq!(context.tenant_id, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextValues<'a> {
    /// The function's name.
    pub function_name: &'a str,
    /// The version that runs: a number, or `$LATEST`.
    pub function_version: &'a str,
    /// The tenant, where the function isolates tenants.
    pub tenant_id: Option<&'a str>,
    /// The invocation's request id. Lambda repeats it when it retries an asynchronous invocation.
    pub request_id: &'a str,
}

/// A value of the context that a template can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContextField {
    /// `{@function_name}`
    FunctionName,
    /// `{@function_version}`; splits the lock at every deployment.
    FunctionVersion,
    /// `{@tenant_id}`
    TenantId,
    /// `{@request_id}`
    RequestId,
}

impl ContextField {
    /// Every field, in the order of the documentation.
    pub(super) const ALL: [Self; 4] = [Self::FunctionName, Self::FunctionVersion, Self::TenantId, Self::RequestId];

    /// The field's name in a template, without the `@`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FunctionName => "function_name",
            Self::FunctionVersion => "function_version",
            Self::TenantId => "tenant_id",
            Self::RequestId => "request_id",
        }
    }

    /// This field's text, if the context has one.
    pub(super) fn of<'a>(self, values: &ContextValues<'a>) -> Option<&'a str> {
        let text = match self {
            Self::FunctionName => values.function_name,
            Self::FunctionVersion => values.function_version,
            Self::TenantId => values.tenant_id?,
            Self::RequestId => values.request_id,
        };
        (!text.is_empty()).then_some(text)
    }
}

impl fmt::Display for ContextField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name())
    }
}
