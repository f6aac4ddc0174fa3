//! The checker of tool input against the official JSON Schema suite, and its error messages.

use std::fs;
use std::path::{Path, PathBuf};

use lockgate::error::ErrorKind;
use lockgate::tool::schema::{Problem, Schema};
use serde_json::{Value, json};

/// How many groups of each file use something that is listed as unsupported: an `$id` inside, a
/// reference to another document, an unknown keyword, or `\p{…}`.
const UNSUPPORTED: &[(&str, usize)] = &[
    ("anchor", 3),
    ("defs", 1),
    ("not", 1),
    ("optional/ecmascript-regex", 4),
    ("optional/id", 1),
    ("optional/refOfUnknownKeyword", 2),
    ("optional/unknownKeyword", 1),
    ("ref", 13),
];

#[test]
fn the_official_suite_agrees_wherever_nothing_is_unsupported() {
    let mut outcome = Outcome::default();
    let mut unsupported = Vec::new();
    for (name, groups) in suite() {
        let n_before = outcome.n_unsupported;
        groups.iter().for_each(|group| outcome.add(&name, group));
        unsupported.push((name, outcome.n_unsupported - n_before));
    }
    let Outcome { n_groups, n_tests, n_unsupported, wrong } = outcome;
    println!(
        "{n_groups} groups with {n_tests} tests, and {n_unsupported} groups that are unsupported"
    );
    assert_eq!(wrong, [""; 0]);
    let unsupported =
        unsupported.iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.as_str(), *n));
    assert_eq!(unsupported.collect::<Vec<_>>(), UNSUPPORTED);
}

#[test]
fn an_error_says_where_it_is_and_what_is_expected() {
    let schema = compiled(&json!({ "properties": { "items": { "items": {
        "properties": { "name": { "type": "string" }, "a.b": { "minimum": 3 } }, "required": ["id"],
    } } } }));
    let value = json!({ "items": [{ "id": 1 }, { "name": 5, "a.b": 2 }] });
    let told = [
        "items[1]: must have the property \"id\"",
        "items[1][\"a.b\"]: must be at least 3, but is 2",
        "items[1].name: must be a string, not the number 5",
    ];
    assert_eq!(problems(&schema, &value), told);
}

#[test]
fn an_undeclared_name_is_answered_with_the_declared_names() {
    let schema = compiled(
        &json!({ "properties": { "city": true, "unit": true }, "additionalProperties": false }),
    );
    let told = ["must not have the property \"town\"; allowed are \"city\", \"unit\""];
    assert_eq!(problems(&schema, &json!({ "town": "Bern" })), told);
}

#[test]
fn the_error_gives_a_reason_for_each_alternative() {
    let schema = compiled(&json!({ "properties": { "to": { "anyOf": [
        { "type": "null" }, { "properties": { "kind": { "enum": ["mail", "chat"] } } },
    ] } } }));
    let told = "to: fits none of the 2 alternatives: (1) must be null, not an object; \
                (2) to.kind: must be one of \"mail\", \"chat\", not the string \"fax\"";
    assert_eq!(problems(&schema, &json!({ "to": { "kind": "fax" } })), [told]);
}

#[test]
fn json_inside_a_string_is_refused_with_a_request_for_json() {
    let schema = compiled(&json!({ "type": ["array", "null"] }));
    let told = "must be an array or null, not the string \"[1]\"; \
                give the JSON itself, not a string of it";
    assert_eq!(problems(&schema, &json!("[1]")), [told]);
}

#[test]
fn at_most_twenty_errors_are_listed() {
    let schema = compiled(&json!({ "items": { "type": "string" } }));
    assert_eq!(problems(&schema, &json!(vec![1; 50])).len(), 20);
}

