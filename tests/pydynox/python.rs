//! The other side: a process of the real pydynox, told what to do over its standard input.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Names the Python that has pydynox.
const PYTHON: &str = "LEASEHOLD_PYDYNOX_PYTHON";

/// The version that all of this is about.
const VERSION: &str = "1.8.0";

/// For how long an event is waited for; none takes as long even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

type Listeners = Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<Value>>>>;

/// A process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Python {
    child: Child,
    stdin: Mutex<ChildStdin>,
    listeners: Listeners,
    last_id: AtomicU64,
}

/// What was asked of it, and what it says about that.
#[derive(Debug)]
pub struct Asked {
    pub id: u64,
    events: mpsc::UnboundedReceiver<Value>,
}

impl Python {
    /// Starts one over this DynamoDB's table `locks`, and waits until it is ready.
    pub async fn start(url: &str, witnesses: &Path) -> Self {
        let python = std::env::var_os(PYTHON)
            .unwrap_or_else(|| panic!("set {PYTHON} to a Python that has pydynox {VERSION}, as `.ci/run` does"));
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pydynox/contender.py");
        let mut command = Command::new(python);
        command.arg(script).arg(url).arg("locks").arg(witnesses);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a Python");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let listeners = Listeners::default();
        let theirs = Arc::clone(&listeners);
        let (tell, events) = mpsc::unbounded_channel();
        listeners.lock().unwrap().insert(0, tell);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).expect("a line of JSON");
                let id = event["id"].as_u64().unwrap();
                if let Some(listener) = theirs.lock().unwrap().get(&id) {
                    // Nobody may be left who listens.
                    let _ = listener.send(event);
                }
            }
            // Whoever still waits sees the end.
            theirs.lock().unwrap().clear();
        });
        let ready = Asked { id: 0, events }.next().await;
        assert_eq!((&ready["event"], &ready["version"]), (&json!("ready"), &json!(VERSION)));
        Self { child, stdin: Mutex::new(stdin), listeners, last_id: AtomicU64::new(0) }
    }

    /// Asks it to take a lock, waiting this many seconds at most, and to hold it.
    pub fn acquire(&self, key: &str, lease: f64, wait: f64) -> Asked {
        self.ask(json!({ "do": "acquire", "key": key, "lease": lease, "wait": wait }))
    }

    /// Asks it to take and free a lock again and again.
    pub fn rounds(&self, key: &str, lease: f64, rounds: usize) -> Asked {
        self.ask(json!({ "do": "rounds", "key": key, "lease": lease, "wait": 60.0, "rounds": rounds, "work": 0.001 }))
    }

    /// Asks for the key that a template makes of these values.
    pub fn resolve(&self, template: &str, values: &Value) -> Asked {
        self.ask(json!({ "do": "resolve", "template": template, "values": values }))
    }

    /// Tells it to free what was acquired.
    pub fn free(&self, asked: &Asked) {
        self.say(&json!({ "do": "free", "id": asked.id }));
    }

    /// Kills it on the spot, as nothing can be done about, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn ask(&self, mut command: Value) -> Asked {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (tell, events) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap().insert(id, tell);
        command["id"] = json!(id);
        self.say(&command);
        Asked { id, events }
    }

    fn say(&self, command: &Value) {
        let mut stdin = self.stdin.lock().unwrap();
        writeln!(stdin, "{command}").and_then(|()| stdin.flush()).expect("it listens");
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Asked {
    /// The next event.
    pub async fn next(&mut self) -> Value {
        let event = timeout(PATIENCE, self.events.recv()).await.expect("an event in time");
        event.expect("a Python that lives")
    }

    /// Waits for the next event, which must be this one.
    pub async fn expect(&mut self, event: &str) -> Value {
        let next = self.next().await;
        assert_eq!(next["event"], event, "{next}");
        next
    }

    /// The next event, for who has no executor.
    pub fn blocking_next(&mut self) -> Value {
        self.events.blocking_recv().expect("a Python that lives")
    }
}
