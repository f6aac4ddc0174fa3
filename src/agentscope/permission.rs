//! Permissions: AgentScope keeps rules by tool and directories by key; we keep lists.

use serde_json::{Value, json};

use super::block::lower;
use super::remainder;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::state::{Behavior, PermissionContext, PermissionMode, Rule};

const DIRECTORIES: &str = "working_directories";

/// Reads a permission context.
pub(super) fn read(value: &Value) -> Read<PermissionContext> {
    const KNOWN: &[&str] =
        &["mode", "allow_rules", "ask_rules", "deny_rules", DIRECTORIES, remainder::MEMBER];
    let fields = Fields::of(value)?;
    let mut context = PermissionContext {
        mode: fields.or_default("mode", |value| PermissionMode::from_json(&lower(value)))?,
        allow_rules: fields.or_default("allow_rules", |value| table(value, Behavior::Allow))?,
        ask_rules: fields.or_default("ask_rules", |value| table(value, Behavior::Ask))?,
        deny_rules: fields.or_default("deny_rules", |value| table(value, Behavior::Deny))?,
        working_directories: fields.or_default(DIRECTORIES, paths)?,
        rest: fields.rest(KNOWN),
    };
    keep_directories(&mut context, fields.value(DIRECTORIES));
    let written = write(&context);
    remainder::keep(&mut context.rest, &written, value);
    Ok(context)
}

/// Writes a permission context.
pub(super) fn write(context: &PermissionContext) -> Object {
    let mut members = remainder::members(&context.rest);
    members.insert("mode".into(), json!(context.mode));
    members.insert(DIRECTORIES.into(), Value::Object(directories(context)));
    members.insert("allow_rules".into(), by_tool(&context.allow_rules));
    members.insert("ask_rules".into(), by_tool(&context.ask_rules));
    members.insert("deny_rules".into(), by_tool(&context.deny_rules));
    remainder::restore(&mut members, &context.rest);
    members
}

/// Reads the rules of a table. As in AgentScope, the keys name the tools, and the table decides the behavior. A rule
/// that states another tool or behavior keeps these members, but they have no effect.
fn table(value: &Value, behavior: Behavior) -> Read<Vec<Rule>> {
    let tools = Fields::of(value)?;
    let mut rules = Vec::new();
    for tool in value.as_object().into_iter().flat_map(Object::keys) {
        for (mut rule, original) in tools.or_default(tool, |value| json::list(value, draft))? {
            rule.tool_name.clone_from(tool);
            rule.behavior = behavior;
            let written = rule_members(&rule);
            remainder::keep(&mut rule.rest, &written, &original);
            rules.push(rule);
        }
    }
    Ok(rules)
}

/// A rule before the tool and the behavior of its table are set, and the form in which it is written.
fn draft(value: &Value) -> Read<(Rule, Value)> {
    const KNOWN: &[&str] = &["tool_name", "rule_content", "behavior", "source", remainder::MEMBER];
    let fields = Fields::of(value)?;
    fields.optional("tool_name", json::text)?;
    fields.optional("behavior", |value| match lower(value).as_str() {
        Some("allow" | "ask" | "deny" | "passthrough") => Ok(()),
        _ => Err(Misread::new("allow, ask, deny or passthrough")),
    })?;
    let rule = Rule {
        tool_name: String::new(),
        rule_content: fields.optional("rule_content", json::text)?,
        behavior: Behavior::Ask,
        source: fields.or_default("source", json::text)?,
        rest: fields.rest(KNOWN),
    };
    Ok((rule, value.clone()))
}

fn by_tool(rules: &[Rule]) -> Value {
    let mut table = Object::new();
    for rule in rules {
        let of_tool = table.entry(rule.tool_name.as_str()).or_insert_with(|| json!([]));
        if let Some(list) = of_tool.as_array_mut() {
            list.push(Value::Object(rule_members(rule)));
        }
    }
    Value::Object(table)
}

fn rule_members(rule: &Rule) -> Object {
    let mut members = remainder::members(&rule.rest);
    members.insert("tool_name".into(), json!(rule.tool_name));
    members.insert("rule_content".into(), json!(rule.rule_content));
    members.insert("behavior".into(), json!(rule.behavior));
    members.insert("source".into(), json!(rule.source));
    remainder::restore(&mut members, &rule.rest);
    members
}

/// The paths in a table of directories, without duplicates.
fn paths(value: &Value) -> Read<Vec<String>> {
    let table = Fields::of(value)?;
    let mut paths = Vec::new();
    for key in value.as_object().into_iter().flat_map(Object::keys) {
        let path = table.required(key, |value| Fields::of(value)?.optional("path", json::text))?;
        let path = path.unwrap_or_else(|| key.clone());
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Keeps the table of directories if it contains more than the paths. When it is written, each path is looked up, so
/// that a removed directory is not restored.
fn keep_directories(context: &mut PermissionContext, table: Option<&Value>) {
    let Some(Value::Object(table)) = table else { return };
    if *table != directories(context) {
        let kept = json!({ DIRECTORIES: { "entries": table } });
        context.rest.insert(remainder::MEMBER.into(), kept);
    }
}

fn directories(context: &PermissionContext) -> Object {
    let kept = context.rest.get(remainder::MEMBER).and_then(|kept| kept.get(DIRECTORIES));
    let entries = kept.and_then(|kept| kept.get("entries")).and_then(Value::as_object);
    let mut table = Object::new();
    for path in &context.working_directories {
        let known = entries.into_iter().flatten().filter(|(key, entry)| {
            entry.get("path").and_then(Value::as_str).unwrap_or(key) == path.as_str()
        });
        let before = table.len();
        table.extend(known.map(|(key, entry)| (key.clone(), entry.clone())));
        if table.len() == before {
            table.insert(path.clone(), json!({ "path": path, "source": "session" }));
        }
    }
    table
}
