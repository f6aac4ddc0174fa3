//! Arguments of tool calls, and the schemas that they are to fit.

use lockgate::message::{Block, Delta};
use lockgate::run::Assembly;
use lockgate::tool::schema::Schema;
use serde_json::json;

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
fn arguments_come_out_as_an_object_or_with_a_complaint() {
    each("arguments_come_out", |chance| {
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
            let Block::ToolUse(call) = block else { panic!("{block:?} is no call") };
            assert!(call.input.is_object(), "{text:?} became {}", call.input);
        }
        let n_calls = reply.message.tool_uses().count();
        let ids: std::collections::HashSet<_> =
            reply.message.tool_uses().map(|it| &it.id).collect();
        assert_eq!(ids.len(), n_calls, "two calls of one id");
    });
}

#[test]
fn any_schema_is_compiled_or_refused_and_any_value_fits_or_does_not() {
    let good = json!({
        "type": "object", "required": ["a"], "additionalProperties": false, "$defs": { "a": { "type": "string" } },
        "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "anyOf": [{ "type": "integer", "maximum": 3 }, { "const": null }] } },
    });
    each("any_schema_is_compiled", |chance| {
        let schema = match chance.below(3) {
            0 => chance.json(WORDS, 4),
            _ => chance.spoilt(&good, WORDS),
        };
        let Ok(compiled) = Schema::compile(&schema) else { return };
        for _ in 0..3 {
            let value = chance.json(&["a", "b", "string"], 3);
            let fits = compiled.check(&value).is_ok();
            assert_eq!(fits, compiled.check(&value).is_ok(), "{schema} of {value}");
            let cleaned = compiled.without_nulls(value.clone());
            if fits {
                assert_eq!(cleaned, value, "{schema} changed what fits");
            }
            assert_eq!(compiled.without_nulls(cleaned.clone()), cleaned, "{schema} of {value}");
        }
    });
}
