//! Writes of single items that carry the fencing token: an item that has seen a higher one refuses them.

use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

use super::Lease;

/// The names that the expressions get; nobody else's begin so.
const NAME: &str = "#leasehold_token";
const VALUE: &str = ":leasehold_token";

impl Lease {
    /// Fences an update of one item by an attribute of that item: it is applied only where the attribute is missing or
    /// holds no higher token, and leaves this lease's token there.
    ///
    /// For work in another table, Region or account than the lock's, or in one item only; where a transaction can be had,
    /// [`guard_transaction`](Self::guard_transaction) is stronger: it refuses a holder whose successor has not written
    /// yet. Your own condition and update stay in force. A refusal is DynamoDB's `ConditionalCheckFailedException`.
    ///
    /// ```
    /// use aws_sdk_dynamodb::Client;
    /// use aws_sdk_dynamodb::types::AttributeValue;
    /// use leasehold::Lease;
    ///
    /// async fn count_down(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    ///     let update = client
    ///         .update_item()
    ///         .table_name("stock")
    ///         .key("item", AttributeValue::S("A-17".into()))
    ///         .update_expression("SET amount = amount - :one")
    ///         .expression_attribute_values(":one", AttributeValue::N("1".into()));
    ///     Lease::current()?.fence_update(update, "fence").send().await?;
    ///     Ok(())
    /// }
    /// # let _ = count_down;
    /// ```
    ///
    /// In the modes `observe` and `off`, without a token, the update is left as it is.
    #[must_use = "nothing is written until it is sent"]
    pub fn fence_update(&self, update: UpdateItemFluentBuilder, attribute: &str) -> UpdateItemFluentBuilder {
        let Some(token) = self.token() else { return update };
        let expression = with_token(update.get_update_expression().as_deref().unwrap_or_default());
        let condition = with_fence(update.get_condition_expression().as_deref());
        update
            .update_expression(expression)
            .condition_expression(condition)
            .expression_attribute_names(NAME, attribute)
            .expression_attribute_values(VALUE, AttributeValue::N(token.to_string()))
    }

    /// Fences a put of one item, like [`fence_update`](Self::fence_update).
    #[must_use = "nothing is written until it is sent"]
    pub fn fence_put(&self, put: PutItemFluentBuilder, attribute: &str) -> PutItemFluentBuilder {
        let Some(token) = self.token() else { return put };
        let condition = with_fence(put.get_condition_expression().as_deref());
        let token = AttributeValue::N(token.to_string());
        put.item(attribute, token.clone())
            .condition_expression(condition)
            .expression_attribute_names(NAME, attribute)
            .expression_attribute_values(VALUE, token)
    }
}

/// The condition, beside one that is there already.
fn with_fence(condition: Option<&str>) -> String {
    let fence = format!("(attribute_not_exists({NAME}) OR {NAME} <= {VALUE})");
    match condition.map(str::trim).filter(|condition| !condition.is_empty()) {
        Some(condition) => format!("({condition}) AND {fence}"),
        None => fence,
    }
}

/// The update, with the token in its SET clause: an expression has one at most.
fn with_token(update: &str) -> String {
    let set = format!("{NAME} = {VALUE}");
    match end_of_set(update) {
        Some(end) => format!("{} {set},{}", &update[..end], &update[end..]),
        None => format!("SET {set} {}", update.trim()).trim_end().to_owned(),
    }
}

/// Where the word SET ends, if the expression has it. `SET` is reserved, so no attribute stands in an expression by that
/// name alone.
fn end_of_set(update: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | ':' | '.');
    let mut start = 0;
    while let Some(word) = update[start..].split(|c| !is_word(c)).next() {
        let end = start + word.len();
        if word.eq_ignore_ascii_case("set") {
            return Some(end);
        }
        start = end + update[end..].chars().next()?.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_gets_the_token_whatever_clauses_it_has() {
        let token = "#leasehold_token = :leasehold_token";
        for (update, expected) in [
            ("", format!("SET {token}")),
            ("SET amount = :a", format!("SET {token}, amount = :a")),
            ("set\n  #set = :set", format!("set {token},\n  #set = :set")),
            ("REMOVE note", format!("SET {token} REMOVE note")),
            ("REMOVE #set SET amount = :a", format!("REMOVE #set SET {token}, amount = :a")),
            ("ADD :set.set :one", format!("SET {token} ADD :set.set :one")),
            ("REMOVE größe, offset", format!("SET {token} REMOVE größe, offset")),
        ] {
            assert_eq!(with_token(update), expected);
        }
    }

    #[test]
    fn a_condition_of_ones_own_stays_in_force() {
        let fence = "(attribute_not_exists(#leasehold_token) OR #leasehold_token <= :leasehold_token)";
        assert_eq!(with_fence(None), fence);
        assert_eq!(with_fence(Some(" ")), fence);
        assert_eq!(with_fence(Some("a = :a OR b = :b")), format!("(a = :a OR b = :b) AND {fence}"));
    }
}
