//! What is locked: a template over the event, and the key it resolves to.
//!
//! A [`Template`] is parsed once, when the layer is built, so that a mistake in it shows before the first event. Each
//! invocation then resolves it in one pass over the event's raw JSON. The rules are strict on purpose: a key that was
//! made up from a missing or odd value would put unrelated events behind one lock, or related ones behind two.
//!
//! ```text
//! orders:{detail.orderId}             one value, inserted as it is     orders:A-17
//! {tenant}:{id}                       two, framed by their lengths     4:acme:3:123
//! {Records[0].body}                   an element of an array
//! {headers["x-tenant-id"]}            a name with other characters, written as a JSON string
//! {@function_name}:{id}               a value of the invocation's context
//! literal {{braces}}                  no value at all: a constant key
//! ```
//!
//! | in a template | means |
//! |---|---|
//! | `{a.b}` | the value under the names `a` and `b`; a plain name has ASCII letters, digits and `_` |
//! | `[0]` | an array's element, counted from 0 |
//! | `["x-id"]` | a name as a JSON string, its escapes included |
//! | `{@function_name}`, `{@function_version}`, `{@tenant_id}`, `{@request_id}` | a value of the context |
//! | `{{`, `}}` | a brace |

mod context;
mod found;
mod hash;
mod lock_key;
mod names;
mod namespace;
mod nested;
mod parse;
mod parse_error;
mod path;
mod pick;
mod resolve_error;
mod template;
mod tree;

#[cfg(test)]
mod tests;

pub use context::{ContextField, ContextValues};
pub use found::Found;
pub use hash::KeyHash;
pub use lock_key::{KeyError, LockKey, MAX_KEY_BYTES};
pub(crate) use names::names;
pub use namespace::{Namespace, NamespaceError};
pub(crate) use nested::{Open, opened};
pub use parse_error::{TemplateError, TemplateErrorKind};
pub use path::{Path, Segment};
pub use resolve_error::{ContextMissing, DuplicateName, EventUnreadable, PathMissing, ResolveError, UnusableValue};
pub use template::{Placeholder, Template};
