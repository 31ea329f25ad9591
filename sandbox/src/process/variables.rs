//! The environment variables that Lambda gives to a function and to an extension.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::{EnvironmentId, Process, settings::Settings};

/// Where a process lives.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) environment: EnvironmentId,
    pub(crate) port: u16,
    pub(crate) tmp: &'a Path,
    pub(crate) socket: &'a Path,
}

/// What is handed on from the sandbox's own environment: what programs need to start and to be debugged.
const INHERITED: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "LLVM_PROFILE_FILE",
    "TZ",
];

/// Handed on where the DynamoDB endpoint is the user's own.
const CREDENTIALS: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];

/// The variables of a process, in the order in which later ones win.
pub(crate) fn variables(settings: &Settings, place: &Place<'_>, process: &Process) -> Vec<(String, OsString)> {
    let mut all = Variables(Vec::new());
    for name in INHERITED {
        all.inherit(name);
    }
    let initialization = if settings.is_managed() { "lambda-managed-instances" } else { "on-demand" };
    all.set("LANG", "en_US.UTF-8");
    all.set("AWS_LAMBDA_RUNTIME_API", format!("127.0.0.1:{}", place.port));
    all.set("AWS_LAMBDA_FUNCTION_NAME", &settings.function_name);
    all.set("AWS_LAMBDA_FUNCTION_VERSION", &settings.function_version);
    all.set("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", settings.memory_mb.to_string());
    all.set("AWS_LAMBDA_INITIALIZATION_TYPE", initialization);
    if let Some(concurrency) = settings.managed_instances {
        all.set("AWS_LAMBDA_MAX_CONCURRENCY", concurrency.to_string());
    }
    all.set("AWS_REGION", &settings.region);
    all.set("AWS_DEFAULT_REGION", &settings.region);
    all.set("AWS_ACCESS_KEY_ID", "AKIDSANDBOX");
    all.set("AWS_SECRET_ACCESS_KEY", "sandbox");
    if settings.own_credentials && std::env::var_os("AWS_ACCESS_KEY_ID").is_some() {
        for name in CREDENTIALS {
            all.inherit(name);
        }
    }
    all.set("AWS_EC2_METADATA_DISABLED", "true");
    if let Some(endpoint) = &settings.endpoint {
        all.set("AWS_ENDPOINT_URL_DYNAMODB", endpoint);
    }
    all.set("TMPDIR", place.tmp);
    all.set("LEASEHOLD_SOCKET", place.socket);
    if *process == Process::Runtime {
        // Extensions don't get these on Lambda either.
        all.set("_HANDLER", "bootstrap");
        all.set("LAMBDA_TASK_ROOT", task_root(settings));
        all.set("LAMBDA_RUNTIME_DIR", "/var/runtime");
        all.set("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023");
        all.set("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", settings.function_name));
        let stream = format!("sandbox/[{}]{}", settings.function_version, place.environment);
        all.set("AWS_LAMBDA_LOG_STREAM_NAME", stream);
    }
    for (name, value) in &settings.variables {
        all.set(name, value);
    }
    all.0
}

/// The directory that the function's binary lies in.
pub(crate) fn task_root(settings: &Settings) -> PathBuf {
    settings.function.parent().unwrap_or(Path::new("/")).to_owned()
}

#[derive(Debug)]
struct Variables(Vec<(String, OsString)>);

impl Variables {
    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn inherit(&mut self, name: &str) {
        if let Some(value) = std::env::var_os(name) {
            self.set(name, value);
        }
    }
}
