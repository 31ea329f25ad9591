//! The real binary as a process of its own, with everything it says.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::soon;

/// Where one extension's files lie; it survives the extension, as `/tmp` survives a reset.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir_in("/tmp").unwrap() }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("leasehold/keeper.sock")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.path().join("leasehold/held")
    }
}

/// A running extension; it is killed when dropped.
pub(crate) struct Extension {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    seen: Vec<String>,
}

impl Extension {
    pub(crate) fn start(place: &Place, runtime_api: &str, variables: &[(&str, &str)]) -> Self {
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, OsStr::new(value))).collect();
        Self::start_with(place, runtime_api, &variables)
    }

    /// One whose variables need not be text.
    pub(crate) fn start_with(place: &Place, runtime_api: &str, variables: &[(&str, &OsStr)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .env_clear()
            .env("AWS_LAMBDA_RUNTIME_API", runtime_api)
            .env("LEASEHOLD_SOCKET", place.socket())
            .env("LEASEHOLD_LOG", "debug")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            // Nobody listens there, unless a test says otherwise.
            .env("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:9")
            .envs(variables.iter().copied())
            .args(["arguments", "--are", "ignored"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::unbounded_channel();
        read_lines(child.stdout.take().unwrap(), sender.clone());
        read_lines(child.stderr.take().unwrap(), sender);
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that contains this.
    pub(crate) async fn said(&mut self, part: &str) -> String {
        if let Some(line) = self.seen.iter().find(|line| line.contains(part)) {
            return line.clone();
        }
        loop {
            let Some(line) = soon(self.lines.recv()).await else { panic!("{part:?} not in {:#?}", self.seen) };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Everything it has said, once it has ended.
    pub(crate) async fn said_to_the_end(&mut self) -> &[String] {
        while let Some(line) = soon(self.lines.recv()).await {
            self.seen.push(line);
        }
        &self.seen
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) async fn exited(&mut self) -> ExitStatus {
        soon(self.child.wait()).await.unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Leaves it this many descriptors, those that it has included.
    pub(crate) fn limit_descriptors(&self, number: u64) {
        let limit = Rlimit { current: Some(number), maximum: Some(number) };
        prlimit(Some(self.pid()), Resource::Nofile, limit).unwrap();
    }

    /// How many of the lines so far contain this.
    pub(crate) fn count_said(&mut self, part: &str) -> usize {
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line);
        }
        self.seen.iter().filter(|line| line.contains(part)).count()
    }

    /// How much processor time it took so far, in the kernel's ticks.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid().as_raw_nonzero())).unwrap();
        let after_the_name: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let number = |at: usize| after_the_name[at].parse::<u64>().unwrap();
        number(11) + number(12)
    }

    /// The most memory that it had so far, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid().as_raw_nonzero())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap()
    }

    /// Ends it as the kernel does when memory runs out.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

fn read_lines(stream: impl tokio::io::AsyncRead + Unpin + Send + 'static, sender: mpsc::UnboundedSender<String>) {
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let _ = sender.send(line);
        }
    });
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_leasehold"))
}
