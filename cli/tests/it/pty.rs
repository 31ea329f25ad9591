//! The program on a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::stage::LONG;

/// A terminal's other end.
pub(crate) struct Pty {
    keyboard: File,
    slave: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Pty {
    /// One of 100 columns and 30 lines.
    pub(crate) fn open() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes()).to_owned();
        let slave = OpenOptions::new().read(true).write(true).open(path).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (shown, screen) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            // Once the program's end is closed, reading fails.
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                if shown.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keyboard, slave, screen, shown: String::new() }
    }

    /// Starts the program with this terminal as all that it has.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        let end = || self.slave.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap()
    }

    /// Its end as a standard error.
    pub(crate) fn end(&self) -> File {
        self.slave.try_clone().unwrap()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the terminal was sent this, and answers all that it was sent so far.
    pub(crate) fn shows(&mut self, text: &str) -> &str {
        let end = Instant::now() + LONG;
        while !self.shown.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let bytes = self.screen.recv_timeout(left).unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        &self.shown
    }
}
