//! The settings as they are being collected: each may be unset, and everything that is wrong is kept until the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::{Choice, KeeperChoice, MetricLines, MissingPath, Mode, OnLoss, OnUnavailable, ReleaseWhen, Switch};
use super::environment::{Environment, PREFIX};
use super::keys::Secret;
use super::resolved::Settings;
use super::{duration, known};
use crate::budget::DEFAULT_MAX_WAIT;
use crate::key::{Namespace, Template};
use crate::protocol::Format;
use crate::session::{OnCrash, PollingMs, Table};

const DEFAULT_SOCKET: &str = "/tmp/leasehold/keeper.sock";
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
const DEFAULT_MAX_HOLD: Duration = Duration::from_secs(15 * 60);
/// What a row says of its holder, and what lines can well hold.
const LONGEST_NOTE: usize = 1024;
/// DynamoDB's TTL counts whole seconds.
const SHORTEST_RETENTION: Duration = Duration::from_secs(1);
const SHORTEST_LEASE: Duration = Duration::from_millis(500);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// What a row can be kept for: a ninth more than that is written as a lease.
const LONGEST_MINIMUM: Duration = Duration::from_secs(LONGEST_LEASE.as_secs() * 9 / 10);
/// What the session can say.
const SHORTEST_MINIMUM: Duration = Duration::from_millis(1);
/// No function runs longer, so polling any slower would be no polling.
const LONGEST_POLL: Duration = Duration::from_secs(15 * 60);
/// What DynamoDB takes at most: for a table's ARN, for a key attribute's name, and for a sort key.
const LONGEST_TABLE: usize = 1024;
const LONGEST_ATTRIBUTE: usize = 255;
const LONGEST_SORT_KEY: usize = 1024;
/// `sun_path`, less its end, on the system where it is shortest.
const LONGEST_SOCKET: usize = 103;

/// What the code set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) table: Option<String>,
    pub(crate) key_attribute: Option<String>,
    pub(crate) sort_key: Option<(String, String)>,
    pub(crate) format: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) hashed_keys: Option<bool>,
    pub(crate) key_secret: Option<Secret>,
    pub(crate) also: Option<String>,
    pub(crate) lease_duration: Option<Duration>,
    pub(crate) reserve: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) polling: Option<(Duration, Duration)>,
    pub(crate) release: Option<ReleaseWhen>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) missing_path: Option<MissingPath>,
    pub(crate) on_loss: Option<OnLoss>,
    pub(crate) keep_finished_response: Option<bool>,
    pub(crate) on_unavailable: Option<OnUnavailable>,
    pub(crate) server_time: Option<bool>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) max_silence: Option<Duration>,
    pub(crate) end_before_deadline: Option<Duration>,
    pub(crate) state_retention: Option<Duration>,
    pub(crate) holder_note: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) hold_at_least: Option<Duration>,
    /// Whether each record of a batch is locked by itself.
    pub(crate) per_record: bool,
    pub(crate) keeper: Option<KeeperChoice>,
    pub(crate) socket: Option<PathBuf>,
    #[cfg(feature = "testing")]
    pub(crate) double: Option<crate::testing::TestKeeper>,
}

