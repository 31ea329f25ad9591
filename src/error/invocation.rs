//! An invocation's error: the handler's own, passed on untouched, or the lease's.

use std::fmt;

use lambda_runtime::Diagnostic;
use serde_json::Value;

use super::Error;

/// What a handler under a layer fails with.
///
/// `lambda_runtime` turns it into the `errorType` and the message that the caller sees: the handler's own error as it
/// would without a layer, ours with the names that [`Error::error_type`] lists. In the log, too, the handler's error
/// looks as it did.
///
/// ```
/// use leasehold::{Error, InvocationError};
///
/// fn is_busy<E>(failed: &InvocationError<E>) -> bool {
///     matches!(failed, InvocationError::Lease { error: Error::LeaseBusy(_), .. })
/// }
/// # let _ = is_busy::<Error>;
/// ```
#[non_exhaustive]
pub enum InvocationError<E> {
    /// The handler failed, or was not ready.
    Handler(E),
    /// There is no lease, or no more; the handler's own answer, if it had one, is not given.
    #[non_exhaustive]
    Lease {
        /// Why.
        error: Error,
        /// What the caller reads in place of the error's text, where the layer was told to answer so
        /// ([`AnswerFor::step_functions`](crate::layer::AnswerFor::step_functions)): a JSON document with a `message` for
        /// people and what else there is to know, such as `holder`, `waitedMs` and `retryAfterMs` of a busy key.
        cause: Option<Value>,
    },
}

impl<E> InvocationError<E> {
    /// The lease's error, if it is not the handler's own.
    #[must_use]
    pub const fn lease_error(&self) -> Option<&Error> {
        match self {
            Self::Handler(_) => None,
            Self::Lease { error, .. } => Some(error),
        }
    }
}

impl<E> From<Error> for InvocationError<E> {
    fn from(error: Error) -> Self {
        Self::Lease { error, cause: None }
    }
}

impl<E: fmt::Debug> fmt::Debug for InvocationError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(error) => error.fmt(f),
            Self::Lease { error, .. } => fmt::Debug::fmt(error, f),
        }
    }
}

impl<E: fmt::Display> fmt::Display for InvocationError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(error) => error.fmt(f),
            Self::Lease { error, .. } => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for InvocationError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Handler(error) => error.source(),
            Self::Lease { error, .. } => error.source(),
        }
    }
}

impl<E: Into<Diagnostic>> From<InvocationError<E>> for Diagnostic {
    fn from(error: InvocationError<E>) -> Self {
        match error {
            InvocationError::Handler(error) => error.into(),
            InvocationError::Lease { error, cause: None } => error.into(),
            InvocationError::Lease { error, cause: Some(cause) } => {
                // As responses are written: `to_string` has the means of writing JSON in lines as well.
                let error_message = serde_json::to_string(&cause).unwrap_or_else(|_| error.to_string());
                Self { error_type: error.error_type().to_owned(), error_message }
            }
        }
    }
}
