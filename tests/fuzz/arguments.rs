//! Arguments of tool calls, and their schemas.

use lockgate::message::{Block, Delta};
use lockgate::run::Assembly;
use lockgate::tool::schema::Schema;
use serde_json::{Value, json};

use crate::each;
use crate::make::Chance;

const WORDS: &[&str] = &[
    "type",
    "object",
    "string",
    "integer",
    "number",
    "array",
    "null",
    "boolean",
    "properties",
    "required",
    "items",
    "prefixItems",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "#",
    "#/$defs/a",
    "$defs",
    "a",
    "b",
    "additionalProperties",
    "pattern",
    "minLength",
    "maximum",
    "multipleOf",
    "minItems",
    "uniqueItems",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "unevaluatedProperties",
    "format",
    "default",
    "contains",
    "$id",
    "$anchor",
    "$dynamicRef",
    "exclusiveMinimum",
    "maxProperties",
    "^a+$",
    "(a|b)*",
];

fn pieces(chance: &mut Chance, text: &str) -> Vec<String> {
    let bytes = chance.cut(text.as_bytes());
    bytes.into_iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
}

#[test]
fn arguments_become_an_object_or_an_error() {
    each("arguments_become", |chance| {
        let good = chance.json(WORDS, 3).to_string();
        let bytes = if chance.one_in(2) { chance.bent(good.as_bytes()) } else { good.into() };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (mut assembly, mut events) = (Assembly::new("m1".into()), Vec::new());
        for (n, arguments) in pieces(chance, &text).into_iter().enumerate() {
            let index = if chance.one_in(30) { 1 } else { 0 };
            let id = (n == 0 || chance.one_in(9)).then(|| chance.word(&["c1", "c2"]));
            let name = (n == 0 || chance.one_in(9)).then(|| chance.word(&["t"]));
            let provider = None;
            let delta = Delta::ToolCall { index, id, name, arguments, provider };
            assembly.push(delta, &mut events);
        }
        let reply = assembly.finish(0.0, &mut events);
        for block in &reply.message.content {
            let Block::ToolUse(call) = block else { panic!("{block:?} is not a call") };
            assert!(call.input.is_object(), "{text:?} became {}", call.input);
        }
        let n_calls = reply.message.tool_uses().count();
        let ids: std::collections::HashSet<_> =
            reply.message.tool_uses().map(|it| &it.id).collect();
        assert_eq!(ids.len(), n_calls, "two calls have one id");
    });
}

/// A schema that uses a reference, alternatives and a closed list of properties.
fn letter_schema() -> Value {
    json!({
        "type": "object", "required": ["a"], "additionalProperties": false, "$defs": { "a": { "type": "string" } },
        "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "anyOf": [{ "type": "integer", "maximum": 3 }, { "const": null }] } },
    })
}

/// Whether a value fits `letter_schema`, written by hand and without the checker.
fn fits_letter_schema(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let is_small_integer = |n: f64| n.fract() == 0.0 && n <= 3.0;
    let is_good_b = |b: &Value| b.is_null() || b.as_f64().is_some_and(is_small_integer);
    object.get("a").is_some_and(Value::is_string)
        && object.get("b").is_none_or(is_good_b)
        && object.keys().all(|key| key == "a" || key == "b")
}

#[test]
fn the_checker_agrees_with_a_check_written_by_hand() {
    let compiled = Schema::compile(&letter_schema()).unwrap();
    each("the_checker_agrees", |chance| {
        let mut value = chance.json(&["a", "b", "string"], 3);
        if chance.one_in(2) {
            let a = if chance.one_in(2) { json!("text") } else { chance.json(&["a"], 1) };
            let small = chance.below(7) as f64 / 2.0 + 1.0;
            let b = if chance.one_in(2) { json!(small) } else { chance.json(&["b"], 1) };
            value = if chance.one_in(2) { json!({ "a": a, "b": b }) } else { json!({ "a": a }) };
        }
        assert_eq!(compiled.check(&value).is_ok(), fits_letter_schema(&value), "{value}");
    });
}

#[test]
fn any_schema_is_compiled_or_refused_and_any_value_can_be_checked() {
    let good = letter_schema();
    each("any_schema_is_compiled", |chance| {
        let schema = match chance.below(3) {
            0 => chance.json(WORDS, 4),
            _ => chance.spoilt(&good, WORDS),
        };
        let Ok(compiled) = Schema::compile(&schema) else { return };
        for _ in 0..3 {
            let value = chance.json(&["a", "b", "string"], 3);
            let fits = compiled.check(&value).is_ok();
            let cleaned = compiled.without_nulls(value.clone());
            if fits {
                assert_eq!(cleaned, value, "{schema} changed a valid value");
            }
            assert_eq!(compiled.without_nulls(cleaned.clone()), cleaned, "{schema} of {value}");
        }
    });
}
