//! Removes nulls that mean "not given".

use serde_json::Value;

use super::Schema;
use super::check::{Check, MAX_DEPTH};
use super::rule::{Id, MembersRule, SchemaRule};

/// Removes them from a value, using the schemas that apply to it.
pub(super) fn remove(schema: &Schema, ids: &[Id], value: &mut Value, depth: usize) {
    if depth == MAX_DEPTH {
        return;
    }
    let rules = applied(schema, ids);
    match value {
        Value::Object(object) => {
            for (name, mut member) in std::mem::take(object) {
                if member.is_null() && stands_for_absent(schema, &rules, &name) {
                    continue;
                }
                let ids: Vec<Id> =
                    members(&rules).filter_map(|rule| rule.of(&name)).flatten().collect();
                remove(schema, &ids, &mut member, depth + 1);
                object.insert(name, member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let at_index = rules.iter().filter_map(|rule| match rule {
                    SchemaRule::Items(items) => items.at(index),
                    _ => None,
                });
                remove(schema, &at_index.collect::<Vec<Id>>(), item, depth + 1);
            }
        }
        _ => {}
    }
}

/// The rules of these schemas and of those that they refer to or are made of.
fn applied<'s>(schema: &'s Schema, ids: &[Id]) -> Vec<&'s SchemaRule> {
    let mut found = ids.to_vec();
    let mut rules = Vec::new();
    let mut next = 0;
    while let Some(id) = found.get(next) {
        for rule in schema.rules(*id) {
            let more = match rule {
                SchemaRule::Ref(fragment) => schema.place(fragment).into_iter().collect(),
                SchemaRule::AllOf(ids) => ids.clone(),
                _ => Vec::new(),
            };
            let new: Vec<Id> = more.into_iter().filter(|id| !found.contains(id)).collect();
            found.extend(new);
            rules.push(rule);
        }
        next += 1;
    }
    rules
}

/// Whether null for this property can only mean that it is not given.
fn stands_for_absent(schema: &Schema, rules: &[&SchemaRule], name: &str) -> bool {
    let is_required = rules.iter().any(|rule| match rule {
        SchemaRule::Required(names) => names.iter().any(|required| required == name),
        _ => false,
    });
    let mut declared = members(rules).filter_map(|rule| rule.declared.get(name));
    !is_required && declared.any(|id| !Check::new(schema).accepts(id, &Value::Null))
}

fn members<'r>(rules: &'r [&SchemaRule]) -> impl Iterator<Item = &'r MembersRule> {
    rules.iter().filter_map(|rule| match rule {
        SchemaRule::Members(members) => Some(members),
        _ => None,
    })
}
