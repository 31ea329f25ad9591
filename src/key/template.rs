//! The template: parsed once, resolved for every event.

use std::fmt::{self, Write as _};

use super::context::{ContextField, ContextValues};
use super::lock_key::{LockKey, MAX_KEY_BYTES};
use super::namespace::Namespace;
use super::parse::{Token, tokens};
use super::parse_error::{TemplateError, TemplateErrorKind};
use super::path::Path;
use super::pick::{Slot, pick, pick_into_strings};
use super::resolve_error::{ContextMissing, DuplicateName, EventUnreadable, PathMissing, ResolveError, UnusableValue};
use super::tree::{Node, Paths};

/// How a key is made from an event; [the module](super) has the grammar.
///
/// Parse it where the function starts, resolve it for each event. With one placeholder the value goes in as it is; with
/// two or more each is preceded by its length in bytes, so that two events share a key only if they share all values.
/// pydynox frames its keys the same way.
///
/// ```
/// use leasehold::key::{ContextValues, Namespace, Template};
///
/// let template = Template::parse("{tenant}:{id}")?;
/// let event = r#"{"tenant": "acme", "id": 123}"#;
/// let key = template.resolve(None, event, &ContextValues::default())?;
/// assert_eq!(key.as_str(), "4:acme:3:123");
///
/// let namespace = Namespace::parse("billing-prod")?;
/// let key = Template::parse("orders:{id}")?.resolve(Some(&namespace), event, &ContextValues::default())?;
/// assert_eq!(key.as_str(), "billing-prod/orders:123");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It prints in a normal form, which parses to the same template; [`source`](Self::source) is what was written.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    pieces: Vec<Piece>,
    paths: Paths,
    framed: bool,
}

