//! Which actions the credentials in use may take on the table, each tried by a request that can't change anything.
//!
//! The requests are the library's own, on a key that nobody uses and with an owner id that nobody has: the conditions that
//! guard every lock refuse them. IAM is asked before the condition, so a refusal by the condition is a yes.

use std::time::SystemTime;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, TransactWriteItem};
use leasehold::clock::Wall;
use leasehold::protocol::{FailureKind, Format, HolderInfo, Outcome, OwnerId, Request, Version};
use leasehold::store::{DynamoDb, Lock, Scan, Store as _};

use super::clock::Ahead;
use crate::aws::PATIENCE;
use crate::finding::Finding;
use crate::options::Chosen;
use crate::refused::Refused;
use crate::text::safe;

/// What came of all of them.
pub(super) struct Tried {
    pub(super) findings: Vec<Finding>,
    /// This machine's clock, from the first answer.
    pub(super) clock: Option<Ahead>,
    /// Values of `ttl` on rows of the table's first page.
    pub(super) ttls: Vec<AttributeValue>,
}

/// The key that the attempts name: under the namespace, as IAM's `LeadingKeys` may ask for, and used by nobody.
fn nobodys(chosen: &Chosen) -> String {
    chosen.full_key(&format!("leaseholdctl-check-{}", OwnerId::random()))
}

/// Tries each action that functions need, and then those of operators.
pub(super) async fn try_all(chosen: &Chosen, store: &DynamoDb, client: &Client) -> Tried {
    let lock = Lock {
        table: chosen.table.clone(),
        key: nobodys(chosen),
        holder: HolderInfo::default(),
        attributes: Default::default(),
    };
    let mut tried = Tried { findings: Vec::new(), clock: None, ttls: Vec::new() };
    for (action, how, request) in requests(chosen.format) {
        let sent = SystemTime::now();
        let answer = store.send(&lock, request, PATIENCE).await;
        if let Some(date) = answer.date {
            tried.clock.get_or_insert_with(|| Ahead::of(sent, SystemTime::now(), date));
        }
        tried.findings.push(finding(action, how, answer.outcome));
    }
    tried.findings.push(condition_check(chosen, client, &lock.key).await);
    let scanned = scan(chosen, store).await;
    tried.findings.push(scanned.0);
    tried.ttls = scanned.1;
    tried
}

/// The actions that the format's locks need, how each is tried, and by what.
fn requests(format: Format) -> Vec<(&'static str, &'static str, Request)> {
    let (owner, now) = (OwnerId::random(), Wall::default());
    let version = match format {
        Format::PydynoxV1 => Version::Opaque(OwnerId::random().bits()),
        _ => Version::Counter(1),
    };
    let renew = Request::Renew { owner, version, new_version: version, expires_at: None };
    let mut requests = vec![
        ("dynamodb:GetItem", "a consistent read of a key that nobody uses", Request::Read),
        ("dynamodb:UpdateItem", "a renewal of a lease that nobody has", renew),
    ];
    if format == Format::PydynoxV1 {
        let lease = std::time::Duration::from_secs(30);
        let (seen_owner, seen_version) = (OwnerId::random(), version);
        let take = Request::TakeOver {
            owner,
            version: Some(version),
            at: now,
            lease,
            expires_at: None,
            seen_owner,
            seen_version,
            served: None,
        };
        requests.push(("dynamodb:PutItem", "a takeover from an owner that nobody is", take));
        let release = Request::Release { owners: vec![owner], ttl: None, hold: None };
        requests.push(("dynamodb:DeleteItem", "a release of a lease that nobody has", release));
    }
    requests
}

fn finding(action: &str, how: &str, outcome: Outcome) -> Finding {
    match outcome {
        Outcome::Read { .. } | Outcome::Refused { .. } => Finding::ok(action, format!("allowed ({how})")),
        // It could only have met a row of this very key and owner, and there is none.
        Outcome::Written { .. } | Outcome::Numbered { .. } => {
            Finding::ok(action, format!("allowed ({how}; it was applied, to an empty row)"))
        }
        Outcome::Failed(failure) => match failure.kind {
            FailureKind::AccessDenied => Finding::problem(
                action,
                format!("denied ({how}): {}", safe(&failure.message)),
                "allow it to whoever is to lock with this table; the answer holds for the credentials in use here",
            ),
            FailureKind::MissingTable | FailureKind::WrongKeySchema => {
                Finding::unknown(action, format!("not told ({how}): {}", safe(&failure.to_string())))
            }
            _ => Finding::unknown(action, format!("not told ({how}): {}", safe(&failure.to_string()))),
        },
    }
}

/// What a guarded transaction needs: a check that can't hold, so that the transaction is cancelled.
async fn condition_check(chosen: &Chosen, client: &Client, key: &str) -> Finding {
    const ACTION: &str = "dynamodb:ConditionCheckItem";
    let how = "a transaction whose only check fails; for `guard_transaction`";
    let table = &chosen.table;
    let mut check = ConditionCheck::builder()
        .table_name(&table.name)
        .key(&table.key_attribute, AttributeValue::S(key.to_owned()))
        .condition_expression("attribute_exists(#key)")
        .expression_attribute_names("#key", &table.key_attribute);
    if let Some((name, value)) = &table.sort_key {
        check = check.key(name, AttributeValue::S(value.clone()));
    }
    let check = match check.build() {
        Ok(check) => check,
        Err(error) => return Finding::unknown(ACTION, error.to_string()),
    };
    let item = TransactWriteItem::builder().condition_check(check).build();
    let sent = client.transact_write_items().transact_items(item).send().await;
    match sent.map_err(|error| Refused::of("TransactWriteItems", &error)) {
        Ok(_) => Finding::ok(ACTION, format!("allowed ({how})")),
        Err(refused) if refused.is("TransactionCanceledException") => Finding::ok(ACTION, format!("allowed ({how})")),
        Err(refused) if refused.is("AccessDeniedException") => Finding::warning(
            ACTION,
            format!("denied ({how}): {}", safe(&refused.told)),
            "allow it where functions use `guard_transaction`; nothing else needs it",
        ),
        Err(refused) => Finding::unknown(ACTION, format!("not told ({how}): {}", safe(&refused.told))),
    }
}

/// What `list` and `watch` need; on the way, what `ttl` looks like on rows that have one.
async fn scan(chosen: &Chosen, store: &DynamoDb) -> (Finding, Vec<AttributeValue>) {
    const ACTION: &str = "dynamodb:Scan";
    let how = "a page of 100 rows; for `leaseholdctl list` and `watch`";
    let scan =
        Scan { table: chosen.table.clone(), prefix: chosen.full_key(""), owned: false, consistent: false, page: 100 };
    match store.scan(&scan, None, PATIENCE).await {
        Ok(page) => {
            let ttls = page.rows.into_iter().filter_map(|found| found.attributes.get(super::ttl::ATTRIBUTE).cloned());
            (Finding::ok(ACTION, format!("allowed ({how})")), ttls.collect())
        }
        Err(failure) if failure.kind == FailureKind::AccessDenied => {
            let told = format!("denied ({how}): {}", safe(&failure.message));
            (Finding::warning(ACTION, told, "allow it to operators; functions don't need it"), Vec::new())
        }
        Err(failure) => {
            (Finding::unknown(ACTION, format!("not told ({how}): {}", safe(&failure.to_string()))), Vec::new())
        }
    }
}
