//! Key templates: refused when the layer is built.

use serde_json::Value;

use crate::played::order;
use crate::settings::built;
use crate::stage::{NOWHERE, Stage};
use crate::table::{Case, Kind, Seen, case, check};

fn cases() -> Vec<Case<String>> {
    use Kind::*;
    let of = |kind, template: &str, says| case(kind, template.to_owned(), "SettingsError", says, 0);
    vec![
        of(Empty, "", "the template is empty: write a key such as `orders:{detail.orderId}`"),
        of(Empty, "orders:{}", "byte 7: `{}` names no value: write a path"),
        of(Empty, "{a.}", "byte 3: a name is missing here"),
        of(Truncated, "orders:{detail.orderId", "byte 7: `{` is never closed: add `}`"),
        of(Truncated, "a{a[0", "byte 1: `{` is never closed: add `}`"),
        of(Truncated, r#"{["a"#, "the quote is never closed"),
        of(Truncated, "orders}", "`}` closes nothing: write `}}` for a brace"),
        of(Oversized, &"x".repeat(2_049), "shorten the text around the placeholders"),
        of(Oversized, &format!("{{a{}}}", ".a".repeat(64)), "the path has more than 64 steps: shorten it"),
        of(Oversized, &format!(r#"{{["{}"]}}"#, "x".repeat(70_000)), "the key template unless set, has 70006 bytes"),
        of(Oversized, "{a[99999999999999999999999]}", "takes a number counted from 0"),
        of(WrongType, "{records.0.id}", "write `[0]` for an array's element"),
        of(WrongType, "{a[b]}", "`[` takes a number counted from 0, such as `[0]`, or a name in quotes"),
        of(WrongType, "{detail-type}", r#"write `["detail-type"]`"#),
        of(WrongType, "{ id }", "write `id` without them"),
        of(WrongVersion, "{$.detail.orderId}", "a plain name begins with a letter or `_`"),
        of(WrongVersion, "{@stage}", "`@stage` is not known: write `@function_name`"),
        of(NotUtf8, r#"{["\ud800"]}"#, "is no JSON string: check its escapes"),
        of(Other, "{a}:{a.b}", "no event can have both"),
    ]
}

async fn run(template: String) -> Seen {
    let stage = Stage::over(NOWHERE);
    let layer = stage.layer::<Value>(&template).build();
    built(stage, layer, order()).await
}

#[tokio::test]
async fn templates_that_do_not_parse() {
    check("key template", cases(), run).await;
}
