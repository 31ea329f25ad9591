//! The log: lines for CloudWatch, written by a thread of their own.
//!
//! Standard output is a pipe, and one that nobody empties blocks its writer. Renewals must not wait for that, so lines
//! are queued, and counted and left out where the queue is full.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use std::{panic, thread};

use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, fmt};

/// How many lines may wait.
const QUEUE: usize = 1_024;
/// How long the last lines may take to leave.
const FLUSH: Duration = Duration::from_millis(100);

/// How the log looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    json: bool,
    level: LevelFilter,
    /// A level that was asked for and is none.
    misread: Option<String>,
}

impl LogSettings {
    /// Reads Lambda's log controls, and `LEASEHOLD_LOG`, which says the level for the extension alone. A level that is
    /// none is taken for `info`, and told.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let format = variable("AWS_LAMBDA_LOG_FORMAT");
        let asked = variable("LEASEHOLD_LOG").or_else(|| variable("AWS_LAMBDA_LOG_LEVEL"));
        let asked = asked.filter(|level| !level.is_empty());
        let level = asked.as_deref().map_or(Some(LevelFilter::INFO), read_level);
        Self {
            json: format.is_some_and(|format| format.eq_ignore_ascii_case("json")),
            level: level.unwrap_or(LevelFilter::INFO),
            misread: asked.filter(|_| level.is_none()),
        }
    }

    /// Our own lines as asked for; the AWS SDK's and hyper's only where something is wrong, or everything is asked for.
    fn targets(&self) -> Targets {
        let others = if self.level == LevelFilter::TRACE { LevelFilter::DEBUG } else { LevelFilter::WARN };
        Targets::new().with_default(others.min(self.level)).with_target("leasehold", self.level)
    }
}

fn read_level(text: &str) -> Option<LevelFilter> {
    // Lambda knows one more.
    if text.eq_ignore_ascii_case("fatal") { Some(LevelFilter::ERROR) } else { text.parse().ok() }
}

/// The log that was started. Dropping it lets the last lines leave.
#[derive(Debug)]
pub struct Log {
    lines: Lines,
}

/// Starts the log of this process; panics go there too.
#[must_use]
pub fn start(settings: &LogSettings) -> Log {
    let lines = Lines::to(io::stdout);
    let writer = Events(lines.clone());
    // A line that can't be written is lost; telling so on standard error could fail as well, and that panics.
    let layer = fmt::layer().with_writer(writer).with_ansi(false).log_internal_errors(false);
    let layer = if settings.json {
        layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
    } else {
        layer.without_time().boxed()
    };
    let installed = tracing_subscriber::registry().with(layer.with_filter(settings.targets())).try_init();
    if installed.is_ok() {
        panic::set_hook(Box::new(|info| tracing::error!(panic = %info, "a panic")));
    }
    if let Some(level) = &settings.misread {
        tracing::warn!(level, "not a log level, `info` is taken: use error, warn, info, debug, trace or off");
    }
    Log { lines }
}

impl Log {
    /// A way for lines that are no log events, whatever the level: each whole, with its end.
    #[must_use]
    pub fn lines(&self) -> Lines {
        self.lines.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.flush();
    }
}

/// What the writing thread is handed.
#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// Everything before it is to be written and then told.
    Flush(SyncSender<()>),
    /// The same, to a task that waits for it.
    Written(oneshot::Sender<()>),
}

/// The way to the writing thread.
#[derive(Clone, Debug)]
pub struct Lines {
    queue: SyncSender<Message>,
    left_out: Arc<AtomicU64>,
}

impl Lines {
    /// Puts a line in the queue; whether there was room. It is up to the caller to tell it again.
    #[must_use]
    pub fn offer(&self, line: Vec<u8>) -> bool {
        self.queue.try_send(Message::Line(line)).is_ok()
    }

    /// Waits until what is in the queue has left, for so long at most: what is still there when the environment freezes
    /// comes out at its next invocation, or never.
    ///
    /// # Cancellation
    ///
    /// The lines leave all the same.
    pub async fn written(&self, limit: Duration) {
        let (done, is_done) = oneshot::channel();
        if self.queue.try_send(Message::Written(done)).is_ok() {
            let _ = timeout(limit, is_done).await;
        }
    }

    /// To a writer, by a thread of its own.
    pub fn to<W: Write>(make: impl Fn() -> W + Send + 'static) -> Self {
        let (queue, messages) = sync_channel(QUEUE);
        let left_out = Arc::new(AtomicU64::new(0));
        let counter = left_out.clone();
        // Without the thread the queue is closed, and lines go nowhere.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || write(&messages, &counter, &mut make()));
        Self { queue, left_out }
    }

    fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if self.queue.try_send(Message::Flush(done)).is_ok() {
            let _ = is_done.recv_timeout(FLUSH);
        }
    }
}

fn write(messages: &Receiver<Message>, left_out: &AtomicU64, to: &mut impl Write) {
    for message in messages {
        // Nobody can be told that the log can't be written.
        let _ = match message {
            Message::Line(line) => to.write_all(&line),
            Message::Flush(done) => to.flush().map(|()| {
                let _ = done.try_send(());
            }),
            Message::Written(done) => to.flush().map(|()| {
                let _ = done.send(());
            }),
        };
        let lines = left_out.swap(0, Ordering::Relaxed);
        if lines > 0 {
            let _ = writeln!(to, r#"{{"level":"WARN","message":"the log was too slow","lines_left_out":{lines}}}"#);
        }
    }
}

/// One line on its way.
#[derive(Debug)]
struct Line<'a> {
    lines: &'a Lines,
}

impl Write for Line<'_> {
    /// Takes a whole event: that is how it is handed over.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.queue.try_send(Message::Line(event.to_vec())) {
            self.lines.left_out.fetch_add(1, Ordering::Relaxed);
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `tracing` writes its events with.
#[derive(Clone, Debug)]
struct Events(Lines);

impl<'a> MakeWriter<'a> for Events {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { lines: &self.0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};

    use super::*;

    fn read(variables: &[(&str, &str)]) -> LogSettings {
        LogSettings::read(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn lambdas_log_controls_are_followed_and_ours_go_before() {
        let info = LogSettings { json: false, level: LevelFilter::INFO, misread: None };
        assert_eq!(read(&[]), info);
        assert_eq!(read(&[("LEASEHOLD_LOG", "")]), info);
        assert_eq!(read(&[("AWS_LAMBDA_LOG_FORMAT", "JSON")]), LogSettings { json: true, ..info.clone() });
        assert_eq!(read(&[("AWS_LAMBDA_LOG_FORMAT", "Text")]), info);
        for (text, level) in [("DEBUG", LevelFilter::DEBUG), ("FATAL", LevelFilter::ERROR), ("off", LevelFilter::OFF)] {
            assert_eq!(read(&[("AWS_LAMBDA_LOG_LEVEL", text)]).level, level, "{text}");
        }
        let loud = LogSettings { misread: Some("loud".to_owned()), ..info };
        assert_eq!(read(&[("LEASEHOLD_LOG", "loud")]), loud);
        let both = [("AWS_LAMBDA_LOG_LEVEL", "DEBUG"), ("LEASEHOLD_LOG", "error")];
        assert_eq!(read(&both).level, LevelFilter::ERROR);
    }

    #[test]
    fn other_peoples_lines_stay_out_of_the_way() {
        use tracing::Level;
        let info = read(&[]).targets();
        assert!(info.would_enable("leasehold::keeper", &Level::INFO));
        assert!(info.would_enable("leasehold_extension::socket", &Level::INFO));
        assert!(!info.would_enable("hyper", &Level::INFO));
        assert!(info.would_enable("aws_config", &Level::WARN));
        let error = read(&[("LEASEHOLD_LOG", "error")]).targets();
        assert!(!error.would_enable("aws_config", &Level::WARN));
    }

    /// What a slow reader holds back.
    #[derive(Clone, Debug, Default)]
    struct Sink {
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Sink {
        fn hold(&self) -> MutexGuard<'_, Vec<u8>> {
            self.written.lock().unwrap()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.hold().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_leave_before_a_freeze_unless_nobody_reads() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let sink = Sink::default();
        let lines = Lines::to({
            let sink = sink.clone();
            move || sink.clone()
        });
        assert!(lines.offer(b"released\n".to_vec()));
        runtime.block_on(lines.written(Duration::from_secs(60)));
        assert_eq!(*sink.hold(), b"released\n");
        let blocked = sink.hold();
        assert!(lines.offer(b"late\n".to_vec()));
        runtime.block_on(lines.written(Duration::from_millis(1)));
        drop(blocked);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up() {
        let sink = Sink::default();
        let lines = Lines::to({
            let sink = sink.clone();
            move || sink.clone()
        });
        let blocked = sink.hold();
        for n in 0..QUEUE + 100 {
            Events(lines.clone()).make_writer().write_all(format!("line {n}\n").as_bytes()).unwrap();
        }
        drop(blocked);
        // The queue is emptied in its own time; a flush that comes back says that it is.
        let (done, is_done) = sync_channel(1);
        lines.queue.send(Message::Flush(done)).unwrap();
        is_done.recv().unwrap();
        let written = String::from_utf8(sink.hold().clone()).unwrap();
        assert!(written.contains("line 0") && written.contains("lines_left_out"), "{written}");
    }
}
