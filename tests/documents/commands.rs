//! The commands that the repository's documents show for a program, for the tests of the crates that parse them.
//!
//! A document is any Markdown file of the repository; a command is a simple one in a fenced block of `sh`, `bash` or
//! `console`: behind a pipe, `&&` or variables that are set for it as well, started by its name or by `cargo run`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A command, and where it stands.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The document, from the repository's root, and the line at which the command begins.
    pub(crate) place: String,
    /// The program's name and its arguments.
    pub(crate) words: Vec<String>,
}

/// All commands that start `program`, the binary of `package`.
pub(crate) fn of(program: &str, package: &str) -> Vec<Shown> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut documents = Vec::new();
    find(&root, &mut documents);
    documents.sort();
    let mut shown = Vec::new();
    for path in documents {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        for (line, command) in simple_commands(&text) {
            if let Some(words) = started(&command, program, package) {
                shown.push(Shown { place: format!("{name}:{line}"), words });
            }
        }
    }
    shown
}

fn find(folder: &Path, documents: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
                find(&path, documents);
            }
        } else if name.ends_with(".md") {
            documents.push(path);
        }
    }
}

/// The simple commands of a document's blocks, each with the number of its first line.
pub(crate) fn simple_commands(document: &str) -> Vec<(usize, Vec<String>)> {
    let (mut commands, mut is_shell, mut unfinished) = (Vec::new(), None, String::new());
    for (index, line) in document.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let language = language.split([' ', ',']).next().unwrap_or_default();
            is_shell = is_shell.is_none().then(|| ["sh", "bash", "console"].contains(&language));
            continue;
        }
        if is_shell != Some(true) {
            continue;
        }
        let begun = index + 1 - unfinished.matches('\n').count();
        if let Some(goes_on) = line.strip_suffix('\\') {
            unfinished.push_str(goes_on);
            unfinished.push('\n');
            continue;
        }
        let whole = std::mem::take(&mut unfinished) + line;
        commands.extend(split(whole.trim_start_matches("$ ")).into_iter().map(|words| (begun, words)));
    }
    commands
}

/// A line's simple commands as words, as a shell reads them, as far as our own documents go.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '&' | ';') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            // What is read or written belongs to the shell.
            (None, '<' | '>') => {
                word = None;
                while chars.next_if(|c| c.is_whitespace() || *c == '>').is_some() {}
                while chars.next_if(|c| !c.is_whitespace()).is_some() {}
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

/// The program's name and arguments, if it is this program that the command starts.
fn started(words: &[String], program: &str, package: &str) -> Option<Vec<String>> {
    let set_for_it = words.iter().take_while(|word| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    });
    let words = &words[set_for_it.count()..];
    let first = words.first()?;
    let arguments = if first.rsplit('/').next() == Some(program) {
        &words[1..]
    } else if first == "cargo" && words.get(1).is_some_and(|word| word == "run") {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let of_cargo = &words[..end];
        let is_package =
            of_cargo.windows(2).any(|pair| ["-p", "--package"].contains(&pair[0].as_str()) && pair[1] == package);
        if !is_package || of_cargo.iter().any(|word| word == "--example") {
            return None;
        }
        words.get(end + 1..).unwrap_or_default()
    } else {
        return None;
    };
    Some(std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect())
}
