//! A template's grammar: text, doubled braces and placeholders.

use super::context::ContextField;
use super::parse_error::{TemplateError, TemplateErrorKind as Kind};
use super::path::{Path, Segment, is_plain, is_plain_char};
use super::template::Placeholder;

/// The most steps of a path. It bounds the recursion along one; serde_json's own bound is 127.
pub(super) const MAX_STEPS: usize = 64;

/// A template's parts as they follow each other.
#[derive(Debug)]
pub(super) enum Token {
    /// Text that goes into the key, braces no longer doubled.
    Text(String),
    /// A placeholder and the offset of its brace.
    Placeholder(usize, Placeholder),
}

/// Reads a whole template.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, TemplateError> {
    let mut cursor = Cursor { source, at: 0 };
    let mut tokens = Vec::new();
    let mut text = String::new();
    while let Some(c) = cursor.peek() {
        let at = cursor.at;
        cursor.skip(c);
        match c {
            '{' | '}' if cursor.eat(c) => text.push(c),
            '}' => return Err(cursor.error(at, Kind::StrayBrace)),
            '{' => {
                if !text.is_empty() {
                    tokens.push(Token::Text(std::mem::take(&mut text)));
                }
                tokens.push(Token::Placeholder(at, cursor.placeholder(at)?));
            }
            c => text.push(c),
        }
    }
    if !text.is_empty() {
        tokens.push(Token::Text(text));
    }
    Ok(tokens)
}

struct Cursor<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    const fn skip(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn eat(&mut self, c: char) -> bool {
        let here = self.peek() == Some(c);
        if here {
            self.skip(c);
        }
        here
    }

    /// Everything up to the first character that fits no more.
    fn take_while(&mut self, fits: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = rest.split_once(|c| !fits(c)).map_or(rest, |(taken, _)| taken);
        self.at += taken.len();
        taken
    }

    #[cold]
    fn error(&self, offset: usize, kind: Kind) -> TemplateError {
        TemplateError::new(self.source, offset, kind)
    }

    /// A placeholder behind its opening brace, up to and with its closing one.
    fn placeholder(&mut self, open: usize) -> Result<Placeholder, TemplateError> {
        match self.peek() {
            None => Err(self.error(open, Kind::Unclosed)),
            Some('}') => Err(self.error(open, Kind::EmptyPlaceholder)),
            Some('@') => self.context(open),
            Some(_) => self.path(open),
        }
    }

    fn context(&mut self, open: usize) -> Result<Placeholder, TemplateError> {
        let at = self.at;
        self.skip('@');
        let name = self.take_while(|c| c != '}');
        if !self.eat('}') {
            return Err(self.error(open, Kind::Unclosed));
        }
        match ContextField::ALL.into_iter().find(|field| field.name() == name) {
            Some(field) => Ok(Placeholder::Context(field)),
            None => Err(self.error(at, Kind::UnknownContext { name: name.to_owned() })),
        }
    }

    fn path(&mut self, open: usize) -> Result<Placeholder, TemplateError> {
        let mut steps = Vec::new();
        if self.peek() != Some('[') {
            steps.push(self.name(open)?);
        }
        loop {
            let at = self.at;
            if steps.len() > MAX_STEPS {
                return Err(self.error(open, Kind::TooDeep { limit: MAX_STEPS }));
            }
            match self.peek() {
                None => return Err(self.error(open, Kind::Unclosed)),
                Some('}') => {
                    self.skip('}');
                    return Ok(Placeholder::Event(Path::new(steps)));
                }
                Some('.') => {
                    self.skip('.');
                    steps.push(self.name(open)?);
                }
                Some('[') => steps.push(self.bracket(open)?),
                Some(found) => return Err(self.error(at, Kind::Unexpected { found })),
            }
        }
    }

    /// A name without quotes. It is read further than it may go, so that the error can show it whole.
    fn name(&mut self, open: usize) -> Result<Segment, TemplateError> {
        let start = self.at;
        let name = self.take_while(|c| !matches!(c, '.' | '[' | ']' | '{' | '}' | '"'));
        if is_plain(name) {
            return Ok(Segment::Name(name.to_owned()));
        }
        let (offset, kind) = if name.is_empty() && self.peek().is_none() {
            (open, Kind::Unclosed)
        } else if name.trim().is_empty() {
            (start, Kind::NameMissing)
        } else if is_plain(name.trim()) {
            (start, Kind::Spaces { name: name.trim().to_owned() })
        } else if name.chars().all(|c| c.is_ascii_digit()) {
            (start, Kind::Digits { digits: name.to_owned() })
        } else {
            // Only its first character can keep a name of plain characters from being one.
            let bad = name.find(|c| !is_plain_char(c)).unwrap_or_default();
            (start + bad, Kind::QuoteName { name: name.to_owned() })
        };
        Err(self.error(offset, kind))
    }

    /// `[0]` or `["name"]`.
    fn bracket(&mut self, open: usize) -> Result<Segment, TemplateError> {
        self.skip('[');
        let start = self.at;
        let step = match self.peek() {
            None => return Err(self.error(open, Kind::Unclosed)),
            Some('"') => Segment::Name(self.quoted_name()?),
            Some(_) => {
                let digits = self.take_while(|c| c.is_ascii_digit());
                let leading_zero = digits.len() > 1 && digits.starts_with('0');
                match digits.parse() {
                    Ok(index) if !leading_zero => Segment::Index(index),
                    _ => return Err(self.error(start, Kind::Bracket)),
                }
            }
        };
        if self.eat(']') {
            return Ok(step);
        }
        Err(self.peek().map_or_else(|| self.error(open, Kind::Unclosed), |_| self.error(self.at, Kind::Bracket)))
    }

    fn quoted_name(&mut self) -> Result<String, TemplateError> {
        let start = self.at;
        self.skip('"');
        loop {
            self.take_while(|c| !matches!(c, '"' | '\\'));
            if self.eat('"') {
                break;
            }
            // A backslash and whatever it escapes: a quote behind one does not end the name.
            self.eat('\\');
            match self.peek() {
                Some(escaped) => self.skip(escaped),
                None => return Err(self.error(start, Kind::UnclosedQuote)),
            }
        }
        let text = self.source.get(start..self.at).unwrap_or_default();
        serde_json::from_str(text).map_err(|_| self.error(start, Kind::QuotedName { text: text.to_owned() }))
    }
}
