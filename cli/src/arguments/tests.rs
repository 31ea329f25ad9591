//! The command line holds together, every command shows how it is used, and the documents' commands are commands.

use clap::{Command, CommandFactory as _};

use super::*;

/// Every command that does something, with the words that lead to it.
fn leaves(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    let path = format!("{path} {}", command.get_name());
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
    if below.is_empty() {
        found.push((path.trim().to_owned(), command.clone()));
    }
    for sub in below {
        leaves(sub, &path, found);
    }
}

#[test]
fn the_command_line_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_examples_that_are_commands_and_tells_its_exit_status() {
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    assert!(found.len() >= 9, "{found:?}");
    for (path, command) in found {
        let help = command.clone().term_width(1_000).render_long_help().to_string();
        let examples = commands_in(&help);
        assert!(help.contains("Examples:") && !examples.is_empty(), "{path} has no examples:\n{help}");
        assert!(help.contains("Exit status:"), "{path} does not tell its exit status");
        assert!(examples.iter().any(|example| example.join(" ").starts_with(&path)), "{path}: {examples:?}");
        for example in examples {
            Cli::try_parse_from(&example).unwrap_or_else(|error| panic!("{example:?}: {error}"));
        }
    }
}

#[test]
fn the_documents_commands_are_commands() {
    for (name, document) in
        [("operator.md", include_str!("../../../docs/operator.md")), ("README.md", include_str!("../../../README.md"))]
    {
        let commands = commands_in(document);
        assert!(!commands.is_empty(), "{name} has none");
        for command in commands {
            Cli::try_parse_from(&command).unwrap_or_else(|error| panic!("{name}: {command:?}: {error}"));
        }
    }
}

/// The commands in a text: what follows `leaseholdctl` at the start of a line or after a pipe, without a prompt.
fn commands_in(text: &str) -> Vec<Vec<String>> {
    let lines = text.replace("\\\n", " ");
    let commands = lines.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("$ ");
        let line = line.rsplit(" | ").find(|part| part.starts_with("leaseholdctl ")).unwrap_or(line);
        line.starts_with("leaseholdctl ").then(|| words(line.split(" < ").next().unwrap_or(line)))
    });
    commands.collect()
}

/// A line's words as a shell reads them, as far as our own examples go.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
