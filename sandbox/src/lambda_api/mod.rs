//! A stack's functions, invoked over HTTP as Lambda's and CloudFormation's own APIs are: for programs that invoke them with
//! the AWS SDK.
//!
//! Served are `Invoke`, with the log's tail, `GetFunctionConfiguration` and `DescribeStacks`, in the forms that AWS's API
//! references document. Each function is a [`Sandbox`] of its own with several environments, over one DynamoDB. A function
//! that takes more than its memory is killed, as by Lambda's kernel.
//!
//! | file | what it is for |
//! |---|---|
//! | `stack` | what is served, as a file may have it |
//! | `function` | one function: its sandbox, its configuration, its invocations |
//! | `memory` | what processes take, and the end of who takes too much |
//! | `tail` | the last lines of an invocation's log, with Lambda's own |
//! | `http` | requests to answers |
//! | `describe` | `DescribeStacks`, in XML |

mod describe;
mod function;
mod http;
mod memory;
mod stack;
mod tail;

use std::{fmt, net::Ipv4Addr, sync::Arc};

use function::Function;
pub use stack::{Stack, StackFunction};

use crate::{Error, Sandbox, task::OwnedRuntime};

/// A [`Stack`], served on the loopback interface. Dropping it kills its functions' processes.
///
/// ```no_run
/// use leasehold_sandbox::{EmbeddedDynamoDb, Stack, StackFunction, LambdaApi};
///
/// # async fn example() -> Result<(), leasehold_sandbox::Error> {
/// let dynamodb = EmbeddedDynamoDb::start(0)?;
/// dynamodb.tables().create_lock_table("locks").await?;
/// let stack = Stack::new("orders")
///     .function(StackFunction::new("ship", "target/debug/ship").variable("LEASEHOLD_TABLE", "locks"))
///     .output("ShipFunctionName", "ship");
/// let api = LambdaApi::start(stack, dynamodb.url()).await?;
/// // … point `AWS_ENDPOINT_URL_LAMBDA` and `AWS_ENDPOINT_URL_CLOUDFORMATION` to `api.url()` …
/// # Ok(())
/// # }
/// ```
pub struct LambdaApi {
    url: String,
    account: Arc<Account>,
    /// Threads of its own, as the sandboxes have them.
    _executor: OwnedRuntime,
}

/// What the connections share.
#[derive(Debug)]
struct Account {
    stack: Stack,
    functions: Vec<Arc<Function>>,
}

impl LambdaApi {
    /// Starts the stack's functions over the DynamoDB at this URL, and the server. No process runs before the first
    /// invocation.
    ///
    /// # Errors
    ///
    /// When a program is missing, two functions have one name, a setting is wrong, or a port, thread or directory can't be had.
    pub async fn start(stack: Stack, dynamodb_url: &str) -> Result<Self, Error> {
        let mut names: Vec<_> = stack.functions().iter().map(StackFunction::name).collect();
        names.sort_unstable();
        if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let problem = format!("has two functions named {twice}; give each a name of its own");
            return Err(Error::Setting { setting: "the stack", problem });
        }
        let executor = OwnedRuntime::new("lambda-api").map_err(Error::io("start the API's threads"))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(Error::io("listen on the loopback interface"))?;
        let port = listener.local_addr().map_err(Error::io("read the port"))?.port();
        listener.set_nonblocking(true).map_err(Error::io("prepare the API's port"))?;
        let mut functions = Vec::new();
        for wanted in stack.functions() {
            let function = Arc::new(Function::start(&stack, wanted, dynamodb_url).await?);
            executor.spawn(memory::limit(Arc::clone(&function)));
            functions.push(function);
        }
        let account = Arc::new(Account { stack, functions });
        executor.spawn(http::accept(listener, Arc::clone(&account)));
        Ok(Self { url: format!("http://127.0.0.1:{port}"), account, _executor: executor })
    }

    /// Where it is served.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The sandbox that runs this function, to look into it and to play tricks on it.
    pub fn sandbox(&self, function: &str) -> Option<&Sandbox> {
        self.account.function(function).map(|function| function.sandbox())
    }

    /// Shuts the environments of all functions down in good order.
    pub async fn shutdown(&self) {
        for function in &self.account.functions {
            function.sandbox().shutdown().await;
        }
    }
}

impl Account {
    /// By its name, or by an ARN that ends with it.
    fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.iter().find(|function| name.rsplit(':').next() == Some(function.name()))
    }
}

impl fmt::Debug for LambdaApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LambdaApi").field("url", &self.url).finish_non_exhaustive()
    }
}
