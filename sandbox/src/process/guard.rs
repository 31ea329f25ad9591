//! A shell that outlives the sandbox's own process just long enough to kill what a killed one left behind.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
};

use rustix::process::Pid;

/// Reads `+ group` and `- group` lines; at the end of its input every group that is left is killed.
///
/// The kernel closes the input however the sandbox's process ends, SIGKILL included.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
groups=
while read -r what group; do
    case $what in
    +) groups="$groups $group" ;;
    -)
        left=
        for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
        groups=$left
        ;;
    esac
done
for one in $groups; do kill -KILL "-$one" 2>/dev/null; done
"#;

/// The running shell; dropping it ends it without killing anybody.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    input: ChildStdin,
}

impl Guard {
    /// Starts the shell. Without one the sandbox still ends its processes itself, unless it is killed.
    pub(super) fn start() -> Option<Self> {
        let spawned = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "leasehold-sandbox-guard"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match spawned {
            Ok(mut shell) => shell.stdin.take().map(|input| Self { shell, input }),
            Err(error) => {
                tracing::warn!(%error, "no guard: a sandbox that is killed will leave its processes behind");
                None
            }
        }
    }

    pub(super) fn add(&mut self, group: Pid) {
        self.tell('+', group);
    }

    pub(super) fn remove(&mut self, group: Pid) {
        self.tell('-', group);
    }

    fn tell(&mut self, what: char, group: Pid) {
        let told: io::Result<()> = writeln!(self.input, "{what} {}", group.as_raw_nonzero());
        if let Err(error) = told {
            tracing::warn!(%error, "the guard is gone: a sandbox that is killed will leave its processes behind");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SIGKILL before the input closes, so that it acts on nothing any more; the wait is for a dead process.
        if self.shell.kill().is_ok() {
            let _ = self.shell.wait();
        }
    }
}
