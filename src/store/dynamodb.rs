//! The store over DynamoDB: one request, one answer, never a retry.

mod inspection;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use tokio::time::{sleep, timeout};

use super::connection::{Connection, Connections};
use super::errors::{ENDPOINT, failure, late};
use super::row_format::{self, Item, RowFormat, Write, primary_key};
use super::state::{Consumed, StateAnswer, StateOutcome, StateRequest};
use super::usage::{Counters, StoreUsage};
use super::witness::Witness;
use super::write::{self, Reply};
use super::{Lock, Store, state_transaction};
use crate::protocol::{Answer, Failure, FailureKind, Outcome, Request};
use crate::session::Table;

pub use inspection::{FoundRow, Look, Page, Position, Scan};

/// How long a reply that lies in the socket's buffer may take from there to here when the timer has already fired. After
/// a freeze both happen at once, and the task that reads the socket may be the later one to run.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// How long the warming request may take: nobody waits for its answer, but the environment's init has a limit.
const WARM_UP: Duration = Duration::from_secs(2);

/// What a request that only warms the connection asks for. No key is ever resolved to this one in a table of a namespace,
/// and reading it in any other does no harm.
const NOBODYS: &str = "leasehold-warm-up";

/// Keeps the rows in DynamoDB tables, each in the row format that the lock's table names.
///
/// Needs `dynamodb:UpdateItem` and `dynamodb:GetItem` on the tables and nothing else; for tables of the format `pydynox/1`
/// also `dynamodb:PutItem` and `dynamodb:DeleteItem`, and to save states also `dynamodb:ConditionCheckItem`. One serves any number of tables, formats and requests at a time.
///
/// ```no_run
/// use std::time::Duration;
///
/// use leasehold::protocol::{HolderInfo, Request};
/// use leasehold::session::Table;
/// use leasehold::store::{DynamoDb, Lock, Store};
///
/// # async fn look() {
/// let store = DynamoDb::from_env().await;
/// let (holder, attributes) = (HolderInfo::default(), Default::default());
/// let lock = Lock { table: Table::new("locks"), key: "orders:17".into(), holder, attributes };
/// let answer = store.send(&lock, Request::Read, Duration::from_secs(5)).await;
/// println!("{:?}", answer.outcome);
/// # }
/// ```
pub struct DynamoDb {
    connections: Connections,
    usage: Counters,
    warm_table: Option<Table>,
}

impl DynamoDb {
    /// A store with the Region, the credentials and the endpoint that the environment names (`AWS_REGION`,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`, a profile, the container's or the instance's role, …).
    ///
    /// Nothing is sent to DynamoDB and nothing fails: what is missing or wrong is told in the answer to the first request.
    pub async fn from_env() -> Self {
        let store = Self::lazy();
        store.connections.config().await;
        store
    }

    /// Like [`DynamoDb::from_env`], but the environment is read with the first request or [`Store::warm_up`], and within
    /// its time: for who must not wait now.
    #[must_use]
    pub fn lazy() -> Self {
        Self::new(None)
    }

    /// A store with these settings. Retries and timeouts in them don't count: the protocol has its own.
    #[must_use]
    pub fn with_config(config: SdkConfig) -> Self {
        Self::new(Some(config))
    }

    fn new(config: Option<SdkConfig>) -> Self {
        Self { connections: Connections::new(config), usage: Counters::default(), warm_table: None }
    }

    /// Names a table for [`Store::warm_up`] to read from: then its request is one that the role may send.
    #[must_use]
    pub fn warming(self, table: Table) -> Self {
        Self { warm_table: Some(table), ..self }
    }

