//! Creating lock tables and looking into them, for tests and the demo.

use std::collections::HashMap;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::{
    Client,
    config::{Credentials, http::HttpResponse},
    error::{ProvideErrorMetadata, SdkError},
    operation::create_table::CreateTableError,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TableDescription, TimeToLiveSpecification,
    },
};

use leasehold::operator;

use crate::Error;

/// A row as the SDK gives it.
pub type Row = HashMap<String, AttributeValue>;

/// The shape of a lock table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTable {
    name: String,
    partition_key: String,
    sort_key: Option<String>,
    ttl: String,
}

impl LockTable {
    /// The usual one: partition key `key`, no sort key, TTL on `ttl`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), partition_key: "key".to_owned(), sort_key: None, ttl: "ttl".to_owned() }
    }

    /// Another name for the partition key.
    pub fn partition_key(mut self, name: impl Into<String>) -> Self {
        self.partition_key = name.into();
        self
    }

    /// With a sort key, a string.
    pub fn sort_key(mut self, name: impl Into<String>) -> Self {
        self.sort_key = Some(name.into());
        self
    }

    /// Another name for the TTL attribute.
    pub fn ttl(mut self, name: impl Into<String>) -> Self {
        self.ttl = name.into();
        self
    }
}

impl From<&str> for LockTable {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// The tables of the DynamoDB that a sandbox's processes use.
#[derive(Debug, Clone)]
pub struct Tables {
    endpoint: Option<String>,
    region: String,
    own_credentials: bool,
}

impl Tables {
    pub(crate) fn new(endpoint: Option<String>, region: &str, own_credentials: bool) -> Self {
        Self { endpoint, region: region.to_owned(), own_credentials }
    }

    /// A client of its own, to ask what isn't offered here. Without an endpoint it asks AWS.
    pub async fn client(&self) -> Client {
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(Region::new(self.region.clone()))
            .http_client(operator::https_client());
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        let given = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
        if self.endpoint.is_some() && !(self.own_credentials && given) {
            loader = loader.credentials_provider(Credentials::new("AKIDSANDBOX", "sandbox", None, None, "sandbox"));
        }
        Client::new(&loader.load().await)
    }

    /// Creates a lock table, paid per request, with TTL. One that exists with the same key is left as it is.
    ///
    /// # Errors
    ///
    /// When there is a table of that name with another key, when DynamoDB refuses or can't be reached.
    pub async fn create_lock_table(&self, table: impl Into<LockTable>) -> Result<(), Error> {
        let table = table.into();
        let client = self.client().await;
        let mut request = client.create_table().table_name(&table.name).billing_mode(BillingMode::PayPerRequest);
        let keys = [(Some(&table.partition_key), KeyType::Hash), (table.sort_key.as_ref(), KeyType::Range)];
        for (name, key_type) in keys {
            let Some(name) = name else { continue };
            let failed = |error| unbuilt(format!("describe the key {name}"), error);
            let definition = AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
                .map_err(failed)?;
            let element =
                KeySchemaElement::builder().attribute_name(name).key_type(key_type).build().map_err(failed)?;
            request = request.attribute_definitions(definition).key_schema(element);
        }
        match request.send().await {
            Ok(_) => {}
            Err(SdkError::ServiceError(error))
                if matches!(error.err(), CreateTableError::ResourceInUseException(_)) =>
            {
                return existing(&client, &table).await;
            }
            Err(error) => return Err(failed(format!("create the table {}", table.name), &error)),
        }
        let ttl = TimeToLiveSpecification::builder().attribute_name(&table.ttl).enabled(true).build();
        let ttl = ttl.map_err(|error| unbuilt("describe the TTL".to_owned(), error))?;
        let request = client.update_time_to_live().table_name(&table.name).time_to_live_specification(ttl);
        let sent = request.send().await;
        sent.map_err(|error| failed(format!("set the TTL of {}", table.name), &error))?;
        Ok(())
    }

