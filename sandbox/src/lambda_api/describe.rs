//! `DescribeStacks`, in the XML of AWS's Query API.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use super::Stack;
use crate::settings::ACCOUNT;

const NAMESPACE: &str = "http://cloudformation.amazonaws.com/doc/2010-05-15/";

/// The answer to a request's form: its status and its XML.
pub(super) fn answer(stack: &Stack, form: &str) -> (u16, String) {
    let form = fields(form);
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if field("Action") != "DescribeStacks" {
        let message =
            format!("the sandbox has DescribeStacks and nothing else of CloudFormation, not {}", field("Action"));
        return (400, error("InvalidAction", &message));
    }
    let (name, id) = (field("StackName"), id(stack));
    if !name.is_empty() && name != stack.name() && name != id {
        return (400, error("ValidationError", &format!("Stack with id {name} does not exist")));
    }
    let mut outputs = String::new();
    for (key, value) in stack.outputs() {
        let (key, value) = (text(key), text(value));
        outputs.push_str(&format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>"));
    }
    let (name, id) = (text(stack.name()), text(&id));
    let xml = format!(
        "<DescribeStacksResponse xmlns=\"{NAMESPACE}\"><DescribeStacksResult><Stacks><member><StackName>{name}</StackName>\
         <StackId>{id}</StackId><CreationTime>2026-01-01T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus>\
         <Outputs>{outputs}</Outputs></member></Stacks></DescribeStacksResult><ResponseMetadata><RequestId>1</RequestId>\
         </ResponseMetadata></DescribeStacksResponse>"
    );
    (200, xml)
}

fn id(stack: &Stack) -> String {
    format!("arn:aws:cloudformation:{}:{ACCOUNT}:stack/{}/1", stack.region(), stack.name())
}

pub(super) fn error(code: &str, message: &str) -> String {
    let (code, message) = (text(code), text(message));
    format!(
        "<ErrorResponse xmlns=\"{NAMESPACE}\"><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>\
         </Error><RequestId>1</RequestId></ErrorResponse>"
    )
}

/// A form's fields, decoded.
fn fields(form: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    form.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// As text within an element.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_told_and_another_is_not_there() {
        let stack = Stack::new("mine").output("A&B", "1 < 2");
        let (status, xml) = answer(&stack, "Action=DescribeStacks&Version=2010-05-15&StackName=mine");
        assert_eq!(status, 200);
        assert!(xml.contains("<OutputKey>A&amp;B</OutputKey><OutputValue>1 &lt; 2</OutputValue>"), "{xml}");
        let (status, xml) = answer(&stack, "Action=DescribeStacks&StackName=not%20mine");
        assert!(status == 400 && xml.contains("Stack with id not mine does not exist"), "{xml}");
        assert_eq!(answer(&stack, "Action=DeleteStack&StackName=mine").0, 400);
    }
}
