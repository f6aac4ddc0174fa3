//! The codec of keys: two ids are equal only if their bytes are.

use crate::support::*;
use lockgate::slot::Slot;
use lockgate::store::keys::EntryRef;
use lockgate::store::keys::{SlotKeys, part, partition, unpart};

/// Ids that other systems have confused with each other.
const TRICKY: &[&str] = &[
    "a",
    "A",
    "á",
    "a ",
    " a",
    "a/b",
    "a.b",
    "a-b",
    "a-2fb",
    "..",
    ".",
    "%2e",
    "con",
    "__anon__",
    "anonymous",
    "t.a",
    "h.a",
    "*",
    "?",
    "_",
    "%",
    "{a}",
    "ａ",
    "日本",
    "😀",
    "-",
    "--",
    "__proto__",
    "constructor",
    "null",
    "0",
];

#[test]
fn no_two_ids_share_a_part() {
    let long: Vec<String> = (70..80).map(|n| "x".repeat(n)).collect();
    let mut ids: Vec<&str> =
        TRICKY.iter().copied().chain(long.iter().map(String::as_str)).collect();
    let parts: std::collections::BTreeSet<_> = ids.iter().map(|id| part(id)).collect();
    ids.dedup();
    assert_eq!(parts.len(), ids.len());
}

#[test]
fn a_part_that_is_kept_readable_gives_its_id_back() {
    for id in TRICKY {
        assert_eq!(unpart(&part(id)).as_deref(), Some(*id));
    }
    for other in ["", "t", "h.x", "t.-", "t.-4", "t.-zz", "t.-ff", "anonymous"] {
        assert_eq!(unpart(other), None, "{other}");
    }
    assert_eq!(unpart(&part(&"x".repeat(76))), None, "only its hash is kept");
}

#[test]
fn keys_use_only_their_alphabet_and_are_never_dots() {
    for id in TRICKY {
        for piece in SlotKeys::new(id, &Slot::new(Some(id), id).unwrap()).head().split('/') {
            assert!(
                piece.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-')),
                "{piece}"
            );
            assert!(piece != "." && piece != "..", "{piece}");
        }
    }
}

#[test]
fn a_separator_in_an_id_changes_nothing() {
    let keys = |user: &str, session: &str| {
        SlotKeys::new("agent", &Slot::new(Some(user), session).unwrap()).head()
    };
    assert_ne!(keys("a/b", "c"), keys("a", "b/c"));
}

#[test]
fn r11_no_user_id_has_the_keys_of_the_anonymous_user() {
    let anonymous = partition("agent", None);
    assert!(TRICKY.iter().all(|id| partition("agent", Some(id)) != anonymous));
}

#[test]
fn the_longest_key_fits_into_512_bytes() {
    let id = "😀".repeat(64);
    let keys = SlotKeys::new(&id, &Slot::new(Some(&id), &id).unwrap());
    let entry = EntryRef { seq: u64::MAX, id: "v".repeat(26) };
    for key in [keys.entry(&entry), keys.input(&id), keys.call(&id), keys.index(0.0)] {
        assert!(key.len() <= 512, "{} bytes", key.len());
    }
}

#[test]
fn keys_of_the_log_sort_by_number() {
    let keys = SlotKeys::new("agent", &slot("s1"));
    let key = |seq| keys.entry(&EntryRef { seq, id: "z".into() });
    assert!(key(9) < key(10) && key(99) < keys.log_before(100) && keys.log_before(100) < key(100));
}

#[test]
fn newer_sessions_sort_first() {
    let keys = SlotKeys::new("agent", &slot("s1"));
    assert!(keys.index(2_000.0) < keys.index(1_000.0));
}

#[test]
fn invalid_ids_are_refused() {
    for bad in ["", "   ", "a\nb", "a\u{0}", "\u{85}", &"x".repeat(257)] {
        let error = Slot::new(None, bad).unwrap_err();
        assert_eq!(error.kind().code(), "ID_INVALID", "{bad:?}");
        assert!(error.hint_text().is_some());
    }
    assert!(Slot::new(Some(""), "s").is_err());
    assert!(Slot::new(None, &"x".repeat(256)).is_ok());
}
