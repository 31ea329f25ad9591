//! The demo: what leasehold is for, as scenes with real processes on real events.
//!
//! Each [`Scene`] runs the sample function and the extension in a sandbox of its own and says from the event log whether
//! what it promises has happened. The command prints them as timelines; the end-to-end tests assert the same scenes.

mod narrate;
mod programs;
mod said;
mod scenes;
mod stage;

use std::{fmt, future::Future, pin::Pin, time::Duration};

pub use self::{
    narrate::Narration,
    programs::{Programs, build, cargo_build, cargo_build_examples},
    said::Said,
    stage::Stage,
};

/// What a scene shows when it went well, in a few words for its last line.
pub type Shown = String;

/// Why a scene failed.
#[derive(Debug)]
pub struct Failed(String);

impl Failed {
    pub(crate) fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<crate::Error> for Failed {
    fn from(error: crate::Error) -> Self {
        Self(error.to_string())
    }
}

type Play = for<'a> fn(&'a Stage) -> Pin<Box<dyn Future<Output = Result<Shown, Failed>> + Send + 'a>>;

/// One promise, shown.
#[derive(Clone, Copy)]
pub struct Scene {
    /// A short name, to choose the scene by.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The file of `events/` that it sends.
    pub event: &'static str,
    /// Whether it takes so long that it is started first and shown last.
    pub long: bool,
    settings: &'static [(&'static str, &'static str)],
    timeout: Duration,
    play: Play,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("name", &self.name).field("title", &self.title).finish_non_exhaustive()
    }
}

/// A scene that was played.
#[derive(Debug)]
pub struct Played {
    /// What came of it.
    pub result: Result<Shown, Failed>,
    /// What happened, for people.
    pub narration: Narration,
}

impl Scene {
    /// All of them, in the order in which they are told.
    pub fn all() -> Vec<Self> {
        scenes::all()
    }

    /// Plays the scene with these programs.
    ///
    /// # Cancellation
    ///
    /// Dropping the future ends every process of the scene.
    pub async fn play(&self, programs: &Programs) -> Played {
        match Stage::set(self, programs).await {
            Ok(stage) => {
                let result = (self.play)(&stage).await;
                let narration = Narration::of(&stage.sandbox().log().events());
                stage.sandbox().shutdown().await;
                Played { result, narration }
            }
            Err(failed) => Played { result: Err(failed), narration: Narration::default() },
        }
    }
}
