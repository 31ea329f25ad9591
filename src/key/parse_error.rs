//! What can be wrong with a template, where, and what to write instead.

use thiserror::Error;

use super::lock_key::MAX_KEY_BYTES;
use super::path::{Path, quoted};

/// A template that can't be parsed.
///
/// ```
/// use leasehold::key::{Template, TemplateErrorKind};
///
/// let error = Template::parse("orders:{detail-type}").unwrap_err();
/// assert_eq!(error.offset(), 14);
/// assert!(matches!(error.kind(), TemplateErrorKind::QuoteName { .. }));
/// assert!(error.to_string().contains(r#"["detail-type"]"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("key template `{source_text}`, byte {offset}: {kind}")]
pub struct TemplateError {
    source_text: String,
    offset: usize,
    kind: TemplateErrorKind,
}

impl TemplateError {
    pub(super) fn new(source: &str, offset: usize, kind: TemplateErrorKind) -> Self {
        Self { source_text: source.to_owned(), offset, kind }
    }

    /// Where in the template, in bytes from its start.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong there.
    #[must_use]
    pub const fn kind(&self) -> &TemplateErrorKind {
        &self.kind
    }
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// The template has no character.
    #[error("the template is empty: write a key such as `orders:{{detail.orderId}}`")]
    Empty,
    /// Even the shortest values would make too long a key.
    #[error("no event can give a key of at most {MAX_KEY_BYTES} bytes: shorten the text around the placeholders")]
    TooLong,
    /// A placeholder is not closed.
    #[error("`{{` is never closed: add `}}`, or write `{{{{` for a brace")]
    Unclosed,
    /// A closing brace outside a placeholder.
    #[error("`}}` closes nothing: write `}}}}` for a brace")]
    StrayBrace,
    /// `{}`
    #[error("`{{}}` names no value: write a path such as `{{detail.orderId}}`, or `{{{{}}}}` for braces")]
    EmptyPlaceholder,
    /// `{@…}` with an unknown name.
    #[error(
        "`@{name}` is not known: write `@function_name`, `@function_version`, `@tenant_id` or `@request_id`, or \
         `[\"@{name}\"]` for a name in the event"
    )]
    UnknownContext {
        /// The name without the `@`.
        name: String,
    },
    /// A dot, or the placeholder's start, without a name after it.
    #[error("a name is missing here: write letters, digits and `_`, or put another name in quotes, as in `a[\"b c\"]`")]
    NameMissing,
    /// Spaces around a name.
    #[error("spaces are part of a placeholder: write `{name}` without them")]
    Spaces {
        /// The name without spaces.
        name: String,
    },
    /// A name of digits, which could be meant as an array's element.
    #[error("`{digits}` is no plain name: write `[{digits}]` for an array's element, `[\"{digits}\"]` for a name")]
    Digits {
        /// The digits.
        digits: String,
    },
    /// A name that a placeholder takes in quotes only.
    #[error("a plain name begins with a letter or `_` and goes on with letters, digits and `_`: write `[{}]`", quoted(.name))]
    QuoteName {
        /// The name.
        name: String,
    },
    /// Something after a step that begins no other.
    #[error("{found:?} can't stand here: go on with `.`, `[` or `}}`")]
    Unexpected {
        /// The character.
        found: char,
    },
    /// A bracket with neither a number nor a quoted name in it.
    #[error("`[` takes a number counted from 0, such as `[0]`, or a name in quotes, such as `[\"x-tenant-id\"]`")]
    Bracket,
    /// A quoted name without its closing quote.
    #[error("the quote is never closed: write `[\"name\"]`, with `\\\"` for a quote in the name")]
    UnclosedQuote,
    /// A quoted name that is not a JSON string.
    #[error("`{text}` is no JSON string: check its escapes; a backslash is `\\\\`")]
    QuotedName {
        /// The name as it stands in the template, in its quotes.
        text: String,
    },
    /// More steps than any event needs.
    #[error("the path has more than {limit} steps: shorten it")]
    TooDeep {
        /// The most steps.
        limit: usize,
    },
    /// Two paths that no event can have both.
    #[error("no event can have both `{path}` and `{other}`: take one of them out")]
    Contradiction {
        /// The path at the offset.
        path: Path,
        /// An earlier one.
        other: Path,
    },
}