    /// A row by its partition key, read consistently.
    ///
    /// # Errors
    ///
    /// When DynamoDB refuses or can't be reached.
    pub async fn row(&self, table: &str, key: &str) -> Result<Option<Row>, Error> {
        self.row_by(table, &[("key", key)]).await
    }

    /// A row by key attributes with other names, or with a sort key.
    ///
    /// # Errors
    ///
    /// When DynamoDB refuses or can't be reached.
    pub async fn row_by(&self, table: &str, key: &[(&str, &str)]) -> Result<Option<Row>, Error> {
        let mut request = self.client().await.get_item().table_name(table).consistent_read(true);
        for (name, value) in key {
            request = request.key(*name, AttributeValue::S((*value).to_owned()));
        }
        let answer = request.send().await.map_err(|error| failed(format!("read from {table}"), &error))?;
        Ok(answer.item)
    }

    /// Writes a row, whatever was there.
    ///
    /// # Errors
    ///
    /// When DynamoDB refuses or can't be reached.
    pub async fn put(&self, table: &str, row: Row) -> Result<(), Error> {
        let sent = self.client().await.put_item().table_name(table).set_item(Some(row)).send().await;
        sent.map_err(|error| failed(format!("write to {table}"), &error))?;
        Ok(())
    }

    /// All rows of a small table.
    ///
    /// # Errors
    ///
    /// When DynamoDB refuses or can't be reached.
    pub async fn rows(&self, table: &str) -> Result<Vec<Row>, Error> {
        let pages = self.client().await.scan().table_name(table).consistent_read(true).into_paginator().items();
        pages.send().collect::<Result<Vec<Row>, _>>().await.map_err(|error| failed(format!("scan {table}"), &error))
    }
}

/// Whether a table that was there already has the key that is asked for.
async fn existing(client: &Client, table: &LockTable) -> Result<(), Error> {
    let described = client.describe_table().table_name(&table.name).send().await;
    let described = described.map_err(|error| failed(format!("describe the table {}", table.name), &error))?;
    let has = described.table().map(key_of).unwrap_or_default();
    let sort = table.sort_key.iter().map(|name| format!("sort key `{name}` of type S"));
    let wanted: Vec<_> =
        std::iter::once(format!("partition key `{}` of type S", table.partition_key)).chain(sort).collect();
    if has == wanted {
        return Ok(());
    }
    let (has, wanted) = (has.join(" and "), wanted.join(" and "));
    let problem = format!("`{}` is there already with the {has}, not the {wanted}; take another name", table.name);
    Err(Error::Setting { setting: "the table", problem })
}

fn key_of(table: &TableDescription) -> Vec<String> {
    let definitions = table.attribute_definitions();
    let of = |element: &KeySchemaElement| {
        let role = if *element.key_type() == KeyType::Hash { "partition key" } else { "sort key" };
        let name = element.attribute_name();
        let definition = definitions.iter().find(|definition| definition.attribute_name() == name);
        let of_type = definition.map_or("?", |definition| definition.attribute_type().as_str());
        format!("{role} `{name}` of type {of_type}")
    };
    table.key_schema().iter().map(of).collect()
}

fn unbuilt(action: String, error: aws_sdk_dynamodb::error::BuildError) -> Error {
    Error::DynamoDb { action, problem: error.to_string() }
}

/// What DynamoDB answered, or else where it was looked for in vain, without the SDK's own description of either.
fn failed<E>(action: String, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let service = error.as_service_error();
    let problem = match (service.and_then(ProvideErrorMetadata::code), service.and_then(ProvideErrorMetadata::message))
    {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => operator::unreached(error).unwrap_or_else(|| match error.raw_response() {
            Some(answer) => format!("what answers is not DynamoDB (HTTP {})", answer.status()),
            None => std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string),
        }),
    };
    Error::DynamoDb { action, problem }
}
