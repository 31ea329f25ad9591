//! Reading the environment's values beside the code's; what is wrong with them is kept.

use std::path::PathBuf;
use std::time::Duration;

use super::choice::{Choice, Mode, Switch};
use super::environment::{Environment, PREFIX};
use super::{duration, known};
use crate::key::{Namespace, Template};
use crate::protocol::Format;
use crate::session::Table;

const DEFAULT_SOCKET: &str = "/tmp/leasehold/keeper.sock";
/// What DynamoDB takes at most: for a table's ARN, for a key attribute's name, and for a sort key.
const LONGEST_TABLE: usize = 1024;
const LONGEST_ATTRIBUTE: usize = 255;
const LONGEST_SORT_KEY: usize = 1024;
/// `sun_path`, less its end, on the system where it is shortest.
const LONGEST_SOCKET: usize = 103;

/// Reads variables, keeping what is wrong.
pub(super) struct Reading<'a> {
    pub(super) environment: &'a Environment,
    pub(super) problems: &'a mut Vec<String>,
}

impl<'a> Reading<'a> {
    /// The value of one of our variables. It is read and checked even where the code's own value wins.
    pub(super) fn value<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(self.given(name)?).map_err(|problem| self.tell(name, &problem)).ok()
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.given(name).map(str::to_owned)
    }

    /// The text of one of our variables, unless it is unset or empty.
    fn given(&mut self, name: &str) -> Option<&'a str> {
        let text = self.environment.get(&format!("{PREFIX}{name}"))?;
        if text.is_empty() {
            self.tell(name, "it is empty: give it a value, or take it out");
            return None;
        }
        Some(text)
    }

    /// Keeps what is wrong with one of our variables.
    #[cold]
    fn tell(&mut self, name: &str, problem: &str) {
        self.problems.push(format!("{PREFIX}{name}: {problem}"));
    }

    pub(super) fn duration(&mut self, name: &str) -> Option<Duration> {
        self.value(name, duration::parse)
    }

    pub(super) fn duration_or(&mut self, name: &str, code: Option<Duration>, default: Duration) -> Duration {
        self.duration(name).unless_set(code).unwrap_or(default)
    }

    pub(super) fn choice<C: Choice>(&mut self, name: &str) -> Option<C> {
        self.value(name, C::parse)
    }

    pub(super) fn choice_or<C: Choice + Default>(&mut self, name: &str, code: Option<C>) -> C {
        self.choice(name).unless_set(code).unwrap_or_default()
    }

    pub(super) fn switch(&mut self, name: &str, code: Option<bool>, default: bool) -> bool {
        self.choice(name).map(|Switch(on)| on).unless_set(code).unwrap_or(default)
    }

    pub(super) fn table(
        &mut self,
        name: Option<String>,
        key_attribute: Option<String>,
        sort_key: Option<(String, String)>,
        format: Option<String>,
        mode: Mode,
    ) -> Table {
        let name = self.text("TABLE").unless_set(name);
        if name.as_ref().is_none_or(String::is_empty) && mode != Mode::Off {
            self.problems.push("no table is set: call `.table(\"name\")`, or set LEASEHOLD_TABLE".to_owned());
        }
        let mut table = Table::new(name.unwrap_or_default());
        if let Some(attribute) = self.text("KEY_ATTRIBUTE").unless_set(key_attribute) {
            table.key_attribute = attribute;
        }
        table.sort_key = self.value("SORT_KEY", sort_key_of).unless_set(sort_key);
        let sort_key = table.sort_key.as_ref().map_or(("", ""), |(name, value)| (name, value));
        for (what, text, most) in [
            ("the table's name", table.name.as_str(), LONGEST_TABLE),
            ("`key_attribute`", &table.key_attribute, LONGEST_ATTRIBUTE),
            ("the name in `sort_key`", sort_key.0, LONGEST_ATTRIBUTE),
            ("the value in `sort_key`", sort_key.1, LONGEST_SORT_KEY),
        ] {
            self.problems.extend(too_long(what, text, most));
        }
        if table.key_attribute.is_empty() {
            self.problems.push("`key_attribute` is empty: name the table's partition key".to_owned());
        }
        match &table.sort_key {
            Some((name, value)) if name.is_empty() || value.is_empty() => {
                self.problems.push("`sort_key` needs a name and a value".to_owned());
            }
            Some((name, _)) if *name == table.key_attribute => {
                self.problems
                    .push(format!("`sort_key` and `key_attribute` are both `{name}`: name the table's two keys"));
            }
            _ => {}
        }
        let format = self.format(format);
        self.problems.extend(table.misfit(format));
        table.speaking(format)
    }

    /// The row format. An unknown one is told, and the usual one stands in for it until `build` fails.
    pub(super) fn format(&mut self, code: Option<String>) -> Format {
        let parse = |name: &str| name.parse::<Format>().map_err(|unknown| unknown.to_string());
        let of_environment = self.value("FORMAT", parse);
        let of_code =
            code.and_then(|name| parse(&name).map_err(|told| self.problems.push(format!("`format`: {told}"))).ok());
        of_environment.unless_set(of_code).unwrap_or_default()
    }

    pub(super) fn namespace(&mut self, code: Option<String>) -> Option<Namespace> {
        let of_environment = self.value("NAMESPACE", |text| Namespace::parse(text).map_err(|error| error.to_string()));
        match code.as_deref().map(Namespace::parse) {
            Some(Ok(namespace)) => Some(namespace),
            Some(Err(error)) => {
                self.problems.push(error.to_string());
                None
            }
            None => of_environment,
        }
    }

    pub(super) fn also(&mut self, code: Option<String>) -> Option<Template> {
        let parsed = Template::parse(&code?);
        parsed.map_err(|error| self.problems.push(format!("`also`: {error}"))).ok()
    }

    pub(super) fn socket(&mut self, code: Option<PathBuf>) -> PathBuf {
        let path = self.text("SOCKET").map(PathBuf::from).unless_set(code).unwrap_or_else(|| DEFAULT_SOCKET.into());
        let length = path.as_os_str().len();
        if length > LONGEST_SOCKET {
            self.problems.push(format!(
                "the socket's path has {length} bytes and the system takes {LONGEST_SOCKET}: set a shorter one"
            ));
        }
        path
    }

    /// Names that nothing reads: warnings, or problems where the environment asks for strictness.
    pub(super) fn unknown_names(&mut self) -> Vec<String> {
        let strict = self.choice("STRICT").is_some_and(|Switch(on)| on);
        for name in &self.environment.unreadable {
            self.problems.push(format!("{name}: it is not UTF-8"));
        }
        let unknown: Vec<_> = self.environment.our_names().into_iter().filter_map(known::complaint).collect();
        if strict {
            self.problems.extend(unknown);
            return Vec::new();
        }
        unknown
    }
}

/// The problem with a text that is longer than what comes after takes.
pub(crate) fn too_long(what: &str, text: &str, most: usize) -> Option<String> {
    let bytes = text.len();
    (bytes > most).then(|| format!("{what} has {bytes} bytes: set one of at most {most}"))
}

fn sort_key_of(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("{text:?} has no `=`: write the attribute's name and its fixed value, as in `sk=lock`")),
    }
}

/// Puts the code's value over the environment's.
pub(super) trait CodeWins {
    #[must_use]
    fn unless_set(self, code: Self) -> Self;
}

impl<T> CodeWins for Option<T> {
    fn unless_set(self, code: Self) -> Self {
        code.or(self)
    }
}
