//! The rules for values, row by row, and events that are not what a template expects.

use super::{CONTEXT, key, resolve};
use crate::key::{ContextValues, Found, Namespace, ResolveError, Template};

#[test]
fn strings_and_integers_become_text() {
    for (value, text) in [
        (r#""A-17""#, "A-17"),
        (r#""{x}""#, "{x}"),
        (r#""a\u00e9\n\"\\\/b""#, "aé\n\"\\/b"),
        (r#""\ud83d\ude00""#, "😀"),
        (r#"" ""#, " "),
        (r#""null""#, "null"),
        ("0", "0"),
        ("-0", "0"),
        ("-5", "-5"),
        ("18446744073709551616", "18446744073709551616"),
        (
            "123456789012345678901234567890123456789012345678901234567890",
            "123456789012345678901234567890123456789012345678901234567890",
        ),
    ] {
        assert_eq!(key("k:{id}", &format!(r#"{{"id": {value} }}"#)), format!("k:{text}"));
    }
}

#[test]
fn every_other_value_is_named_with_its_path() {
    for (value, found) in [
        ("null", Found::Null),
        ("true", Found::Bool(true)),
        ("false", Found::Bool(false)),
        (r#""""#, Found::EmptyString),
        ("1.0", Found::Number("1.0".into())),
        ("1e3", Found::Number("1e3".into())),
        ("-0.0", Found::Number("-0.0".into())),
        ("1E400", Found::Number("1E400".into())),
        (r#"{"a":1}"#, Found::Object),
        ("[1]", Found::Array),
        (r#""\ud800""#, Found::LoneSurrogate),
        (r#""a\udc00b""#, Found::LoneSurrogate),
        (r#""\ud800\ud800""#, Found::LoneSurrogate),
    ] {
        let error = resolve("{d.id}", &format!(r#"{{"d":{{"id":{value}}}}}"#)).unwrap_err();
        assert!(error.to_string().contains("`d.id` is "), "{value}: {error}");
        assert!(!error.is_missing());
        let ResolveError::Unusable(error) = error else { unreachable!("{value}: {error}") };
        assert_eq!((error.path.to_string(), error.at.to_string(), error.found), ("d.id".into(), "d.id".into(), found));
    }
    let long = format!("1{}.5", "0".repeat(1_000_000));
    let error = resolve("{id}", &format!(r#"{{"id":{long}}}"#)).unwrap_err().to_string();
    assert!(error.len() < 300 && error.contains("000…"), "{error}");
}

#[test]
fn a_path_that_leads_through_something_without_parts_is_not_missing() {
    for (event, at, found, wanted) in [
        ("5", "", "the number 5", "an object"),
        ("null", "", "null", "an object"),
        (r#""text""#, "", "a string", "an object"),
        ("[]", "", "an array", "an object"),
        (r#"{"d":null}"#, "d", "null", "an object"),
        (r#"{"d":true}"#, "d", "the boolean true", "an object"),
        (r#"{"d":[{"e":[1]}]}"#, "d", "an array", "an object"),
        (r#"{"d":"\ud800"}"#, "d", "a string", "an object"),
        (r#"{"d":1e999}"#, "d", "the number 1e999", "an object"),
        (r#"{"d":{"e":{"0":1}}}"#, "d.e", "an object", "an array"),
        (r#"{"d":{"e":"x"}}"#, "d.e", "a string", "an array"),
    ] {
        let error = resolve("{d.e[0]}", event).unwrap_err();
        assert!(matches!(error, ResolveError::Unusable(_)), "{event}: {error}");
        let place = if at.is_empty() { "the event".to_owned() } else { format!("`{at}`") };
        let error = error.to_string();
        assert!(error.starts_with(&format!("{place} is {found}")), "{event}: {error}");
        assert!(error.contains("`d.e[0]`") && error.contains(wanted), "{event}: {error}");
    }
}

#[test]
fn a_missing_path_can_be_told_from_every_other_error() {
    for (template, event, said) in [
        ("{id}", "{}", "no `id`:"),
        ("{id}", r#"{"ID":1,"i":{"id":2}}"#, "no `id`:"),
        ("{a.b.c}", "{}", "no `a.b.c` (it ends before `a`)"),
        ("{a.b.c}", r#"{"a":{"c":1}}"#, "no `a.b.c` (it ends before `a.b`)"),
        ("{a.b.c}", r#"{"a":{"b":{}}}"#, "no `a.b.c`:"),
        ("{a[1]}", r#"{"a":[7]}"#, "no `a[1]`:"),
        ("{a[0].b}", r#"{"a":[]}"#, "no `a[0].b` (it ends before `a[0]`)"),
        ("{[2]}", "[1,2]", "no `[2]`:"),
        ("{a}:{b}", r#"{"a":1}"#, "no `b`:"),
    ] {
        let error = resolve(template, event).unwrap_err();
        assert!(error.is_missing(), "{event}: {error}");
        assert!(error.to_string().contains(said), "{event}: {error}");
    }
}

#[test]
fn a_missing_path_hides_no_other_fault() {
    for event in [r#"{"b":null}"#, r#"{"b":1.5}"#, r#"{"b":1,"b":1}"#, r#"{"b":1"#, r#"{"b":1}x"#] {
        assert!(!resolve("{a}:{b}", event).unwrap_err().is_missing(), "{event}");
        assert!(!resolve("{b}:{a}", event).unwrap_err().is_missing(), "{event}");
    }
    let template = Template::parse("{a}:{@tenant_id}").unwrap();
    let error = template.resolve(None, "{}", &ContextValues::default()).unwrap_err();
    assert!(matches!(error, ResolveError::Context(_)), "{error}");
}

#[test]
fn a_name_that_stands_twice_counts_on_the_path_only() {
    for (event, at) in [
        (r#"{"d":{"id":1,"id":1}}"#, "d.id"),
        (r#"{"d":{"id":1,"id":2,"id":3}}"#, "d.id"),
        (r#"{"d":{"id":1,"\u0069d":2}}"#, "d.id"),
        (r#"{"d":{"id":1},"d":{}}"#, "d"),
        (r#"{"d":{},"d":{"id":1}}"#, "d"),
        (r#"{"d":null,"d":{"id":1}}"#, "d"),
        (r#"{"d":{"id":null,"id":1}}"#, "d.id"),
    ] {
        let error = resolve("{d.id}", event).unwrap_err();
        let ResolveError::Duplicate(error) = error else { unreachable!("{event}: {error}") };
        assert_eq!(error.at.to_string(), at, "{event}");
    }
    assert_eq!(key("{d.id}", r#"{"x":1,"x":2,"d":{"y":1,"id":7,"y":2,"z":{"id":1,"id":2}}}"#), "7");
    // Elsewhere one name under two parents is no duplicate.
    assert_eq!(key("{a[0].id}:{a[1].id}", r#"{"a":[{"id":1},{"id":2}]}"#), "1:1:1:2");
}

#[test]
fn names_are_compared_after_their_escapes() {
    assert_eq!(key(r#"{["x-tenant-id"]}"#, r#"{"x-tenant-id":"t"}"#), "t");
    assert_eq!(key("{id}", r#"{"\u0069\u0064":"t"}"#), "t");
    assert_eq!(key(r#"{["a\"\\\u00e9"]}"#, r#"{"a\"\\é":"t"}"#), "t");
    assert_eq!(key(r#"{[""]}"#, r#"{"":"t"}"#), "t");
    // Half of a surrogate pair beside the path makes no fault.
    assert_eq!(key("{d.id}", r#"{"\ud800":1,"d":{"\udc00x":{"\ud800":1},"id":"t"}}"#), "t");
    assert_eq!(key(r#"{d["\"é"]}"#, r#"{"\ud800":1,"\u0064":{"\"\u00e9":"t"}}"#), "t");
    assert!(matches!(resolve("{id}", r#"{"\ud800":1,"id":1,"\u0069d":1}"#), Err(ResolveError::Duplicate(_))));
    assert!(resolve("{id}", r#"{"\ud800":1,"id\ud800":1}"#).unwrap_err().is_missing());
}

#[test]
fn values_are_framed_by_their_bytes_once_there_are_two() {
    let event = r#"{"tenant":"acme","id":123,"city":"Köln"}"#;
    for (template, expected) in [
        ("{id}", "123"),
        ("orders:{id}", "orders:123"),
        ("{tenant}:{id}", "4:acme:3:123"),
        ("{tenant}{id}", "4:acme3:123"),
        ("{id}/{id}", "3:123/3:123"),
        ("{city}#{id}", "5:Köln#3:123"),
        ("{@function_name}:{id}", "7:billing:3:123"),
        ("{@tenant_id}-{@request_id}-{@function_version}", "4:acme-3:r-1-1:7"),
        ("{@function_name}", "billing"),
        ("{{{id}}}", "{123}"),
    ] {
        assert_eq!(key(template, event), expected);
    }
}

#[test]
fn a_namespace_stands_in_front_unframed_and_counts() {
    let namespace = Namespace::parse("billing-prod").unwrap();
    let template = Template::parse("{a}:{b}").unwrap();
    let key = template.resolve(Some(&namespace), r#"{"a":1,"b":"x"}"#, &CONTEXT).unwrap();
    assert_eq!(key.as_str(), "billing-prod/1:1:1:x");

    let template = Template::parse("{id}").unwrap();
    let event = |bytes: usize| format!(r#"{{"id":"{}"}}"#, "x".repeat(bytes));
    assert!(template.resolve(None, &event(2048), &CONTEXT).is_ok());
    assert!(matches!(template.resolve(None, &event(2049), &CONTEXT), Err(ResolveError::Key(_))));
    assert!(template.resolve(Some(&namespace), &event(2048 - 13), &CONTEXT).is_ok());
    assert!(template.resolve(Some(&namespace), &event(2048 - 12), &CONTEXT).is_err());
}

#[test]
fn without_a_path_the_event_is_not_read() {
    assert_eq!(key("nightly", "not json"), "nightly");
    assert_eq!(key("{@request_id}", ""), "r-1");
    for field in ["function_name", "function_version", "tenant_id", "request_id"] {
        let template = Template::parse(&format!("{{@{field}}}")).unwrap();
        for tenant_id in [None, Some("")] {
            let error =
                template.resolve(None, "{}", &ContextValues { tenant_id, ..ContextValues::default() }).unwrap_err();
            assert!(error.to_string().contains(&format!("no `@{field}`")), "{error}");
        }
    }
}

#[test]
fn what_is_not_json_gives_no_key() {
    for event in [
        "",
        " ",
        "{",
        r#"{"id""#,
        r#"{"id":"#,
        r#"{"id":"a"#,
        r#"{"id":"a""#,
        r#"{"id":1,}"#,
        r#"{"id":1}}"#,
        r#"{"id":01}"#,
        r#"{"id":1 "b":2}"#,
        r#"{id:1}"#,
        r#"{"id":NaN}"#,
        r#"{"id":"\q"}"#,
        r#"{"id":1,"b":"\uZZZZ"}"#,
        r#"{"id":1,"b":[}"#,
        "{\"id\":1,\"b\":\"\n\"}",
        "{\"id\":1,\"\n\":2}",
        "{\"\\n\n\":2,\"id\":1}",
        r#"{"id":1,"b":tru}"#,
        "\u{feff}{\"id\":1}",
    ] {
        let error = resolve("{id}", event).unwrap_err();
        assert!(matches!(error, ResolveError::Event(_)), "{event}: {error}");
    }
}

#[test]
fn nesting_costs_no_stack_and_is_no_fault_beside_the_path() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(key("{id}", &format!(r#"{{"deep":{deep},"id":7}}"#)), "7");
    for event in [deep.clone(), format!(r#"{{"id":{deep}}}"#), r#"{"id":"#.repeat(500_000), "[".repeat(500_000)] {
        assert!(!resolve("{id.a}", &event).unwrap_err().is_missing());
    }
    // As deep as a path may go.
    let template = format!("{{a{}}}", "[0]".repeat(63));
    let event = format!(r#"{{"a":{}7{}}}"#, "[".repeat(63), "]".repeat(63));
    assert_eq!(key(&template, &event), "7");
    let event = format!(r#"{{"\ud800":0,"a":{}7{}}}"#, "[".repeat(63), "]".repeat(63));
    assert_eq!(key(&template, &event), "7");
}

#[test]
fn a_record_is_looked_into_where_a_string_is_json_and_every_rule_holds_in_there() {
    let resolve = |template: &str, body: &str| {
        let record = serde_json::json!({ "body": body, "id": 7 }).to_string();
        Template::parse(template).unwrap().resolve_into_strings(None, &record, &CONTEXT)
    };
    assert_eq!(resolve("{body.id}", r#"{"id":"A"}"#).unwrap().as_str(), "A");
    assert_eq!(resolve("{id}:{body.id}:{body.b[1]}", r#"{"b":[1,2],"id":3}"#).unwrap().as_str(), "1:7:1:3:1:2");
    assert_eq!(resolve("{body.m.id}", r#"{"m":"{\"id\":\"inner\"}"}"#).unwrap().as_str(), "inner");
    assert_eq!(resolve("{body}", r#"{"id":"A"}"#).unwrap().as_str(), r#"{"id":"A"}"#, "a path's end takes the text");

    let missing = resolve("{body.d.id}", r#"{"d":{}}"#).unwrap_err();
    assert!(missing.is_missing() && missing.to_string().contains("no `body.d.id`"), "{missing}");
    for (body, said) in [
        (r#"{"id":1,"id":2}"#, "`body.id` twice"),
        (r#"{"id":1.5}"#, "`body.id` is the number 1.5"),
        ("[1]", "`body` is an array"),
        ("no JSON", "`body` is a string"),
        (r#"{"id":1} and more"#, "`body` is a string"),
        ("17", "`body` is a string"),
    ] {
        let error = resolve("{body.id}", body).unwrap_err();
        assert!(!error.is_missing() && error.to_string().contains(said), "{body}: {error}");
    }
    let plain = super::resolve("{body.id}", r#"{"body":"{\"id\":1}"}"#).unwrap_err();
    assert!(plain.to_string().contains("`body` is a string"), "only a record's strings are looked into: {plain}");
}