#[test]
fn r34_null_for_an_optional_property_is_removed() {
    let schema = compiled(&json!({
        "$defs": { "text": { "type": "string" }, "place": { "properties": {
            "city": { "$ref": "#/$defs/text" }, "zip": { "type": ["string", "null"] },
        } } },
        "properties": { "to": { "items": { "$ref": "#/$defs/place" } }, "note": { "const": 3 } },
        "allOf": [{ "properties": { "id": { "const": 1 }, "tag": { "const": 2 } } }],
        "required": ["id"],
        "additionalProperties": { "properties": { "deep": { "enum": [1] } } },
    }));
    let given = json!({
        "to": [{ "city": null, "zip": null }], "note": null, "id": null, "tag": null,
        "more": { "deep": null }, "other": null,
    });
    // Null stays where the schema allows it, and where the property is required or undeclared.
    let kept = json!({ "to": [{ "zip": null }], "id": null, "more": {}, "other": null });
    assert_eq!(schema.without_nulls(given), kept);
}

#[test]
fn a_reference_to_itself_ends_with_an_error() {
    let told = "cannot be checked: more than 128 schemas apply inside each other, \
                or it never ends";
    let endless = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" },
    } });
    let doubling = json!({ "not": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } });
    for schema in [endless, doubling] {
        let schema = compiled(&schema);
        assert_eq!(problems(&schema, &json!(1)), [told]);
        assert_eq!(schema.without_nulls(json!({ "a": null })), json!({ "a": null }));
    }
}

#[test]
fn references_that_double_at_each_step_do_not_take_forever() {
    let next = |n: usize| json!({ "$ref": format!("#/$defs/{}", n + 1) });
    let step = |n: usize| (n.to_string(), json!({ "allOf": [next(n), next(n)] }));
    let mut steps: serde_json::Map<String, Value> = (0..50).map(step).collect();
    steps.insert("50".into(), json!(true));
    let schema = compiled(&json!({ "$defs": steps, "$ref": "#/$defs/0" }));
    assert_eq!(problems(&schema, &json!(1)).len(), 1);
}

#[test]
fn a_malformed_schema_is_refused_with_its_place() {
    let cases = [
        (
            json!({ "properties": { "a/b": { "type": "strng" } } }),
            "#/properties/a~1b/type must be the name of a type, or a list of them",
        ),
        (
            json!({ "items": { "minLength": -1 } }),
            "#/items/minLength must be a whole number that is not negative",
        ),
        (json!({ "allOf": [] }), "#/allOf must be a list of schemas, not empty"),
        (json!({ "not": "string" }), "#/not must be a schema"),
        (json!({ "$ref": "#/$defs/none" }), "#/$ref must be a reference to a place that exists"),
        (
            json!({ "if": { "$ref": "#none" } }),
            "#/if/$ref must be a reference to a place that exists",
        ),
        (
            json!({ "properties": { "a": { "required": true } } }),
            "#/properties/a/required must be a list of property names",
        ),
        (json!(["string"]), "# must be a schema"),
    ];
    for (schema, told) in cases {
        let error = Schema::compile(&schema).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Options, format!("the schema at {told}").as_str())
        );
        assert!(error.hint_text().is_some());
    }
}

#[test]
fn unsupported_keywords_are_listed_and_refuse_nothing() {
    let schema = compiled(&json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "x-order": 1, "format": "date",
        "minLenght": 1, "contains": { "items": [true] }, "maxContains": 0,
        "not": { "pattern": "^(?=a)" }, "oneOf": [true, { "unevaluatedProperties": false }],
        "if": { "$ref": "https://example.com/b" }, "then": false,
        "patternProperties": { "^\\p{L}/": { "type": "string" } }, "additionalProperties": false,
    }));
    let listed = [
        "#/minLenght",
        "#/patternProperties/^\\p{L}~1",
        "#/additionalProperties",
        "#/contains/items",
        "#/oneOf/1/unevaluatedProperties",
        "#/not/pattern",
        "#/if/$ref",
    ];
    assert_eq!(schema.unsupported(), listed);
    for value in [json!("abc"), json!({ "ä/": "x" }), json!([1, 2])] {
        assert_eq!(schema.check(&value), Ok(()));
    }
}

