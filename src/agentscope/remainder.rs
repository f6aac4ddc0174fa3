//! What a document says otherwise than we would write it: kept with the value, and given back while it still fits.
//!
//! A value is read into our form and written again at once. Where that gives back something else than was read, the
//! difference is kept under [`MEMBER`] in the value's `rest`: `{"ours", "theirs"}` for a member, either of them absent
//! where the member is, or `{"within"}` for an object in which members differ. When the value is exported, `theirs` is
//! put in the place of `ours`, and only there: what was changed meanwhile is not changed back.

use serde_json::{Value, json};

use crate::json::Object;

/// The member of a `rest` that is kept for this.
pub(super) const MEMBER: &str = "agentscope";

/// Keeps in `rest` how `original` differs from what we wrote of it.
pub(super) fn keep(rest: &mut Object, written: &Object, original: &Value) {
    let changes = original.as_object().map(|theirs| between(written, theirs)).unwrap_or_default();
    if changes.is_empty() {
        return;
    }
    let kept = rest.entry(MEMBER).or_insert_with(|| json!({}));
    if let Some(kept) = kept.as_object_mut() {
        kept.extend(changes);
    }
}

/// Gives `written` back what `rest` has kept of the original.
pub(super) fn restore(written: &mut Object, rest: &Object) {
    if let Some(Value::Object(changes)) = rest.get(MEMBER) {
        put_back(written, changes);
    }
}

/// The members of `rest` that go into a document as they are.
pub(super) fn members(rest: &Object) -> Object {
    let mut members = rest.clone();
    members.remove(MEMBER);
    members
}

/// Drops the members that are as the reference has them by default: [`fill`] knows them.
pub(super) fn thin(rest: &mut Object, defaults: &Value) {
    for (name, value) in defaults.as_object().into_iter().flatten() {
        if rest.get(name) == Some(value) {
            rest.remove(name);
        }
    }
}

/// Adds the defaults of the reference that are not there.
pub(super) fn fill(object: &mut Object, defaults: &Value) {
    for (name, value) in defaults.as_object().into_iter().flatten() {
        object.entry(name.as_str()).or_insert_with(|| value.clone());
    }
}

fn between(ours: &Object, theirs: &Object) -> Object {
    let mut changes = Object::new();
    let added = theirs.keys().filter(|name| !ours.contains_key(*name));
    for name in ours.keys().chain(added) {
        let change = match (ours.get(name), theirs.get(name)) {
            (ours, theirs) if ours == theirs => continue,
            (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
                json!({ "within": between(ours, theirs) })
            }
            (Some(ours), Some(theirs)) => json!({ "ours": ours, "theirs": theirs }),
            (Some(ours), None) => json!({ "ours": ours }),
            (None, theirs) => json!({ "theirs": theirs }),
        };
        changes.insert(name.clone(), change);
    }
    changes
}

fn put_back(written: &mut Object, changes: &Object) {
    for (name, change) in changes {
        if let Some(Value::Object(within)) = change.get("within") {
            if let Some(Value::Object(inner)) = written.get_mut(name) {
                put_back(inner, within);
            }
        } else if written.get(name) == change.get("ours") {
            match change.get("theirs") {
                Some(theirs) => written.insert(name.clone(), theirs.clone()),
                None => written.remove(name),
            };
        }
    }
}