    /// What was asked of DynamoDB so far.
    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        self.usage.snapshot()
    }

    /// Credentials that DynamoDB refuses are asked for anew with the next request.
    fn renew_credentials(&self, failure: Option<FailureKind>, connection: &Arc<Connection>) {
        if failure == Some(FailureKind::Credentials) {
            self.connections.renew_credentials(connection);
        }
    }

    /// The exchange itself, however long it takes.
    async fn exchange(
        &self,
        by: &Connection,
        format: &dyn RowFormat,
        lock: &Lock,
        request: &Request,
        witness: &Witness,
    ) -> Outcome {
        let client = self.connections.client(by).await;
        match format.encode(lock, request) {
            Some(write) => self.write(client, format, lock, request, write, witness).await,
            None => self.read(client, format, lock, witness).await,
        }
    }

    async fn write(
        &self,
        client: &Client,
        format: &dyn RowFormat,
        lock: &Lock,
        request: &Request,
        write: Write,
        witness: &Witness,
    ) -> Outcome {
        match write::send(client, lock, write, witness).await {
            Reply::Applied { updated, consumed } => {
                witness.note_consumed(self.usage.wrote(consumed.as_deref()));
                written(format, lock, request, updated.as_ref())
            }
            Reply::Refused(item) => refused(format, request, item.as_ref()),
            Reply::Failed(failure) => Outcome::Failed(failure),
        }
    }

    async fn read(&self, client: &Client, format: &dyn RowFormat, lock: &Lock, witness: &Witness) -> Outcome {
        let reply = client
            .get_item()
            .table_name(&lock.table.name)
            .set_key(Some(primary_key(&lock.table, &lock.key)))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .customize()
            .interceptor(witness.clone())
            .send()
            .await;
        match reply {
            Ok(output) => {
                witness.note_consumed(self.usage.read(output.consumed_capacity()));
                Outcome::Read { row: format.decode(output.item()) }
            }
            Err(error) => Outcome::Failed(failure(&error, witness, "GetItem", &lock.table)),
        }
    }
}

/// What an exchange comes to within its time, on a connection that nobody gives up meanwhile.
async fn within<O>(
    limit: Duration,
    connection: &Connection,
    table: &Table,
    witness: &Witness,
    exchange: impl Future<Output = O>,
) -> Result<O, Failure> {
    let given_up = connection.given_up();
    let mut reply = pin!(exchange);
    tokio::select! {
        biased;
        reply = &mut reply => Ok(reply),
        () = given_up => {
            let message = "the connection was given up while the request was in flight";
            Err(Failure::new(FailureKind::Connection, message))
        }
        () = sleep(limit) => timeout(LAST_LOOK, &mut reply).await.map_err(|_| late(witness, limit, table)),
    }
}

/// The row format of a table, where it is one that is known and the table's key is one that it can have.
fn format_of(table: &Table) -> Result<&'static dyn RowFormat, Failure> {
    let format = row_format::of(table).map_err(|unknown| Failure::new(FailureKind::Rejected, unknown.to_string()))?;
    if let Some(misfit) = table.misfit(format.format()) {
        return Err(Failure::new(FailureKind::WrongKeySchema, misfit));
    }
    // A key that is named like one of the format's attributes would be overwritten by it.
    let names = std::iter::once(&table.key_attribute).chain(table.sort_key.iter().map(|(name, _)| name));
    let clash = names.into_iter().find(|name| format.attributes().contains(&name.as_str()));
    clash.map_or(Ok(format), |clash| {
        let message = format!(
            "the key of table `{}` can't have the attribute `{clash}`, for the row format keeps something else there; \
             take a table of its own whose partition key is the string `key`",
            table.name
        );
        Err(Failure::new(FailureKind::WrongKeySchema, message))
    })
}

/// What an applied write left behind.
fn written(format: &dyn RowFormat, lock: &Lock, request: &Request, updated: Option<&Item>) -> Outcome {
    if *request == Request::Ticket {
        return Outcome::Numbered { row: format.decode(updated) };
    }
    let found = match format.written(request, updated) {
        Ok(version) => {
            return Outcome::Written { version, hints: updated.map(|item| format.hints(item)).unwrap_or_default() };
        }
        Err(found) => found,
    };
    match format.broken(request, updated) {
        Some(broken) => failed(FailureKind::BrokenVersion, format!("in table `{}` {broken}", lock.table.name)),
        // It was applied, but to what is not known: what may have landed is found out by the next attempt.
        None => failed(FailureKind::Server, format!("DynamoDB's answer to an applied write {found}{ENDPOINT}")),
    }
}

