//! What must hold for any template, any values and any event.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{CONTEXT, key, resolve};
use crate::key::{Path, ResolveError, Segment, Template};

/// Text with much of what the grammar gives a meaning.
fn template_like() -> impl Strategy<Value = String> {
    let parts = [
        "{",
        "}",
        "{{",
        "}}",
        "[",
        "]",
        ".",
        "\"",
        "\\",
        "@",
        "0",
        "a",
        "{a}",
        "{b.c}",
        "{[0]}",
        "{[\"x-y\"]}",
        "{@tenant_id}",
        "é",
        " ",
    ];
    let part = prop::sample::select(parts.to_vec());
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// Values that look like the framing's own characters.
fn value() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9:{}/]{1,6}", "\\PC{1,12}", any::<i64>().prop_map(|n| n.to_string())]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", any::<String>(), Just("x-id".to_owned())]
}

/// How pydynox joins fields, stated on its own: each as its UTF-8 length, a colon and itself, but one alone is bare.
fn framed_like_pydynox(texts: &[&str], values: &[&str]) -> String {
    let fields: Vec<String> = match values {
        [alone] => vec![(*alone).to_owned()],
        many => many.iter().map(|value| [&value.len().to_string(), ":", value].concat()).collect(),
    };
    let mut key = String::new();
    for (n, text) in texts.iter().enumerate() {
        key += text;
        key += fields.get(n).map_or("", String::as_str);
    }
    key
}

fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

proptest! {
    #[test]
    fn parsing_never_panics_and_its_normal_form_is_stable(source in prop_oneof![any::<String>(), template_like()]) {
        match Template::parse(&source) {
            Err(error) => prop_assert!(source.is_char_boundary(error.offset()), "{}", error),
            Ok(template) => {
                let normal = template.to_string();
                let again = Template::parse(&normal).unwrap();
                prop_assert_eq!(&again.to_string(), &normal);
                prop_assert!(again.placeholders().eq(template.placeholders()));
            }
        }
    }

    #[test]
    fn resolving_never_panics(template in template_like(), event in prop_oneof![any::<String>(), "[\\[\\]{}\":,a0-9\\\\ud. -]{0,40}"]) {
        if let Ok(template) = Template::parse(&template) {
            let _ = template.resolve(None, &event, &CONTEXT);
        }
    }

    #[test]
    fn a_path_of_any_names_finds_what_stands_there(steps in vec(prop_oneof![name().prop_map(Segment::Name), (0..4usize).prop_map(Segment::Index)], 1..6), text in value()) {
        let mut event = json!(text);
        for step in steps.iter().rev() {
            event = match step {
                Segment::Name(name) => json!({ (format!("{name}\u{1}")): [null], (name.as_str()): event, "\n": 0.5 }),
                Segment::Index(index) => {
                    let mut elements = vec![Value::Null; *index];
                    elements.extend([event, json!({})]);
                    Value::Array(elements)
                }
            };
        }
        // "\n" may be a step itself; then the map holds the later entry, and the path leads nowhere.
        prop_assume!(!steps.iter().any(|step| *step == Segment::Name("\n".into())));
        let template = format!("{{{}}}", Path::new(steps));
        prop_assert_eq!(key(&template, &event.to_string()), text);
    }

    #[test]
    fn framing_is_pydynox_s(texts in vec("[a-z:0-9{}é]{0,4}", 2..5), values in vec(value(), 4)) {
        let values: Vec<&str> = values.iter().map(String::as_str).take(texts.len() - 1).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut template = String::new();
        let mut event = serde_json::Map::new();
        for (n, text) in texts.iter().enumerate() {
            template += &doubled(text);
            if let Some(value) = values.get(n) {
                template += &format!("{{v{n}}}");
                event.insert(format!("v{n}"), json!(value));
            }
        }
        prop_assert_eq!(key(&template, &Value::Object(event).to_string()), framed_like_pydynox(&texts, &values));
    }

    /// Random values hardly ever run together by chance, so these are one row of parts, divided among three values in two
    /// ways: without framing they would always share a key.
    #[test]
    fn different_values_never_share_a_key(
        separator in prop::sample::select(vec!["", ":", "/", "1:", "{"]),
        parts in vec(prop::sample::select(vec!["a", "1", "2", "1:", "2:a", "3:1:1", ":", "é"]), 3..9),
        cuts in vec(any::<prop::sample::Index>(), 4),
    ) {
        let values = |cuts: &[prop::sample::Index]| {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| 1 + cut.index(parts.len() - 1)).collect();
            cuts.sort_unstable();
            let bounds = [0, cuts[0], cuts[1], parts.len()];
            let groups = bounds.windows(2).map(|bound| parts[bound[0]..bound[1]].join(separator));
            groups.collect::<Vec<String>>()
        };
        let (a, b) = (values(&cuts[..2]), values(&cuts[2..]));
        prop_assume!(a.iter().chain(&b).all(|value| !value.is_empty()));
        let separator = doubled(separator);
        let template = format!("{{[0]}}{separator}{{[1]}}{separator}{{[2]}}");
        let of = |values: &[String]| key(&template, &json!(values).to_string());
        prop_assert_eq!(a == b, of(&a) == of(&b));
    }

    #[test]
    fn a_cut_off_event_gives_no_key(text in value(), cut in any::<prop::sample::Index>()) {
        let event = json!({ "a": [1, { "id": "no" }], "d": { "id": text, "z": null }, "e": "end" }).to_string();
        let ends: Vec<usize> = event.char_indices().map(|(at, _)| at).collect();
        let event = event.get(..*cut.get(&ends)).unwrap_or_default();
        let error = resolve("{d.id}", event).unwrap_err();
        prop_assert!(matches!(error, ResolveError::Event(_)), "{}", error);
    }

    #[test]
    fn a_key_is_what_a_full_parse_would_find(event in json_value()) {
        let found = event.pointer("/a/b").cloned();
        let result = resolve("{a.b}", &event.to_string());
        match found {
            Some(Value::String(text)) if !text.is_empty() => prop_assert_eq!(String::from(result.unwrap()), text),
            Some(Value::Number(number)) if !number.is_f64() => prop_assert_eq!(String::from(result.unwrap()), number.to_string()),
            Some(_) => prop_assert!(!result.unwrap_err().is_missing()),
            None => {
                let leads_on = event.as_object().is_some_and(|event| event.get("a").is_none_or(Value::is_object));
                prop_assert_eq!(result.unwrap_err().is_missing(), leads_on);
            }
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-b\\\\\"é]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("[ab]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