impl Draft {
    /// Merges in the environment and checks the whole, adding to `problems`; answers what holds if nothing is wrong with
    /// it, and what to warn about.
    pub(crate) fn resolve(self, environment: &Environment, problems: &mut Vec<String>) -> (Settings, Vec<String>) {
        let mut read = Reading { environment, problems };
        let initialization = environment.get("AWS_LAMBDA_INITIALIZATION_TYPE");
        let on_lambda = initialization.is_some_and(|kind| !kind.is_empty());
        let polling = (read.duration("POLL_FIRST"), read.duration("POLL_MAX"));
        let polling = self.polling.map_or(polling, |(first, max)| (Some(first), Some(max)));
        let mode = read.choice("MODE").unwrap_or_default();
        let default_keeper = if on_lambda { KeeperChoice::Extension } else { KeeperChoice::Auto };

        let settings = Settings {
            table: read.table(self.table, self.key_attribute, self.sort_key, self.format, mode),
            namespace: read.namespace(self.namespace),
            key_hash: read.key_hash(self.hashed_keys, self.key_secret),
            also: read.also(self.also),
            lease_duration: read.duration_or("LEASE_DURATION", self.lease_duration, DEFAULT_LEASE),
            reserve: read.duration("RESERVE").unless_set(self.reserve),
            max_wait: read.duration_or("MAX_WAIT", self.max_wait, DEFAULT_MAX_WAIT),
            polling: read.polling(polling),
            release: read.choice_or("RELEASE", self.release),
            on_crash: read.choice_or("ON_CRASH", self.on_crash),
            missing_path: read.choice_or("MISSING_PATH", self.missing_path),
            on_loss: read.choice_or("ON_LOSS", self.on_loss),
            keep_finished_response: read.switch("KEEP_FINISHED_RESPONSE", self.keep_finished_response, false),
            on_unavailable: read.choice_or("ON_UNAVAILABLE", self.on_unavailable),
            server_time: read.switch("SERVER_TIME", self.server_time, true),
            max_hold: read.duration_or("MAX_HOLD", self.max_hold, DEFAULT_MAX_HOLD),
            max_silence: read.duration("MAX_SILENCE").unless_set(self.max_silence),
            end_before_deadline: read.duration("END_BEFORE_DEADLINE").unless_set(self.end_before_deadline),
            state_retention: read.value("STATE_RETENTION", duration::parse_long).unless_set(self.state_retention),
            holder_note: self.holder_note.unwrap_or_default(),
            attributes: self.attributes,
            hold_at_least: read.duration("HOLD_AT_LEAST").unless_set(self.hold_at_least),
            keeper: read.choice("KEEPER").unless_set(self.keeper).unwrap_or(default_keeper),
            socket: read.socket(self.socket),
            #[cfg(feature = "testing")]
            double: self.double,
            on_lambda,
            managed_instances: initialization == Some("lambda-managed-instances"),
            mode,
        };
        // The keeper's affair; but a value that it would not take is told where somebody looks.
        let _keepers: Option<MetricLines> = read.choice("METRICS");
        check(&settings, read.problems);
        check_minimum(&settings, self.per_record, read.problems);
        let warnings = read.unknown_names();
        (settings, warnings)
    }
}

/// What does not fit together, or lies outside of what the protocol serves.
fn check(settings: &Settings, problems: &mut Vec<String>) {
    let lease = settings.lease_duration;
    if lease < SHORTEST_LEASE || lease > LONGEST_LEASE {
        problems.push(format!("`lease_duration` is {lease:?}: set {SHORTEST_LEASE:?} to 24h"));
    }
    if settings.max_hold.is_zero() {
        problems.push("`max_hold` is 0, so every lease would be lost at once: set how long work may take".to_owned());
    }
    if settings.max_silence.is_some_and(|silence| silence.as_millis() == 0) {
        problems.push(
            "`max_silence` is 0, so no lease would ever be renewed: set how long the work may go without a word"
                .to_owned(),
        );
    }
    for_people(settings, problems);
    if let Some(retention) = settings.state_retention
        && !(SHORTEST_RETENTION..=duration::LONGEST).contains(&retention)
    {
        problems.push(format!("`state_retention` is {retention:?}: set {SHORTEST_RETENTION:?} to ten years"));
    }
    if let (Some(margin), Some(reserve)) = (settings.end_before_deadline, settings.reserve)
        && margin >= reserve
    {
        problems.push(format!(
            "`end_before_deadline` is {margin:?} and `reserve` {reserve:?}: a handler that begins with its reserve left \
             would be ended at once; raise `reserve` or lower `end_before_deadline`"
        ));
    }
    if settings.keeper == KeeperChoice::InProcess && !cfg!(feature = "in-process") && settings.mode != Mode::Off {
        problems.push("the keeper is to run in-process: build `leasehold` with the feature `in-process`".to_owned());
    }
}

/// What people are told by the row, and what a row has no place for.
fn for_people(settings: &Settings, problems: &mut Vec<String>) {
    problems.extend(settings.table.misplaced(&settings.attributes).map(|problem| format!("`attribute`: {problem}")));
    problems.extend(too_long("`holder_note`", &settings.holder_note, LONGEST_NOTE));
    let Ok(format) = settings.table.format.parse::<Format>() else { return };
    let told = [
        ("attribute", format.abilities().notes || settings.attributes.is_empty()),
        ("holder_note", format.abilities().notes || settings.holder_note.is_empty()),
        ("state_retention", format.abilities().state || settings.state_retention.is_none()),
    ];
    for (setting, _) in told.into_iter().filter(|(_, fits)| !fits) {
        problems.push(format!("`{setting}` is set, and the row format `{format}` has no place for it: leave it out"));
    }
}

