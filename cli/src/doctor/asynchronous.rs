//! What becomes of an asynchronous event (EventBridge, S3, SNS) whose key stays busy.

use aws_sdk_lambda::Client;
use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput as Function;

use crate::finding::Finding;
use crate::refused::Refused;

/// Unless a function says otherwise.
/// <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html>
const DEFAULT_RETRIES: i32 = 2;

/// For who is invoked asynchronously: whether is not known from here.
pub(super) async fn check(lambda: &Client, name: &str, function: &Function) -> Option<Finding> {
    const CHECK: &str = "asynchronous";
    let answer = lambda.get_function_event_invoke_config().function_name(name).send().await;
    let (retries, on_failure) = match answer.map_err(|error| Refused::of("GetFunctionEventInvokeConfig", &error)) {
        Ok(config) => {
            let destination =
                config.destination_config().and_then(|of| of.on_failure()).and_then(|of| of.destination());
            (config.maximum_retry_attempts().unwrap_or(DEFAULT_RETRIES), destination.is_some())
        }
        Err(refused) if refused.is("ResourceNotFoundException") => (DEFAULT_RETRIES, false),
        Err(refused) => return Some(Finding::unknown(CHECK, refused.told)),
    };
    let letters =
        function.dead_letter_config().and_then(|config| config.target_arn()).is_some_and(|arn| !arn.is_empty());
    let kept = if on_failure || letters { "and then kept for you" } else { "and then dropped" };
    let told = format!("an event whose key is busy is tried {} times, {kept}", retries.saturating_add(1));
    let advice = match (retries, on_failure || letters) {
        (0, _) => "if it is invoked asynchronously, allow retries: the first busy key ends the event",
        (_, false) => "if it is invoked asynchronously, give it an on-failure destination or a dead-letter queue",
        _ => return Some(Finding::ok(CHECK, told)),
    };
    Some(Finding::warning(CHECK, told, advice))
}
