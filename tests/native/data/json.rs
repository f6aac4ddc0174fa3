//! What we write as JSON is, byte for byte, what serde_json writes.

use std::collections::BTreeMap;

use lockgate::json;
use serde::Serialize;
use serde_json::Value;

fn same<T: Serialize>(value: &T) {
    let theirs = serde_json::to_string(value).unwrap();
    assert_eq!(json::to_text(value), theirs);
    assert_eq!(json::to_bytes(value), theirs.into_bytes());
}

#[test]
fn every_character_is_written_as_serde_json_writes_it_wherever_it_stands() {
    let special = (0..=0x80).map(|code| char::from_u32(code).unwrap());
    for one in special.chain(['é', '\u{2028}', '日', '😀', '\u{ffff}', '\u{10ffff}']) {
        for before in 0..18 {
            same(&format!("{}{one}{}", "x".repeat(before), "é".repeat(before % 5)));
            same(&format!("{}{one}{one}", "日".repeat(before)));
        }
    }
    same(&"");
}

#[test]
fn numbers_are_written_as_serde_json_writes_them() {
    let floats = [0.0, -0.0, 1.0, 0.1, 1e21, 1e-7, 5e-324, f64::MAX, f64::NAN, f64::INFINITY];
    same(&floats);
    same(&(i8::MIN, u8::MAX, i16::MIN, u16::MAX, i32::MIN, u32::MAX, i64::MIN, u64::MAX));
    let text =
        r#"[1.0,-3,18446744073709551615,1e300,0.30000000000000004,-1.5e-9,12345678901234567890]"#;
    same(&serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn every_kind_of_value_is_written_as_serde_json_writes_it() {
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    struct Wrapped(u8);
    #[derive(Serialize)]
    struct Pair(u8, char);
    #[derive(Serialize)]
    enum Choice {
        None,
        One(u8),
        Two(u8, bool),
        Named { a: Option<u8>, b: Vec<Choice> },
    }
    #[derive(Serialize)]
    #[serde(tag = "type", rename_all = "kebab-case")]
    enum Tagged {
        Plain,
        Held(Inner),
        Loose { x: () },
    }
    #[derive(Serialize)]
    struct Inner {
        #[serde(skip_serializing_if = "Option::is_none")]
        gone: Option<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    let rest = || BTreeMap::from([("[".to_owned(), Value::Null), ("{\"".to_owned(), "[".into())]);
    let held = |gone| Tagged::Held(Inner { gone, rest: rest() });
    same(&(Unit, Wrapped(1), Pair(2, '"'), Some(true), None::<u8>));
    let named = Choice::Named { a: None, b: vec![Choice::None] };
    same(&[Choice::None, Choice::One(1), Choice::Two(2, false), named]);
    same(&Choice::Named { a: Some(1), b: vec![] });
    same(&[Tagged::Plain, held(None), held(Some(1)), Tagged::Loose { x: () }]);
    same(&(Vec::<u8>::new(), rest(), BTreeMap::<String, u8>::new()));
    same(&vec![vec!["[", "{"], vec!["", ","], vec![]]);
}

#[test]
fn a_number_is_padded_to_at_least_the_requested_digits() {
    let padded = |number, width| {
        let mut out = String::from("<");
        json::pad(&mut out, number, width);
        out
    };
    assert_eq!(padded(0, 1), "<0");
    assert_eq!(padded(7, 3), "<007");
    assert_eq!(padded(1_234, 2), "<1234");
    assert_eq!(padded(42, 12), "<000000000042");
    assert_eq!(padded(u64::MAX, 12), "<18446744073709551615");
}
