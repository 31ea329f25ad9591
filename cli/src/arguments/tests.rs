//! The command line holds together, every command shows how it is used, and the documents' commands are commands.

use clap::{Command, CommandFactory as _};

use super::*;

#[path = "../../../tests/documents/commands.rs"]
mod documented;

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
    let shown = documented::of("leaseholdctl", "leaseholdctl");
    assert!(shown.iter().any(|shown| shown.place.starts_with("docs/operator.md:")), "{shown:?}");
    for documented::Shown { place, words } in shown {
        match Cli::try_parse_from(&words) {
            Ok(_) => {}
            // `--help` and `--version` are no command to be carried out, and no mistake.
            Err(told) if !told.use_stderr() => {}
            Err(error) => panic!("{place}: {words:?}: {error}"),
        }
    }
}

/// What a test that finds nothing would not notice.
#[test]
fn commands_are_found_wherever_a_shell_would_start_them() {
    let document = "```sh\n# no comment\nA=b x -y 'a b' | leaseholdctl report < in >> out &\ncargo run -p z -- q \\\n  r\n```\n\
                    ```text\nnone\n```\n   ```bash\nc \"d # e\" && f # g\n   ```\n";
    let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let expected = [
        (3, words(&["A=b", "x", "-y", "a b"])),
        (3, words(&["leaseholdctl", "report"])),
        (4, words(&["cargo", "run", "-p", "z", "--", "q", "r"])),
        (11, words(&["c", "d # e"])),
        (11, words(&["f"])),
    ];
    assert_eq!(documented::simple_commands(document), expected);
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
