//! The grammar, row by row: what parses, and what the errors point at and advise.

use crate::key::{Placeholder, Template, TemplateError};

fn error(source: &str) -> TemplateError {
    Template::parse(source).unwrap_err()
}

#[test]
fn templates_parse_and_print_in_their_normal_form() {
    for (source, normal) in [
        ("constant", "constant"),
        ("orders:{detail.orderId}", "orders:{detail.orderId}"),
        ("{Records[0].body}", "{Records[0].body}"),
        ("{[0][12]}", "{[0][12]}"),
        (r#"{headers["x-tenant-id"]}"#, r#"{headers["x-tenant-id"]}"#),
        (r#"{["plain"].b}"#, "{plain.b}"),
        (r#"{a["b"]["c d"]}"#, r#"{a.b["c d"]}"#),
        (r#"{["\u0041\"\\}]"]}"#, r#"{["A\"\\}]"]}"#),
        (r#"{["{{"]}"#, r#"{["{{"]}"#),
        (r#"{[""]}"#, r#"{[""]}"#),
        ("{{}}", "{{}}"),
        ("{{{a}}}", "{{{a}}}"),
        ("}}{a}{{", "}}{a}{{"),
        ("{@function_name}:{@tenant_id}:{@request_id}", "{@function_name}:{@tenant_id}:{@request_id}"),
        (r#"{["@tenant_id"]}"#, r#"{["@tenant_id"]}"#),
        ("münchen:{_a1}", "münchen:{_a1}"),
    ] {
        let template = Template::parse(source).unwrap();
        assert_eq!(template.to_string(), normal);
        assert_eq!(template.source(), source);
    }
}

#[test]
fn errors_point_at_the_byte_and_say_what_to_write() {
    for (source, offset, advice) in [
        ("", 0, "write a key such as"),
        ("ab{", 2, "add `}`"),
        ("ab{a", 2, "add `}`"),
        ("ab{a.", 2, "add `}`"),
        ("ab{a[", 2, "add `}`"),
        ("ab{a[0", 2, "add `}`"),
        (r#"ab{a["b""#, 2, "add `}`"),
        ("ab{a[0]", 2, "add `}`"),
        ("ab{@tenant_id", 2, "add `}`"),
        ("a}b", 1, "write `}}`"),
        ("é}", 2, "write `}}`"),
        ("{a}}", 3, "write `}}`"),
        ("{}", 0, "write a path"),
        ("{@tenant}", 1, "write `@function_name`"),
        ("{.a}", 1, "a name is missing"),
        ("{a..b}", 3, "a name is missing"),
        ("{a.[0]}", 3, "a name is missing"),
        ("{ a }", 1, "write `a` without them"),
        ("{a. b}", 3, "write `b` without them"),
        ("{a.0}", 3, r#"write `[0]` for an array's element, `["0"]`"#),
        ("{detail-type}", 7, r#"write `["detail-type"]`"#),
        ("{7up}", 1, r#"write `["7up"]`"#),
        ("{straße}", 5, r#"write `["straße"]`"#),
        ("{a\"b}", 2, "go on with"),
        ("{a]}", 2, "go on with"),
        ("{a{b}}", 2, "go on with"),
        ("{a[0]b}", 5, "go on with"),
        ("{a[]}", 3, "takes a number"),
        ("{a[-1]}", 3, "takes a number"),
        ("{a[01]}", 3, "takes a number"),
        ("{a[1x]}", 4, "takes a number"),
        ("{a[99999999999999999999999]}", 3, "takes a number"),
        ("{a['b']}", 3, "takes a number"),
        (r#"{a["b}"#, 3, "never closed"),
        (r#"{a["b\"]}"#, 3, "never closed"),
        (r#"{a["b" ]}"#, 6, "takes a number"),
        (r#"{a["\q"]}"#, 3, "check its escapes"),
        (r#"{a["\ud800"]}"#, 3, "check its escapes"),
        ("{a}{a.b}", 3, "both `a.b` and `a`"),
        ("{a.b}{a}", 5, "both `a` and `a.b`"),
        ("{a.b}{a[0]}", 5, "both `a[0]` and `a.b`"),
        ("{[0]}{a}", 5, "both `a` and `[0]`"),
    ] {
        let error = error(source);
        assert_eq!(error.offset(), offset, "{source}: {error}");
        assert!(error.to_string().contains(advice), "{source}: {error}");
        assert!(error.to_string().contains(&format!("byte {offset}")), "{source}: {error}");
    }
}

#[test]
fn what_is_too_long_or_too_deep_for_any_event_is_refused() {
    assert!(Template::parse(&"x".repeat(2048)).is_ok());
    assert!(error(&"x".repeat(2049)).to_string().contains("shorten the text"));
    assert!(Template::parse(&("x".repeat(2047) + "{a}")).is_ok());
    assert!(Template::parse(&("x".repeat(2048) + "{a}")).is_err());
    assert!(Template::parse(&("x".repeat(2042) + "{a}{b}")).is_ok());
    assert!(Template::parse(&("x".repeat(2043) + "{a}{b}")).is_err());

    assert!(Template::parse(&format!("{{a{}}}", "[0]".repeat(63))).is_ok());
    let error = error(&format!("x{{a{}}}", "[0]".repeat(64)));
    assert_eq!(error.offset(), 1);
    assert!(error.to_string().contains("more than 64 steps"), "{error}");
}

#[test]
fn a_template_tells_what_it_depends_on() {
    let template = Template::parse("{@function_version}:{a[0]}:{a[0]}").unwrap();
    let placeholders: Vec<String> = template.placeholders().map(Placeholder::to_string).collect();
    assert_eq!(placeholders, ["@function_version", "a[0]", "a[0]"]);
    assert!(template.uses_function_version());
    assert!(template.warning().unwrap().contains("deployment"));

    let template = Template::parse("{@function_name}").unwrap();
    assert!(!template.uses_function_version());
    assert_eq!(template.warning(), None);
}
