//! A DynamoDB of the sandbox's own, in memory and on loopback, and a view on the tables of any.

mod held;
mod tables;

use std::net::Ipv4Addr;

use dynoxide::Database;
use tokio::net::TcpListener;

pub use self::tables::{LockTable, Row, Tables};
use crate::{Error, settings::DEFAULT_REGION, task::OwnedRuntime};

/// A DynamoDB in memory, served on the loopback interface; dropping it ends it. Every sandbox has one of its own unless it
/// is told otherwise; by itself it serves tests of programs that are no functions.
///
/// ```no_run
/// # async fn example() -> Result<(), leasehold_sandbox::Error> {
/// let dynamodb = leasehold_sandbox::EmbeddedDynamoDb::start(0)?;
/// dynamodb.tables().create_lock_table("locks").await?;
/// // … point a client at `dynamodb.url()` …
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EmbeddedDynamoDb {
    url: String,
    /// Threads of its own: SQLite works without yielding.
    _executor: OwnedRuntime,
}

impl EmbeddedDynamoDb {
    /// Starts one on this port of the loopback interface, or on any with 0.
    ///
    /// # Errors
    ///
    /// When the port is taken, or a thread can't be had.
    pub fn start(port: u16) -> Result<Self, Error> {
        let database = Database::memory().map_err(|error| Error::EmbeddedDynamoDb(error.to_string()))?;
        let executor = OwnedRuntime::new("dynamodb").map_err(Error::io("start DynamoDB's threads"))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.map_err(Error::io(format!("listen on 127.0.0.1:{port}")))?;
        let port = listener.local_addr().map_err(Error::io("read the port"))?.port();
        listener.set_nonblocking(true).map_err(Error::io("prepare DynamoDB's port"))?;
        executor.spawn(async move {
            let listener = match TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => return tracing::error!(%error, "DynamoDB's port can't be used"),
            };
            // Ends with its executor and never by itself.
            if let Err(error) = dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()).await
            {
                tracing::error!(error, "the embedded DynamoDB ended");
            }
        });
        Ok(Self { url: format!("http://127.0.0.1:{port}"), _executor: executor })
    }

    /// Where it is served.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its tables.
    pub fn tables(&self) -> Tables {
        Tables::new(Some(self.url.clone()), DEFAULT_REGION, false)
    }
}