fn check_minimum(settings: &Settings, per_record: bool, problems: &mut Vec<String>) {
    let Some(minimum) = settings.hold_at_least else { return };
    if minimum < SHORTEST_MINIMUM || minimum > LONGEST_MINIMUM {
        problems.push(format!("`hold_at_least` is {minimum:?}: set {SHORTEST_MINIMUM:?} to 21h 36min, or take it out"));
    }
    if per_record {
        problems.push(
            "`hold_at_least` is set for a layer that locks single records: the next record of a key would find it busy; take it out, or lock the whole batch"
                .to_owned(),
        );
    }
}

/// Reads variables, keeping what is wrong.
pub(super) struct Reading<'a> {
    environment: &'a Environment,
    pub(super) problems: &'a mut Vec<String>,
}

impl Reading<'_> {
    /// The value of one of our variables. It is read and checked even where the code's own value wins.
    fn value<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.environment.get(&format!("{PREFIX}{name}"))?;
        let parsed =
            if text.is_empty() { Err("it is empty: give it a value, or take it out".to_owned()) } else { parse(text) };
        parsed.map_err(|problem| self.problems.push(format!("{PREFIX}{name}: {problem}"))).ok()
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.value(name, |text| Ok(text.to_owned()))
    }

    fn duration(&mut self, name: &str) -> Option<Duration> {
        self.value(name, duration::parse)
    }

    fn duration_or(&mut self, name: &str, code: Option<Duration>, default: Duration) -> Duration {
        self.duration(name).unless_set(code).unwrap_or(default)
    }

    pub(super) fn choice<C: Choice>(&mut self, name: &str) -> Option<C> {
        self.value(name, C::parse)
    }

    fn choice_or<C: Choice + Default>(&mut self, name: &str, code: Option<C>) -> C {
        self.choice(name).unless_set(code).unwrap_or_default()
    }

    fn switch(&mut self, name: &str, code: Option<bool>, default: bool) -> bool {
        self.choice(name).map(|Switch(on)| on).unless_set(code).unwrap_or(default)
    }

    fn table(
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
    fn format(&mut self, code: Option<String>) -> Format {
        let parse = |name: &str| name.parse::<Format>().map_err(|unknown| unknown.to_string());
        let of_environment = self.value("FORMAT", parse);
        let of_code =
            code.and_then(|name| parse(&name).map_err(|told| self.problems.push(format!("`format`: {told}"))).ok());
        of_environment.unless_set(of_code).unwrap_or_default()
    }

    fn namespace(&mut self, code: Option<String>) -> Option<Namespace> {
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

    fn also(&mut self, code: Option<String>) -> Option<Template> {
        let parsed = Template::parse(&code?);
        parsed.map_err(|error| self.problems.push(format!("`also`: {error}"))).ok()
    }

    fn polling(&mut self, (first, max): (Option<Duration>, Option<Duration>)) -> PollingMs {
        let default = PollingMs::default();
        let first = first.map_or(default.first, millis);
        // Who sets only the first delay above the default's bound means a slower polling, not a contradiction.
        let max = max.map_or(default.max.max(first), millis);
        if first == 0 {
            self.problems.push("the first polling delay is 0: set 1ms or more".to_owned());
        }
        if max < first || max > millis(LONGEST_POLL) {
            self.problems.push(format!(
                "the longest polling delay is {max}ms and the first {first}ms: set the longest from that to {LONGEST_POLL:?}"
            ));
        }
        PollingMs { first, max }
    }

    fn socket(&mut self, code: Option<PathBuf>) -> PathBuf {
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
    fn unknown_names(&mut self) -> Vec<String> {
        let strict = self.choice("STRICT").is_some_and(|Switch(on)| on);
        for name in &self.environment.unreadable {
            self.problems.push(format!("{name}: it is not UTF-8"));
        }
        let unknown: Vec<_> = self.environment.our_names().filter_map(known::complaint).collect();
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
