//! Keeps the differences between a document and our own form of it, so that an export restores them.
//!
//! A value is read into our form and written again at once. If the result differs from the original, the difference is
//! kept under [`MEMBER`] in the value's `rest`: `{"ours", "theirs"}` for a member (one of them is missing if that side
//! does not have the member), or `{"within"}` for an object whose members differ. An export replaces `ours` by
//! `theirs`, but only if the value still equals `ours`: later changes are kept.

use serde_json::{Value, json};

use crate::json::Object;

/// The member of `rest` that keeps the differences.
pub(super) const MEMBER: &str = "agentscope";

/// Keeps the differences between `original` and the object that we wrote for it in `rest`.
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

/// Restores in `written` what `rest` has kept of the original.
pub(super) fn restore(written: &mut Object, rest: &Object) {
    if let Some(Value::Object(changes)) = rest.get(MEMBER) {
        put_back(written, changes);
    }
}

/// The members of `rest` that are written to a document unchanged.
pub(super) fn members(rest: &Object) -> Object {
    let mut members = rest.clone();
    members.remove(MEMBER);
    members
}

/// Removes members that equal AgentScope's defaults. [`fill`] adds them again.
pub(super) fn thin(rest: &mut Object, defaults: &Value) {
    for (name, value) in defaults.as_object().into_iter().flatten() {
        if rest.get(name) == Some(value) {
            rest.remove(name);
        }
    }
}

/// Adds the missing defaults of AgentScope.
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
