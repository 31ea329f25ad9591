//! Finds the JSON objects in whatever a log's viewer printed: alone on a line, behind other text, over several lines, or
//! within a document of any size.
//!
//! Bytes come in as they are read, and no more of them is kept than the longest object that counts. Each object is offered
//! as it closes, the innermost first; what was taken is not offered again with what is around it.

/// The longest object that is looked at; those of leasehold are far shorter.
pub(crate) const LONGEST_LINE: usize = 256 * 1_024;
/// How many objects may be open at a time. In a log full of braces the oldest ones are given up.
const MOST_OPEN: usize = 64;
/// What every line of metrics has, also where it stands within a string.
const MARK: &[u8] = b"_aws";

/// What the reader of an object makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is nothing by itself, but may be part of something.
    No,
    Yes,
}

/// The state between two bytes.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// From the oldest open object on.
    kept: Vec<u8>,
    open: Vec<Open>,
    in_text: bool,
    escaped: bool,
    lines: u64,
    broken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    at: usize,
    /// Something within it was taken.
    taken: bool,
}

impl Finder {
    /// Takes up more bytes; `read` is offered each object in them.
    pub(super) fn push(&mut self, bytes: &[u8], read: &mut impl FnMut(&[u8]) -> Taken) {
        for byte in bytes {
            self.byte(*byte, read);
        }
    }

    /// No more bytes come.
    pub(super) fn end(&mut self) {
        self.give_up(self.open.len());
    }

    /// How many lines there were.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    /// How many objects began like lines of metrics and were cut off.
    pub(super) const fn broken(&self) -> u64 {
        self.broken
    }

    fn byte(&mut self, byte: u8, read: &mut impl FnMut(&[u8]) -> Taken) {
        if byte == b'\n' {
            self.lines += 1;
            if self.in_text {
                // No string goes on over a line's end: what was open was no JSON, or was cut off.
                self.give_up(self.open.len());
                return;
            }
        }
        if self.open.is_empty() && byte != b'{' {
            return;
        }
        self.kept.push(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.in_text,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' => {
                self.open.push(Open { at: self.kept.len() - 1, taken: false });
                if self.open.len() > MOST_OPEN {
                    self.give_up(1);
                }
            }
            b'}' => self.close(read),
            _ => {}
        }
        if self.kept.len() > LONGEST_LINE {
            self.give_up(1);
        }
    }

    fn close(&mut self, read: &mut impl FnMut(&[u8]) -> Taken) {
        let Some(Open { at, taken }) = self.open.pop() else { return };
        let object = self.kept.get(at..).unwrap_or_default();
        if taken || read(object) == Taken::Yes {
            // What is around it need not be longer for it.
            self.kept.truncate(at);
            self.kept.extend_from_slice(b"{}");
            if let Some(around) = self.open.last_mut() {
                around.taken = true;
            }
        }
        if self.open.is_empty() {
            self.kept.clear();
        }
    }

    /// Gives up the oldest open objects, so many of them.
    fn give_up(&mut self, how_many: usize) {
        let until = self.open.get(how_many).map_or(self.kept.len(), |next| next.at);
        let given_up = self.kept.get(..until).unwrap_or_default();
        self.broken += given_up.windows(MARK.len()).filter(|part| *part == MARK).count() as u64;
        self.kept.drain(..until);
        self.open.drain(..how_many.min(self.open.len()));
        for open in &mut self.open {
            open.at -= until;
        }
        if self.open.is_empty() {
            (self.in_text, self.escaped) = (false, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken of a text: the objects with a `_aws` of their own.
    fn taken(text: &str) -> (Vec<String>, Finder) {
        let (mut finder, mut objects) = (Finder::default(), Vec::new());
        finder.push(text.as_bytes(), &mut |object| {
            let object = String::from_utf8(object.to_vec()).unwrap();
            let value: Result<serde_json::Value, _> = serde_json::from_str(&object);
            if !value.is_ok_and(|value| value.get("_aws").is_some()) {
                return Taken::No;
            }
            objects.push(object);
            Taken::Yes
        });
        finder.end();
        (objects, finder)
    }

    #[test]
    fn objects_are_found_wherever_they_stand() {
        const OURS: &str = r#"{"_aws":{"T":1},"t":"a}\"{b"}"#;
        let pretty = OURS.replace(',', ",\n  ");
        for text in [
            OURS.to_owned(),
            format!("2026-11-29 2026/11/29/[$LATEST]ab {OURS}  # comment\n"),
            format!("{{\"record\": {OURS}, \"n\": 1}}\n"),
            format!("{{\"events\":[{{\"a\":{{}}}},{OURS}"),
            format!("an open {{ brace\n{OURS}\n"),
            format!("a \"quote\n{OURS}\n"),
            format!("{{\"cut off, an open \"\n{OURS}\n"),
        ] {
            let (objects, finder) = taken(&text);
            assert_eq!((objects.as_slice(), finder.broken()), (&[OURS.to_owned()][..], 0), "{text}");
        }
        assert_eq!(taken(&format!("at 7:\n{pretty}\nmore\n")).0, [pretty]);
        assert_eq!(taken(&format!("{OURS}{OURS}{OURS}")).0.len(), 3);
    }

    #[test]
    fn what_is_cut_off_is_counted_and_hides_nothing_that_follows() {
        const OURS: &str = r#"{"_aws":{"T":1}}"#;
        for cut in [r#"{"_aws":{"T":1},"Te"#, r#"{"_aws":{"T":"#, r#"{"_aws":{"T":1},"a":1"#] {
            let (objects, finder) = taken(&format!("{cut}\n{OURS}\n{OURS}\n"));
            assert_eq!((objects.len(), finder.broken(), finder.lines()), (2, 1, 3), "{cut}");
        }
    }

    #[test]
    fn no_more_is_kept_than_the_longest_object_that_counts() {
        const OURS: &str = r#"{"_aws":{"T":1}}"#;
        let mut finder = Finder::default();
        let mut objects = 0;
        let mut read = |object: &[u8]| {
            objects += usize::from(object == OURS.as_bytes());
            if object == OURS.as_bytes() { Taken::Yes } else { Taken::No }
        };
        finder.push(b"{\"events\": [", &mut read);
        for _ in 0..20_000 {
            finder.push(b"{\"message\": \"something else {\\\"a\\\": 1}\"},\n", &mut read);
            finder.push(OURS.as_bytes(), &mut read);
            finder.push(&b"{".repeat(3), &mut read);
            assert!(finder.kept.len() <= LONGEST_LINE && finder.open.len() <= MOST_OPEN);
        }
        assert_eq!(objects, 20_000);
        let long = format!("{{\"_aws\":\"{}\"}}", "x".repeat(2 * LONGEST_LINE));
        let (objects, finder) = taken(&long);
        assert_eq!((objects.len(), finder.broken()), (0, 1));
        assert!(finder.kept.capacity() < 4 * LONGEST_LINE);
    }
}