/// What a placeholder of a [`Template`] stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placeholder {
    /// A value in the event.
    Event(Path),
    /// A value of the invocation's context.
    Context(ContextField),
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(path) => path.fmt(f),
            Self::Context(field) => field.fmt(f),
        }
    }
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    /// `slot` means something for a value in the event only.
    Value {
        placeholder: Placeholder,
        slot: usize,
    },
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] with the byte offset and what to write instead. Refused too is what no event could ever
    /// resolve: text that is too long for a key, and paths that contradict each other, such as `{a}` and `{a.b}`.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let tokens = tokens(source)?;
        if tokens.is_empty() {
            return Err(TemplateError::new(source, 0, TemplateErrorKind::Empty));
        }
        let framed = tokens.iter().filter(|token| matches!(token, Token::Placeholder(..))).nth(1).is_some();
        let mut paths = Paths::default();
        let mut pieces = Vec::with_capacity(tokens.len());
        let mut shortest = 0;
        for token in tokens {
            let piece = match token {
                Token::Text(text) => {
                    shortest += text.len();
                    Piece::Text(text)
                }
                Token::Placeholder(offset, placeholder) => {
                    shortest += if framed { "1:x".len() } else { "x".len() };
                    let slot = match &placeholder {
                        Placeholder::Context(_) => 0,
                        Placeholder::Event(path) => paths.add(path).map_err(|other| {
                            let kind = TemplateErrorKind::Contradiction { path: path.clone(), other };
                            TemplateError::new(source, offset, kind)
                        })?,
                    };
                    Piece::Value { placeholder, slot }
                }
            };
            pieces.push(piece);
        }
        if shortest > MAX_KEY_BYTES {
            return Err(TemplateError::new(source, 0, TemplateErrorKind::TooLong));
        }
        Ok(Self { source: source.to_owned(), pieces, paths, framed })
    }

    /// Makes the key for one invocation.
    ///
    /// The event's JSON is read once, whatever the number of placeholders, and not at all if none names a value in it.
    ///
    /// # Errors
    ///
    /// [`ResolveError`] that names the path and what was found. There is no key for an event that lacks a value: ask
    /// [`is_missing`](ResolveError::is_missing) before running such a one unlocked.
    pub fn resolve(
        &self,
        namespace: Option<&Namespace>,
        event: &str,
        context: &ContextValues<'_>,
    ) -> Result<LockKey, ResolveError> {
        self.resolve_by(pick, namespace, event, context)
    }

    /// Makes the key for one record of a batch: where a path goes on into a string, the string is read as JSON.
    ///
    /// The bodies of queues' messages are strings in an event, and Kinesis' data are base64. A string that holds a JSON
    /// object or array, as it is or in base64, can be looked into; any other is a string, as everywhere. A path that ends
    /// at a string takes it as it is.
    ///
    /// ```
    /// use leasehold::key::{ContextValues, Template};
    ///
    /// let template = Template::parse("orders:{body.orderId}")?;
    /// let message = r#"{"messageId": "1", "body": "{\"orderId\": \"A-17\"}"}"#;
    /// let key = template.resolve_into_strings(None, message, &ContextValues::default())?;
    /// assert_eq!(key.as_str(), "orders:A-17");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn resolve_into_strings(
        &self,
        namespace: Option<&Namespace>,
        record: &str,
        context: &ContextValues<'_>,
    ) -> Result<LockKey, ResolveError> {
        self.resolve_by(pick_into_strings, namespace, record, context)
    }

    fn resolve_by(
        &self,
        pick: for<'de> fn(&Node, usize, &'de str) -> serde_json::Result<Vec<Slot<'de>>>,
        namespace: Option<&Namespace>,
        event: &str,
        context: &ContextValues<'_>,
    ) -> Result<LockKey, ResolveError> {
        let slots = match self.paths.tree() {
            Some(tree) => pick(tree, self.paths.len(), event).map_err(EventUnreadable::from)?,
            None => Vec::new(),
        };
        let mut key = String::with_capacity(128);
        if let Some(namespace) = namespace {
            key.push_str(namespace.as_str());
            key.push('/');
        }
        let mut missing = None;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => key.push_str(text),
                Piece::Value { placeholder, slot } => match text(placeholder, slots.get(*slot), context) {
                    Ok(text) => self.push_value(&mut key, text),
                    // Held back: with any other fault besides, the event may not run unlocked.
                    Err(ResolveError::Missing(error)) => missing = missing.or(Some(error)),
                    Err(error) => return Err(error),
                },
            }
        }
        match missing {
            Some(error) => Err(error.into()),
            None => Ok(LockKey::new(key)?),
        }
    }

    fn push_value(&self, key: &mut String, text: &str) {
        if self.framed {
            // Writing to a string does not fail.
            let _ = write!(key, "{}:", text.len());
        }
        key.push_str(text);
    }

    /// The template as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The placeholders in their order; the same one may come twice.
    pub fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value { placeholder, .. } => Some(placeholder),
        })
    }

    /// Whether the key depends on the function's version, so that the lock splits at every deployment.
    pub(crate) fn uses_function_version(&self) -> bool {
        self.placeholders().any(|placeholder| *placeholder == Placeholder::Context(ContextField::FunctionVersion))
    }

    /// What to warn about once, when the template is put to use.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        self.uses_function_version().then_some(
            "the key template has `{@function_version}`: while a deployment shifts traffic, the old and the new version \
             hold different locks; take it out unless that is wanted",
        )
    }
}

/// What one placeholder contributes.
fn text<'a>(
    placeholder: &Placeholder,
    slot: Option<&'a Slot<'_>>,
    context: &ContextValues<'a>,
) -> Result<&'a str, ResolveError> {
    let path = match placeholder {
        Placeholder::Context(field) => return field.of(context).ok_or_else(|| ContextMissing { field: *field }.into()),
        Placeholder::Event(path) => path,
    };
    match slot {
        Some(Slot::Text(text)) => Ok(text),
        Some(Slot::Unusable { depth, found }) => {
            Err(UnusableValue { path: path.clone(), at: path.prefix(*depth), found: found.clone() }.into())
        }
        Some(Slot::Twice { depth }) => Err(DuplicateName { path: path.clone(), at: path.prefix(depth + 1) }.into()),
        Some(Slot::Missing { depth }) => Err(PathMissing { path: path.clone(), depth: *depth }.into()),
        None => Err(PathMissing { path: path.clone(), depth: 0 }.into()),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Piece::Value { placeholder, .. } => write!(f, "{{{placeholder}}}")?,
            }
        }
        Ok(())
    }
}
