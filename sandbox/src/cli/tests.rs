//! The command line holds together, and the commands that documents show are commands.

use clap::{CommandFactory as _, Parser as _};

use super::Cli;

#[path = "../../../tests/documents/commands.rs"]
mod documented;

#[test]
fn the_command_line_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn the_documents_commands_are_commands() {
    let shown = documented::of("leasehold-sandbox", "leasehold-sandbox");
    assert!(shown.iter().any(|shown| shown.place.starts_with("README.md:")), "{shown:?}");
    for documented::Shown { place, words } in shown {
        match Cli::try_parse_from(&words) {
            Ok(_) => {}
            // `--help` and `--version` are no command to be carried out, and no mistake.
            Err(told) if !told.use_stderr() => {}
            Err(error) => panic!("{place}: {words:?}: {error}"),
        }
    }
}
