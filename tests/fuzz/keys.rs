//! Keys: for any ids, no two ids share a key, and every key fits every store.

use lockgate::slot::Slot;
use lockgate::store::keys::{SlotKeys, folders, part, path, unpart};

use crate::each;

fn is_fit(key: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'/');
    key.bytes().all(fits) && key.len() <= 512 && key.split('/').all(|it| it != "." && it != "..")
}

#[test]
fn no_two_ids_share_a_key_and_every_key_fits_every_store() {
    each("no_two_ids", |chance| {
        let (one, other) = (chance.text(), chance.text());
        assert_eq!(part(&one) == part(&other), one == other, "{one:?} and {other:?}");
        let kept = unpart(&part(&one));
        assert!(kept.as_ref().is_none_or(|it| *it == one), "{one:?} became {kept:?}");
        assert!(kept.is_some() || part(&one).starts_with("h."), "{one:?} is lost");
        // A damaged key is refused, and never read as another id.
        let bent = String::from_utf8_lossy(&chance.bent(part(&one).as_bytes())).into_owned();
        if let Some(id) = unpart(&bent)
            && part(&id) == bent
        {
            assert_eq!(bent == part(&one), id == one, "{bent:?}");
        }
    });
}

#[test]
fn no_two_slots_share_a_record() {
    each("no_two_slots", |chance| {
        let users = [None, Some(chance.text()), Some("anonymous".to_owned())];
        let (user, other) = (chance.pick(&users), chance.pick(&users));
        let (one, two) = (chance.text(), chance.text());
        let slots = [(user.as_deref(), &one), (other.as_deref(), &two)];
        let [Ok(first), Ok(second)] = slots.map(|(user, session)| Slot::new(user, session)) else {
            return;
        };
        let keys = |slot: &Slot| SlotKeys::new("agent", slot);
        let of = |keys: &SlotKeys| {
            let call = keys.call(slots[0].1);
            [keys.head(), keys.inputs(), keys.log_before(3), call, keys.index(1e12), keys.tasks()]
        };
        let (ours, theirs) = (of(&keys(&first)), of(&keys(&second)));
        for (a, b) in ours.iter().zip(&theirs) {
            assert_eq!(a == b, first == second, "{first:?} and {second:?}");
        }
        assert!(ours.iter().all(|key| is_fit(key.trim_end_matches('/'))), "{ours:?}");
        let is_below = keys(&first).head().starts_with(&keys(&second).all());
        assert_eq!(is_below, first == second);
    });
}

#[test]
fn every_path_below_a_folder_has_a_key_below_the_folders_key() {
    each("every_path_below", |chance| {
        let names = (0..1 + chance.below(9)).map(|_| chance.text().replace('/', "x") + "n");
        let names: Vec<String> = names.collect();
        let whole = names.join("/");
        let n = chance.below(names.len());
        let folder = names[..n].join("/");
        assert!(path(&whole).starts_with(&folders(&folder).0), "{folder:?} of {whole:?}");
        assert!(is_fit(&path(&whole)), "{whole:?}");
    });
}