/// What a refusal by this row means.
///
/// Without the row that refused, it was absent, as DynamoDB answers for a takeover, a renewal and a release. An absent
/// row can't refuse an acquire: there the endpoint does not know how to return it.
fn refused(format: &dyn RowFormat, request: &Request, item: Option<&Item>) -> Outcome {
    if item.is_none() && matches!(request, Request::Acquire { .. }) {
        let message = "the endpoint refused a write without the row that refused it: it has to support \
                       `ReturnValuesOnConditionCheckFailure`, as DynamoDB does";
        return failed(FailureKind::Rejected, message);
    }
    Outcome::Refused { row: format.decode(item) }
}

impl Store for DynamoDb {
    async fn send(&self, lock: &Lock, request: Request, limit: Duration) -> Answer {
        let format = match format_of(&lock.table) {
            Ok(format) => format,
            Err(failure) => return Answer::new(Outcome::Failed(failure), None),
        };
        self.usage.sent(&request);
        let (connection, witness) = (self.connections.current(), Witness::default());
        let reply = self.exchange(&connection, format, lock, &request, &witness);
        let outcome = within(limit, &connection, &lock.table, &witness, reply).await.unwrap_or_else(Outcome::Failed);
        self.usage.ended(&outcome);
        let failure = failed_by(&outcome);
        self.renew_credentials(failure, &connection);
        Answer { date: witness.date().filter(|_| was_answered(failure)), consumed: witness.consumed(), outcome }
    }

    async fn send_state(&self, lock: &Lock, request: StateRequest, limit: Duration) -> StateAnswer {
        let format = match format_of(&lock.table) {
            Ok(format) => format,
            Err(failure) => return StateAnswer::new(StateOutcome::Failed(failure)),
        };
        self.usage.sent_state(&request);
        let (connection, witness) = (self.connections.current(), Witness::default());
        let reply = async {
            let client = self.connections.client(&connection).await;
            state_transaction::send(client, format, lock, &request, &witness, &self.usage).await
        };
        let (outcome, consumed) = within(limit, &connection, &lock.table, &witness, reply)
            .await
            .unwrap_or_else(|failure| (StateOutcome::Failed(failure), Consumed::default()));
        let failure = if let StateOutcome::Failed(failure) = &outcome { Some(failure.kind) } else { None };
        self.usage.ended_state(&outcome);
        self.renew_credentials(failure, &connection);
        StateAnswer { date: witness.date().filter(|_| was_answered(failure)), consumed, outcome }
    }

    /// Reads a key that nobody uses, from the table given to [`DynamoDb::warming`] or, without one, from a table that
    /// need not exist. What is answered does not matter: name resolution, the TLS connection and the credentials do.
    async fn warm_up(&self) {
        let table = self.warm_table.clone().unwrap_or_else(|| Table::new(NOBODYS));
        let lock = Lock { table, key: NOBODYS.to_owned(), holder: Default::default(), attributes: Default::default() };
        let Ok(format) = format_of(&lock.table) else { return };
        let connection = self.connections.current();
        let given_up = connection.given_up();
        let witness = Witness::default();
        let read = self.exchange(&connection, format, &lock, &Request::Read, &witness);
        tokio::select! {
            outcome = read => {
                // The request that is to come needs others than these, too.
                self.renew_credentials(failed_by(&outcome), &connection);
                tracing::debug!(?outcome, "the connection to DynamoDB is warm");
            }
            () = given_up => {}
            () = sleep(WARM_UP) => tracing::debug!("DynamoDB did not answer while the connection was warmed"),
        }
    }

    fn drop_connections(&self) {
        self.connections.drop_all();
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

/// What comes after a request was given up, or only in part, is no answer, and its `Date` is none either.
fn was_answered(failure: Option<FailureKind>) -> bool {
    !matches!(failure, Some(FailureKind::Timeout | FailureKind::Connection))
}

fn failed_by(outcome: &Outcome) -> Option<FailureKind> {
    if let Outcome::Failed(failure) = outcome { Some(failure.kind) } else { None }
}

fn failed(kind: FailureKind, message: impl Into<String>) -> Outcome {
    Outcome::Failed(Failure::new(kind, message))
}