#[test]
fn names_of_javascript_prototypes_are_names_like_others() {
    let schema = compiled(&json!({
        "properties": { "__proto__": { "type": "number" }, "constructor": { "type": "string" } },
        "required": ["constructor", "toString"], "additionalProperties": false,
    }));
    let told = [
        "must have the properties \"constructor\", \"toString\"",
        "__proto__: must be a number, not the string \"x\"",
    ];
    assert_eq!(problems(&schema, &json!({ "__proto__": "x" })), told);
    assert_eq!(schema.without_nulls(json!({ "__proto__": null })), json!({}));
}

#[test]
fn v_10_numbers_are_not_rounded() {
    let schema = compiled(&json!({ "maximum": 9_007_199_254_740_993_u64, "multipleOf": 0.01 }));
    assert_eq!(schema.check(&json!(0.07)), Ok(()));
    assert_eq!(problems(&schema, &json!(0.075)), ["must be a multiple of 0.01, but is 0.075"]);
    assert_eq!(schema.check(&json!(9_007_199_254_740_993_u64)), Ok(()));
    assert_eq!(problems(&schema, &json!(9_007_199_254_740_994_u64)).len(), 1);
    assert_eq!(schema.check(&json!(9_007_199_254_740_992.0)), Ok(()));
}

#[test]
fn a_pattern_means_the_same_as_in_javascript() {
    let cases = [
        (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "ann.lee@example.com", true),
        (r"^[\s\S]{3}$", "a\u{2028}b", true),
        (r"^a.c$", "a\rc", false),
        (r"^\ud83d\udc32[\u{41}-\x43]$", "\u{1F432}B", true),
        (r"^[[&&-\]]+$", "[&]", true),
        (r"^\$\{\/\}\-\<$", "${/}-<", true),
    ];
    for (pattern, text, fits) in cases {
        let schema = compiled(&json!({ "pattern": pattern }));
        assert_eq!(schema.unsupported(), [""; 0], "{pattern}");
        assert_eq!(schema.check(&json!(text)).is_ok(), fits, "{pattern}");
    }
    for pattern in [r"(?<!a)b", r"(a)\1", r"\p{L}", r"\Aa\z", r"(?i)a", r"a{9999}{9999}", "("] {
        assert_eq!(compiled(&json!({ "pattern": pattern })).unsupported(), ["#/pattern"]);
    }
}

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).unwrap()
}

fn problems(schema: &Schema, value: &Value) -> Vec<String> {
    schema.check(value).unwrap_err().iter().map(Problem::to_string).collect()
}

/// Runs the suite.
#[derive(Default)]
struct Outcome {
    n_groups: usize,
    n_tests: usize,
    n_unsupported: usize,
    wrong: Vec<String>,
}

impl Outcome {
    fn add(&mut self, file: &str, group: &Value) {
        let schema = compiled(&group["schema"]);
        let is_certain = schema.unsupported().is_empty();
        let tests = group["tests"].as_array().unwrap();
        for test in tests {
            let is_valid = test["valid"] == true;
            // An unsupported keyword may let an invalid value pass, but it never refuses a valid one.
            if schema.check(&test["data"]).is_ok() != is_valid && (is_certain || is_valid) {
                self.wrong
                    .push(format!("{file}: {}: {}", group["description"], test["description"]));
            }
        }
        if is_certain {
            self.n_groups += 1;
            self.n_tests += tests.len();
        } else {
            self.n_unsupported += 1;
        }
    }
}

/// The files of the official suite for draft 2020-12, of the keywords that are supported.
fn suite() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/json-schema");
    let mut files: Vec<PathBuf> =
        [&folder, &folder.join("optional")].into_iter().flat_map(files_in).collect();
    files.sort();
    let read = |file: PathBuf| {
        let name = file
            .strip_prefix(&folder)
            .unwrap()
            .with_extension("")
            .to_string_lossy()
            .replace('\\', "/");
        (name, serde_json::from_slice(&fs::read(file).unwrap()).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn files_in(folder: &PathBuf) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect()
}
