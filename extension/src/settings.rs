//! What the extension reads from its environment. The leases' own settings come from the layer with each acquisition.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use leasehold::keeper::MetricLines;
use leasehold::session::Table;

use crate::api::{BadEndpoint, Endpoint, Events};

/// Where layers look for the socket if nothing else is set.
const SOCKET: &str = "/tmp/leasehold/keeper.sock";

/// The extension's settings.
#[derive(Debug)]
pub struct Settings {
    /// The name to register under: Lambda asks for the executable's file name.
    pub name: String,
    /// Where the Extensions API is. A bad one is told in the log; sessions are served all the same.
    pub endpoint: Result<Endpoint, BadEndpoint>,
    /// Whether this is Lambda Managed Instances: nothing freezes, and many invocations run at once.
    pub managed_instances: bool,
    /// The socket that layers connect to.
    pub socket: PathBuf,
    /// The lock table of the environment, which the first connection is tried out on; layers name theirs themselves.
    pub table: Option<Table>,
    /// The function's name, as metrics tell it.
    pub function: Option<String>,
    /// Which metrics are written. What is none is told in the log, and the usual ones are written.
    pub metrics: Result<MetricLines, String>,
}

impl Settings {
    /// Reads the settings by asking for variables; `program` is how the process was called. `None` where there is no
    /// `AWS_LAMBDA_RUNTIME_API`: then nobody but a person has started it.
    pub fn read(program: Option<OsString>, variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let endpoint = variable("AWS_LAMBDA_RUNTIME_API")?;
        let initialization = variable("AWS_LAMBDA_INITIALIZATION_TYPE");
        let socket = variable("LEASEHOLD_SOCKET").filter(|path| !path.is_empty());
        Some(Self {
            name: name(program),
            endpoint: Endpoint::parse(&endpoint.to_string_lossy()),
            managed_instances: initialization.is_some_and(|kind| kind == "lambda-managed-instances"),
            socket: socket.map_or_else(|| SOCKET.into(), PathBuf::from),
            function: text(&variable, "AWS_LAMBDA_FUNCTION_NAME"),
            metrics: metrics(&variable),
            table: table(variable),
        })
    }

    /// Which events to register for.
    #[must_use]
    pub const fn events(&self) -> Events {
        if self.managed_instances { Events::Shutdown } else { Events::InvokeAndShutdown }
    }

    /// The reset journal's folder: next to the socket.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.socket.parent().unwrap_or(Path::new("")).join("held")
    }
}

fn text(variable: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

fn metrics(variable: &impl Fn(&str) -> Option<OsString>) -> Result<MetricLines, String> {
    let asked = variable("LEASEHOLD_METRICS").filter(|value| !value.is_empty());
    asked.map_or_else(|| Ok(MetricLines::default()), |asked| MetricLines::read(&asked.to_string_lossy()))
}

fn table(variable: impl Fn(&str) -> Option<OsString>) -> Option<Table> {
    let text = |name| text(&variable, name);
    let mut table = Table::new(text("LEASEHOLD_TABLE")?);
    if let Some(attribute) = text("LEASEHOLD_KEY_ATTRIBUTE") {
        table.key_attribute = attribute;
    }
    let sort_key = text("LEASEHOLD_SORT_KEY");
    table.sort_key =
        sort_key.and_then(|pair| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    Some(table)
}

fn name(program: Option<OsString>) -> String {
    let program = program.unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or("leasehold".as_ref());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(program: &str, variables: &[(&str, &str)]) -> Option<Settings> {
        Settings::read(Some(program.into()), |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn lambda_says_little_and_the_rest_is_known() {
        let settings = read("/opt/extensions/leasehold", &[("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001")]).unwrap();
        assert_eq!(settings.name, "leasehold");
        assert_eq!(settings.endpoint.as_ref().unwrap(), &Endpoint::parse("127.0.0.1:9001").unwrap());
        assert_eq!(settings.events(), Events::InvokeAndShutdown);
        assert_eq!(settings.socket, Path::new("/tmp/leasehold/keeper.sock"));
        assert_eq!(settings.journal(), Path::new("/tmp/leasehold/held"));
    }

    #[test]
    fn the_connection_is_tried_out_on_the_lock_table() {
        let lambda = ("AWS_LAMBDA_RUNTIME_API", "x:1");
        assert_eq!(read("leasehold", &[lambda]).unwrap().table, None);
        let plain = [lambda, ("LEASEHOLD_TABLE", "locks")];
        assert_eq!(read("leasehold", &plain).unwrap().table, Some(Table::new("locks")));
        let own =
            [lambda, ("LEASEHOLD_TABLE", "t"), ("LEASEHOLD_KEY_ATTRIBUTE", "PK"), ("LEASEHOLD_SORT_KEY", "SK=lock")];
        let sort_key = Some(("SK".to_owned(), "lock".to_owned()));
        let expected = Table { key_attribute: "PK".to_owned(), sort_key, ..Table::new("t") };
        assert_eq!(read("leasehold", &own).unwrap().table, Some(expected));
    }

    #[test]
    fn which_metrics_are_written_is_asked_for() {
        let lambda = ("AWS_LAMBDA_RUNTIME_API", "x:1");
        let metrics = |value| read("x", &[lambda, ("LEASEHOLD_METRICS", value)]).unwrap().metrics;
        for (value, which) in
            [("", MetricLines::On), ("on", MetricLines::On), ("full", MetricLines::Full), ("off", MetricLines::Off)]
        {
            assert_eq!(metrics(value), Ok(which), "{value}");
        }
        assert!(metrics("FULL").unwrap_err().contains("`full`"));
        assert_eq!(read("x", &[lambda]).unwrap().metrics, Ok(MetricLines::On));
    }

    #[test]
    fn a_socket_takes_its_journal_along() {
        let socket = [("AWS_LAMBDA_RUNTIME_API", "x:1"), ("LEASEHOLD_SOCKET", "/run/a/b.sock")];
        assert_eq!(read("x", &socket).unwrap().journal(), Path::new("/run/a/held"));
        let bare = [("AWS_LAMBDA_RUNTIME_API", "x:1"), ("LEASEHOLD_SOCKET", "b.sock")];
        assert_eq!(read("x", &bare).unwrap().journal(), Path::new("held"));
        let empty = [("AWS_LAMBDA_RUNTIME_API", "x:1"), ("LEASEHOLD_SOCKET", "")];
        assert_eq!(read("x", &empty).unwrap().socket, Path::new(SOCKET));
    }

    #[test]
    fn managed_instances_get_the_end_only() {
        let kind = "AWS_LAMBDA_INITIALIZATION_TYPE";
        for (value, events) in [
            ("lambda-managed-instances", Events::Shutdown),
            ("on-demand", Events::InvokeAndShutdown),
            ("snap-start", Events::InvokeAndShutdown),
        ] {
            let settings = read("x", &[("AWS_LAMBDA_RUNTIME_API", "x:1"), (kind, value)]).unwrap();
            assert_eq!(settings.events(), events, "{value}");
        }
    }

    #[test]
    fn without_the_api_there_are_no_settings_and_with_a_bad_one_there_are() {
        assert!(read("x", &[]).is_none());
        assert!(read("x", &[("AWS_LAMBDA_RUNTIME_API", "")]).unwrap().endpoint.is_err());
    }
}
