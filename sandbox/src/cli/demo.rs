//! `demo`: plays the scenes and prints them as they end.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Args;

use leasehold_sandbox::demo::{self, Played, Programs, Scene};

/// Show what leasehold does: real processes, real events, an embedded DynamoDB.
#[derive(Debug, Args)]
#[command(after_help = "\
Builds the extension and the sample function first; works offline once they are built. Takes about 80 seconds, for one \
scene waits for a real timeout of 60 s. Exits with 1 if a scene fails, with 2 if there is no such scene.

Examples:
  leasehold-sandbox demo
  leasehold-sandbox demo --scene spin --scene abort
  leasehold-sandbox demo --list")]
pub(super) struct Demo {
    /// Play only the scene of this name; may be given more than once.
    #[arg(long = "scene", value_name = "NAME")]
    scenes: Vec<String>,

    /// List the scenes and play none.
    #[arg(long)]
    list: bool,
}

impl Demo {
    /// Plays what was asked for.
    ///
    /// # Errors
    ///
    /// When standard output can't be written to.
    pub(super) async fn run(self, colour: bool) -> io::Result<ExitCode> {
        let mut out = Printer { colour };
        if self.list {
            for scene in Scene::all() {
                out.line(&format!("{:<10} {} ({})", scene.name, scene.title, scene.event))?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let scenes = match self.chosen() {
            Ok(scenes) => scenes,
            Err(problem) => {
                out.problem(&problem)?;
                return Ok(ExitCode::from(super::UNUSABLE));
            }
        };
        out.line("Building the extension and the sample function ...")?;
        let programs = match demo::build().await {
            Ok(programs) => programs,
            Err(failed) => return out.problem(&failed.to_string()),
        };
        let failures = play(&scenes, &programs, &mut out).await?;
        if failures == 0 {
            out.line(&out.green(&format!("\nAll {} scenes passed.", scenes.len())))?;
            Ok(ExitCode::SUCCESS)
        } else {
            out.line(&out.red(&format!("\n{failures} of {} scenes failed.", scenes.len())))?;
            Ok(ExitCode::FAILURE)
        }
    }

    fn chosen(&self) -> Result<Vec<Scene>, String> {
        let all = Scene::all();
        if let Some(unknown) = self.scenes.iter().find(|name| !all.iter().any(|scene| scene.name == **name)) {
            let names: Vec<_> = all.iter().map(|scene| scene.name).collect();
            return Err(format!("there is no scene `{unknown}`; the scenes are {}", names.join(", ")));
        }
        let chosen = |scene: &Scene| self.scenes.is_empty() || self.scenes.iter().any(|name| name == scene.name);
        Ok(all.into_iter().filter(chosen).collect())
    }
}

/// Plays the long scenes beside the others; returns how many failed.
async fn play(scenes: &[Scene], programs: &Programs, out: &mut Printer) -> io::Result<usize> {
    let mut long = Vec::new();
    for scene in scenes.iter().filter(|scene| scene.long) {
        let (scene, programs) = (*scene, programs.clone());
        long.push((scene, tokio::spawn(async move { scene.play(&programs).await })));
    }
    let mut failures = 0;
    let mut number = 0;
    for scene in scenes.iter().filter(|scene| !scene.long) {
        number += 1;
        out.title(number, scene)?;
        failures += usize::from(!out.played(&scene.play(programs).await)?);
    }
    for (scene, playing) in long {
        number += 1;
        out.title(number, &scene)?;
        if !playing.is_finished() {
            out.line("  (still playing: it waits for a real timeout of 60 s)")?;
        }
        match playing.await {
            Ok(played) => failures += usize::from(!out.played(&played)?),
            Err(error) => {
                failures += 1;
                out.line(&out.red(&format!("  failed: {error}")))?;
            }
        }
    }
    Ok(failures)
}

/// Standard output, with colours where a terminal shows them.
struct Printer {
    colour: bool,
}

impl Printer {
    #[allow(clippy::unused_self, reason = "whoever prints has made up its mind about colours")]
    fn line(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    fn problem(&self, text: &str) -> io::Result<ExitCode> {
        self.line(&self.red(&format!("The demo can't be played: {text}")))?;
        Ok(ExitCode::FAILURE)
    }

    fn title(&self, number: usize, scene: &Scene) -> io::Result<()> {
        let title = format!("{number}. {}: {}", scene.name, scene.title);
        self.line(&format!("\n{}\n  events/{}", self.paint("1", &title), scene.event))
    }

    fn played(&self, played: &Played) -> io::Result<bool> {
        self.line(played.narration.to_string().trim_end_matches('\n'))?;
        match &played.result {
            Ok(shown) => self.line(&format!("  {}: {shown}", self.green("passed")))?,
            Err(failed) => self.line(&format!("  {}: {failed}", self.red("failed")))?,
        }
        Ok(played.result.is_ok())
    }

    fn green(&self, text: &str) -> String {
        self.paint("32", text)
    }

    fn red(&self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
