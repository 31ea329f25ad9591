//! The layer's settings in code, and `build`, which tells everything that is wrong with them at once.

// The documentation of the builder goes in this order.
mod table;

mod waiting;

mod holding;

mod ending;

mod refusing;

mod leaving;

mod also;

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use self::also::also_problem;
use super::answers::Refuse;
use super::core::Core;
use super::key_source::{ByClosure, ByTemplate, TemplateText};
use super::{LeaseLayer, Plan};
use crate::error::SettingsError;
use crate::key::Template;
use crate::settings::{Draft, Environment, KeeperChoice, too_long};

/// A layer's name goes to the keeper in one line with the key, and into the row.
const LONGEST_NAME: usize = 2048;

/// Collects the settings of a [`LeaseLayer`], and of a [`Leasehold`](crate::Leasehold) those that have a meaning by hand.
///
/// Each has a `LEASEHOLD_*` variable of the same meaning, which holds where the code sets nothing.
/// Durations are spelled `500ms`, `30s`, `2m` or `1h` there. `LEASEHOLD_MODE` (`enforce`, `observe`, `off`) is the
/// environment's alone.
#[must_use = "a layer is made by `build`"]
pub struct LeaseLayerBuilder<T, K = TemplateText, B = Refuse> {
    keys: K,
    answers: B,
    name: Option<String>,
    pub(super) draft: Draft,
    environment: Option<Environment>,
    payload: PhantomData<fn(T)>,
}

impl<T, K, B> LeaseLayerBuilder<T, K, B> {
    pub(super) fn new(keys: K, answers: B) -> Self {
        Self { keys, answers, name: None, draft: Draft::default(), environment: None, payload: PhantomData }
    }

    /// Where the keeper is to be. `LEASEHOLD_KEEPER`, `extension`, `in-process` or `auto`
    pub const fn keeper(mut self, keeper: KeeperChoice) -> Self {
        self.draft.keeper = Some(keeper);
        self
    }

    /// The extension's socket; `/tmp/leasehold/keeper.sock` unless set. `LEASEHOLD_SOCKET`
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.draft.socket = Some(path.into());
        self
    }

    /// Lets a test double play the keeper: for unit tests of the handler. Neither a socket nor DynamoDB is needed, and no
    /// variables of the process count; the table is `locks` unless set.
    #[cfg(feature = "testing")]
    pub fn test_keeper(mut self, keeper: &crate::testing::TestKeeper) -> Self {
        self.draft.double = Some(keeper.clone());
        self.draft.table.get_or_insert_with(|| "locks".to_owned());
        self.environment.get_or_insert_default();
        self
    }

    /// The layer's name, for [`Lease::named`](crate::Lease::named), the log, and what a row says of its holder; the key
    /// template unless set, for leases that are taken by hand `by hand`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Takes these variables for the environment's, instead of the process's own: for tests, and for settings that come
    /// from elsewhere.
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        self.environment = Some(variables.into_iter().collect());
        self
    }

    pub(super) fn without_keys(self) -> (K, LeaseLayerBuilder<T, (), B>) {
        let Self { keys, answers, name, draft, environment, payload } = self;
        (keys, LeaseLayerBuilder { keys: (), answers, name, draft, environment, payload })
    }
}

impl<T, B> LeaseLayerBuilder<T, (), B> {
    /// Checks the settings, and makes the layer if there are keys.
    fn finish<K>(
        self,
        origin: String,
        keys: Result<K, String>,
        problems: Vec<String>,
    ) -> Result<LeaseLayer<T, K, B>, SettingsError> {
        self.plan(origin, keys, problems).map(LeaseLayer::new)
    }

    /// Checks the settings, adding to the problems that there are, and makes of them and the keys what a layer is.
    pub(super) fn plan<K>(
        self,
        origin: String,
        keys: Result<K, String>,
        mut problems: Vec<String>,
    ) -> Result<Plan<K, B>, SettingsError> {
        let Self { answers, name, draft, environment, .. } = self;
        let keys = keys.map_err(|problem| problems.push(problem));
        let core = core(draft, environment, name.unwrap_or(origin), keys.is_ok(), &mut problems);
        match (core, keys) {
            (Some(core), Ok(keys)) => Ok(Plan { core, keys, answers }),
            _ => Err(SettingsError::new(problems)),
        }
    }
}

/// What a layer knows whatever its handler, unless there are problems: compiled once and not for each.
fn core(
    draft: Draft,
    environment: Option<Environment>,
    name: String,
    has_keys: bool,
    problems: &mut Vec<String>,
) -> Option<Core> {
    let environment = environment.unwrap_or_else(Environment::of_process);
    let (settings, warnings) = draft.resolve(&environment, problems);
    if has_keys {
        problems.extend(too_long("the layer's `name`, which is the key template unless set,", &name, LONGEST_NAME));
    }
    if !problems.is_empty() {
        return None;
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Some(Core::new(settings, name))
}

impl<T, B> LeaseLayerBuilder<T, TemplateText, B> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is: in the template, in the code's settings and in the environment's.
    pub fn build(self) -> Result<LeaseLayer<T, ByTemplate, B>, SettingsError> {
        let (TemplateText(source), rest) = self.without_keys();
        let template = Template::parse(&source).map_err(|error| error.to_string());
        if let Some(warning) = template.as_ref().ok().and_then(Template::warning) {
            tracing::warn!("{warning}");
        }
        let problems = also_problem(rest.draft.also.as_deref(), &source).into_iter().collect();
        rest.finish(source, template.map(ByTemplate), problems)
    }
}

impl<T, F, B> LeaseLayerBuilder<T, ByClosure<F>, B> {
    /// Checks everything and makes the layer.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with every problem there is, in the code's settings and in the environment's.
    pub fn build(self) -> Result<LeaseLayer<T, ByClosure<F>, B>, SettingsError> {
        let (keys, rest) = self.without_keys();
        rest.finish("keyed_by".to_owned(), Ok(keys), Vec::new())
    }
}

impl<T, K, B> fmt::Debug for LeaseLayerBuilder<T, K, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseLayerBuilder").field("name", &self.name).field("set", &self.draft).finish_non_exhaustive()
    }
}
