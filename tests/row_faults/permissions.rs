//! Permissions, keys of encryption, credentials and clocks that are not as they must be, in AWS's words.

use std::time::Duration;

use leasehold::Release;
use serde_json::Value;

use crate::items::assert_one_line;
use crate::played::order;
use crate::stage::Stage;
use crate::support::fault_server::{DATE, Fault, FaultServer};
use crate::table::Seen;

const LONG: Duration = Duration::from_secs(30);

/// What one event sees of a DynamoDB that answers so.
async fn attempt(max_wait: Duration, fault: impl Fn(usize) -> Fault + Send + Sync + 'static) -> Seen {
    let server = FaultServer::start(fault);
    let stage = Stage::over(server.url());
    let layer =
        stage.layer::<Value>("orders:{id}").max_wait(max_wait).release(Release::BeforeResponse).build().unwrap();
    let seen = stage.call(&layer, order()).await;
    assert_eq!(server.seen().len(), seen.requests, "{seen:?}");
    assert_one_line(&seen.message);
    seen
}

#[track_caller]
fn assert_seen(seen: &Seen, error: &str, says: &str, requests: usize) {
    assert_eq!((seen.error.as_str(), seen.requests), (error, requests), "{seen:?}");
    assert!(seen.message.contains(says), "{says:?}: {}", seen.message);
}

fn denied(action: &str, because: &str) -> Fault {
    let message = format!(
        "User: arn:aws:sts::123456789012:assumed-role/orders/orders is not authorized to perform: {action} on resource: \
         arn:aws:dynamodb:eu-central-1:123456789012:table/locks {because}"
    );
    Fault::error(400, "AccessDeniedException", &message)
}

fn taken() -> Fault {
    Fault::answer(200, format!(r#"{{"Attributes":{{"version":{{"N":"{DATE}001"}}}}}}"#))
}

fn held_by_another() -> Fault {
    let item = r#"{"key":{"S":"orders:A-17"},"format":{"S":"leasehold/1"},"version":{"N":"7"},"lease_ms":{"N":"30000"},"owner":{"S":"00000000-0000-4000-8000-000000000001"}}"#;
    let name = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException";
    let body = format!(r#"{{"__type":"{name}","message":"The conditional request failed","Item":{item}}}"#);
    Fault::answer(400, body)
}

const NO_POLICY: &str = "because no identity-based policy allows the dynamodb:UpdateItem action";

#[tokio::test]
async fn without_permission_to_write_the_first_request_is_the_last() {
    let seen = attempt(LONG, |_| denied("dynamodb:UpdateItem", NO_POLICY)).await;
    let says = "allow the function's role dynamodb:UpdateItem and dynamodb:GetItem on `locks`";
    assert_seen(&seen, "AccessDenied", says, 1);
    assert!(seen.message.contains("is not authorized to perform: dynamodb:UpdateItem"), "{}", seen.message);
}

/// Reading is only needed to wait: an uncontended lock is taken without. A ticket that is denied, as here the second request
/// is, ends nothing: the look after it does.
#[tokio::test]
async fn without_permission_to_read_the_first_look_at_a_held_row_is_the_last() {
    let fault = |number| match number {
        0 => held_by_another(),
        _ => denied("dynamodb:GetItem", "because no identity-based policy allows the dynamodb:GetItem action"),
    };
    let seen = attempt(LONG, fault).await;
    assert_seen(&seen, "AccessDenied", "is not authorized to perform: dynamodb:GetItem", 3);
    assert!(seen.message.contains("DynamoDB answered GetItem on table `locks`"), "{}", seen.message);
}

#[tokio::test]
async fn a_denial_that_no_permission_outweighs_is_told_as_that() {
    let reasons = [
        "with an explicit deny in an identity-based policy",
        "with an explicit deny in a resource-based policy",
        "with an explicit deny in a service control policy",
        "with an explicit deny in a permissions boundary",
    ];
    for reason in reasons {
        let seen = attempt(LONG, move |_| denied("dynamodb:UpdateItem", reason)).await;
        let says = "a policy denies it, which no permission outweighs: remove that deny for the function's role";
        assert_seen(&seen, "AccessDenied", says, 1);
        assert!(seen.message.contains(reason), "{}", seen.message);
    }
}

#[tokio::test]
async fn a_table_whose_encryption_key_may_not_be_used_names_that_key() {
    let messages = [
        "KMS key access denied error: User: arn:aws:sts::123456789012:assumed-role/orders/orders is not authorized to \
         perform: kms:Decrypt on the resource associated with this ciphertext",
        "KMS key access denied error: arn:aws:kms:eu-central-1:123456789012:key/1 is disabled",
    ];
    for message in messages {
        let seen = attempt(LONG, move |_| Fault::error(400, "AccessDeniedException", message)).await;
        let says =
            "allow the function's role kms:Decrypt on the key that encrypts `locks`, and see that this key is enabled";
        assert_seen(&seen, "AccessDenied", says, 1);
    }
}

#[tokio::test]
async fn credentials_that_do_not_serve_are_told_at_once() {
    let answers = [
        ("ExpiredTokenException", "The security token included in the request is expired"),
        ("UnrecognizedClientException", "The security token included in the request is invalid."),
        ("InvalidSignatureException", "The request signature we calculated does not match the signature you provided."),
        ("MissingAuthenticationTokenException", "Request is missing Authentication Token"),
        ("IncompleteSignatureException", "Authorization header requires 'Credential' parameter."),
    ];
    for (code, message) in answers {
        let seen = attempt(LONG, move |_| Fault::error(400, code, message)).await;
        assert_seen(&seen, "MissingCredentials", "check the function's role, or give this machine credentials", 1);
        assert!(!seen.message.contains("clock"), "{}", seen.message);
    }
}

fn signature_expired() -> Fault {
    let message =
        "Signature expired: 20231114T220320Z is now earlier than 20231114T220820Z (20231114T221320Z - 5 min.)";
    Fault::error(400, "InvalidSignatureException", message)
}

/// A request that was signed, frozen along with its environment and only then sent is refused for its age; the next one,
/// signed anew, is not.
#[tokio::test]
async fn a_signature_that_grew_old_is_made_anew() {
    let fault = |number| match number {
        0 => signature_expired(),
        1 => taken(),
        _ => Fault::answer(200, "{}"),
    };
    assert_seen(&attempt(LONG, fault).await, "none", "", 3);
    let late_release = |number| match number {
        0 => taken(),
        1 => signature_expired(),
        _ => Fault::answer(200, "{}"),
    };
    assert_seen(&attempt(LONG, late_release).await, "none", "", 3);
}

#[tokio::test]
async fn a_clock_that_stays_wrong_is_named_when_the_wait_is_over() {
    let seen = attempt(Duration::ZERO, |_| signature_expired()).await;
    assert_seen(&seen, "MissingCredentials", "if it lasts, set this host's clock: it is more than 5 minutes off", 1);
    assert!(seen.message.contains("20231114T220320Z is now earlier than 20231114T220820Z"), "{}", seen.message);
    let seen = attempt(Duration::from_millis(300), |_| signature_expired()).await;
    assert_eq!(seen.error, "MissingCredentials");
    assert!(seen.requests > 1, "{seen:?}");
}

/// The response is the handler's all the same; the row frees itself when its lease is over.
#[tokio::test]
async fn a_release_that_is_denied_is_sent_once_and_spoils_no_response() {
    let fault = |number| match number {
        0 => taken(),
        _ => denied("dynamodb:UpdateItem", NO_POLICY),
    };
    assert_seen(&attempt(LONG, fault).await, "none", "", 2);
}
