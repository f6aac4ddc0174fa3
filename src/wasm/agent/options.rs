//! Reads the options of an agent. TypeScript has checked names and shapes; values are checked here.

use serde_json::Value;
#[cfg(feature = "testing")]
use wasm_bindgen::prelude::*;

use crate::engine::{Bounds, CheckpointRate, Durability, Options, Overlap, Subagent, Timeouts};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Read};
use crate::policy::compaction::{Compaction, Truncation, When};
use crate::policy::eviction::Eviction;
use crate::policy::memory::{Flush, Memory};
use crate::policy::plan::PlanMode;
use crate::policy::retry::Retries;
use crate::port::{Capabilities, Shared, ToolSpec};
use crate::state::{PermissionContext, Persistence};
use crate::store::OnConflict;
use crate::store::workspace::files::Workspace;
use crate::tool::group::{Scope, ToolGroup};
use crate::tool::skill::Skill;

/// Reads the options, or returns an error that names the wrong one.
pub(crate) fn read(value: &Value) -> Result<Options> {
    options(value).map_err(wrong)
}

/// The options as they were read, or the error. A test compares this with the TypeScript types.
#[cfg(feature = "testing")]
#[wasm_bindgen(js_name = optionsAsRead)]
pub fn options_as_read(text: &str) -> String {
    match read(&serde_json::from_str(text).unwrap_or_default()) {
        Ok(options) => {
            let of_child = |child: &Subagent| {
                let Subagent {
                    name,
                    description,
                    system_prompt,
                    tools,
                    max_iterations,
                    compaction,
                    ..
                } = child;
                format!(
                    "{:#?}",
                    (name, description, system_prompt, tools, max_iterations, compaction)
                )
            };
            let children = options.subagents.iter().flatten().map(of_child);
            format!("{options:#?}\n{}", children.collect::<String>())
        }
        Err(error) => format!("{}: {}", error.kind().code(), error.message()),
    }
}

/// Reads the capabilities of a store.
pub(crate) fn capabilities(value: &Value) -> Result<Capabilities> {
    let read = |value: &Value| -> Read<Capabilities> {
        let fields = Fields::of(value)?;
        Ok(Capabilities {
            atomic: fields.required("atomic", json::boolean)?,
            compare_and_set: fields.required("compareAndSet", json::boolean)?,
            shared: fields.required("shared", shared)?,
            max_value_bytes: fields.optional("maxValueBytes", positive)?.map(|n| n as usize),
        })
    };
    read(value).map_err(|misread| {
        misread
            .into_error(ErrorKind::Options, "capabilities of the store")
            .hint("see StoreCapabilities in the package's types")
    })
}

/// Reads the description of a tool.
pub(crate) fn tool_spec(value: &Value) -> Result<ToolSpec> {
    ToolSpec::from_json(value).map_err(|misread| {
        misread
            .into_error(ErrorKind::Options, "a tool")
            .hint("see ToolConfig in the package's types")
    })
}

fn wrong(misread: Misread) -> Error {
    misread
        .into_error(ErrorKind::Options, "the options")
        .hint("see AgentOptions in the package's types")
}

fn options(value: &Value) -> Read<Options> {
    let fields = Fields::of(value)?;
    let defaults = Options::new(fields.required("name", json::text)?);
    let (session_tools, session_agents) =
        fields.optional("sessionTools", session_tools)?.unwrap_or((true, Vec::new()));
    Ok(Options {
        description: fields.optional("description", json::text)?,
        system_prompt: fields.or_default("systemPrompt", json::text)?,
        max_iterations: fields
            .optional("maxIterations", positive)?
            .map_or(defaults.max_iterations, |n| n as u32),
        max_tool_calls: fields
            .optional("maxToolCalls", positive)?
            .map_or(defaults.max_tool_calls, |n| n as usize),
        queue_limit: size(&fields, "queueLimit", defaults.queue_limit)?,
        overlap: fields.optional("overlap", overlap)?.unwrap_or(defaults.overlap),
        on_conflict: fields.or_default("onConflict", on_conflict)?,
        durability: fields.or_default("durability", durability)?,
        checkpoints: fields.or_default("checkpointMs", checkpoint_rate)?,
        leases: fields.or_default("leases", json::boolean)?,
        tool_groups: fields.or_default("toolGroups", |value| json::list(value, group))?,
        session_tools,
        session_agents,
        plan_mode: fields.or_default("planMode", plan_mode)?,
        skills: fields.or_default("skills", |value| json::list(value, skill))?.into(),
        task_list: fields.or_default("taskList", json::boolean)?,
        meta_tool: fields.or_default("metaTool", json::boolean)?,
        permissions: fields.optional("permissions", PermissionContext::from_json)?,
        workspace: fields.or_default("workspace", workspace)?,
        memory: fields.or_default("memory", memory)?,
        persistence: fields
            .optional("persistence", Persistence::from_json)?
            .unwrap_or(defaults.persistence),
        default_session_id: fields.optional("defaultSessionId", json::text)?,
        require_user_id: fields.or_default("requireUserId", json::boolean)?,
        subagents: fields.optional("subagents", |value| json::list(value, subagent))?,
        timeouts: fields.optional("timeouts", timeouts)?.unwrap_or(defaults.timeouts),
        retries: fields.optional("retries", retries)?.unwrap_or(defaults.retries),
        cache: fields.optional("cache", bounds)?.unwrap_or(defaults.cache),
        generate: fields
            .optional("generate", json::object)?
            .map_or(defaults.generate, Value::Object),
        compaction: fields.or_default("compaction", compaction)?,
        eviction: fields.or_default("toolResultEviction", eviction)?,
        name: defaults.name,
    })
}

/// `false` or a number of milliseconds.
fn checkpoint_rate(value: &Value) -> Read<CheckpointRate> {
    match value.as_bool() {
        Some(false) => Ok(CheckpointRate::Never),
        _ => json::count(value).map(CheckpointRate::EveryMs),
    }
}

/// Whether there are session tools, and which other agents' sessions they may read: `false`, `true` or an object.
fn session_tools(value: &Value) -> Read<(bool, Vec<String>)> {
    match value.as_bool() {
        Some(is_on) => Ok((is_on, Vec::new())),
        None => Ok((true, Fields::of(value)?.or_default("agents", json::texts)?)),
    }
}

/// `false`, `true` or an object.
fn compaction(value: &Value) -> Read<Compaction> {
    let defaults = Compaction { when: When::ByTrigger, ..Compaction::default() };
    if let Some(is_on) = value.as_bool() {
        let when = if is_on { When::ByTrigger } else { When::Never };
        return Ok(Compaction { when, ..defaults });
    }
    let fields = Fields::of(value)?;
    Ok(Compaction {
        trigger_messages: size(&fields, "triggerMessages", defaults.trigger_messages)?,
        trigger_tokens: fields.optional("triggerTokens", json::count)?,
        reserve: fields.optional("reserve", json::count)?.unwrap_or(defaults.reserve),
        keep_messages: size(&fields, "keepMessages", defaults.keep_messages)?,
        keep_tokens: fields.or_default("keepTokens", json::count)?,
        prompt: fields.optional("prompt", json::text)?,
        truncation: fields.or_default("truncateArgs", truncation)?,
        flush: fields.optional("flushBeforeCompact", json::boolean)?.unwrap_or(defaults.flush),
        offload: fields
            .optional("offloadBeforeCompact", json::boolean)?
            .unwrap_or(defaults.offload),
        when: defaults.when,
    })
}

fn truncation(value: &Value) -> Read<Option<Truncation>> {
    let defaults = Truncation::default();
    if let Some(is_on) = value.as_bool() {
        return Ok(is_on.then_some(defaults));
    }
    let fields = Fields::of(value)?;
    let max = fields.optional("maxArgLength", positive)?.map_or(defaults.max, |n| n as usize);
    Ok(Some(Truncation { max, text: fields.optional("truncationText", json::text)? }))
}

fn eviction(value: &Value) -> Read<Option<Eviction>> {
    let defaults = Eviction::default();
    if let Some(is_on) = value.as_bool() {
        return Ok(is_on.then_some(defaults));
    }
    let fields = Fields::of(value)?;
    Ok(Some(Eviction {
        max_chars: size(&fields, "maxChars", defaults.max_chars)?,
        preview_chars: size(&fields, "previewChars", defaults.preview_chars)?,
        exclude: fields.optional("exclude", json::texts)?,
        ..defaults
    }))
}

fn memory(value: &Value) -> Read<Option<Memory>> {
    let defaults = Memory::default();
    if let Some(is_on) = value.as_bool() {
        return Ok(is_on.then_some(defaults));
    }
    let fields = Fields::of(value)?;
    let most = fields.optional("maxInjectedTokens", positive)?;
    Ok(Some(Memory {
        max_tokens: most.unwrap_or(defaults.max_tokens),
        flush: fields.or_default("flush", flush)?,
    }))
}

fn flush(value: &Value) -> Read<Flush> {
    match value.as_str() {
        Some("always") => Ok(Flush::Always),
        Some("throttled") => Ok(Flush::Throttled),
        Some("never") => Ok(Flush::Never),
        _ => Err(Misread::new("always, throttled or never")),
    }
}

fn size(fields: &Fields<'_>, name: &str, default: usize) -> Read<usize> {
    Ok(fields.optional(name, json::count)?.map_or(default, |n| n as usize))
}

fn group(value: &Value) -> Read<ToolGroup> {
    let fields = Fields::of(value)?;
    Ok(ToolGroup {
        name: fields.required("name", json::text)?,
        description: fields.required("description", json::text)?,
        tools: fields.required("tools", json::texts)?,
        active: fields.optional("active", json::boolean)?.unwrap_or(true),
        scope: fields.optional("scope", scope)?.unwrap_or(Scope::Model),
    })
}

fn plan_mode(value: &Value) -> Read<Option<PlanMode>> {
    let mut extra_tools = Vec::new();
    let mut directory = None;
    if let Some(is_on) = value.as_bool() {
        if !is_on {
            return Ok(None);
        }
    } else {
        let fields = Fields::of(value)?;
        directory = fields.optional("directory", json::text)?;
        extra_tools = fields.or_default("extraTools", json::texts)?;
    }
    let directory = directory.as_deref().unwrap_or("plans").trim_matches('/');
    let file = [directory, if directory.is_empty() { "" } else { "/" }, "PLAN.md"].concat();
    Ok(Some(PlanMode { file, extra_tools }))
}

fn skill(value: &Value) -> Read<Skill> {
    let fields = Fields::of(value)?;
    Ok(Skill {
        name: fields.required("name", json::text)?,
        description: fields.required("description", json::text)?,
        content: fields.required("content", json::text)?,
        resources: fields.or_default("resources", texts_by_path)?,
        tool_groups: fields.or_default("toolGroups", json::texts)?,
    })
}

/// Reads texts by their paths.
fn texts_by_path(value: &Value) -> Read<Vec<(String, String)>> {
    let text = |(path, text): (String, Value)| Ok((path, json::text(&text)?));
    json::object(value)?.into_iter().map(text).collect()
}

/// Reads a subagent. Its model is found by the tag of its call.
fn subagent(value: &Value) -> Read<Subagent> {
    let fields = Fields::of(value)?;
    Ok(Subagent {
        name: fields.required("name", json::text)?,
        description: fields.required("description", json::text)?,
        system_prompt: fields.optional("systemPrompt", json::text)?,
        model: None,
        tools: fields.optional("tools", json::texts)?,
        max_iterations: fields.optional("maxIterations", positive)?.map(|n| n as u32),
        compaction: fields.optional("compaction", compaction)?,
    })
}

/// `false`, `true` or an object.
fn workspace(value: &Value) -> Read<Option<Workspace>> {
    let defaults = Workspace::default();
    if let Some(is_on) = value.as_bool() {
        return Ok(is_on.then_some(defaults));
    }
    let fields = Fields::of(value)?;
    let most = fields.optional("maxFileBytes", positive)?;
    Ok(Some(Workspace {
        templates: fields.or_default("templates", texts_by_path)?,
        read_only: fields.or_default("readOnly", json::texts)?,
        max_file_bytes: most.map_or(defaults.max_file_bytes, |n| n as usize),
    }))
}

fn scope(value: &Value) -> Read<Scope> {
    match value.as_str() {
        Some("model") => Ok(Scope::Model),
        Some("host") => Ok(Scope::Host),
        _ => Err(Misread::new("model or host")),
    }
}

fn timeouts(value: &Value) -> Read<Timeouts> {
    let fields = Fields::of(value)?;
    let defaults = Timeouts::default();
    let model = fields.optional("model", positive)?;
    Ok(Timeouts {
        model: model.unwrap_or(defaults.model),
        idle: model.map_or(defaults.idle, |model| model.min(defaults.idle)),
        tool: fields.optional("tool", positive)?.unwrap_or(defaults.tool),
        hook: fields.optional("hook", positive)?.unwrap_or(defaults.hook),
        store: fields.optional("store", positive)?.unwrap_or(defaults.store),
        lock: fields.optional("lock", positive)?.unwrap_or(defaults.lock),
        call: fields.optional("call", positive)?,
    })
}

fn retries(value: &Value) -> Read<Retries> {
    let fields = Fields::of(value)?;
    let defaults = Retries::default();
    Ok(Retries {
        attempts: fields.optional("attempts", positive)?.map_or(defaults.attempts, |n| n as u32),
        initial_ms: fields.optional("initialMs", json::count)?.unwrap_or(defaults.initial_ms),
        max_ms: fields.optional("maxMs", json::count)?.unwrap_or(defaults.max_ms),
    })
}

fn bounds(value: &Value) -> Read<Bounds> {
    let fields = Fields::of(value)?;
    let defaults = Bounds::default();
    Ok(Bounds {
        sessions: size(&fields, "sessions", defaults.sessions)?,
        bytes: size(&fields, "bytes", defaults.bytes)?,
    })
}

fn shared(value: &Value) -> Read<Shared> {
    match value.as_str() {
        Some("process") => Ok(Shared::Process),
        Some("origin") => Ok(Shared::Origin),
        Some("host") => Ok(Shared::Host),
        Some("cluster") => Ok(Shared::Cluster),
        _ => Err(Misread::new("process, origin, host or cluster")),
    }
}

/// What a call does if its session is busy.
pub(crate) fn overlap(value: &Value) -> Read<Overlap> {
    match value.as_str() {
        Some("queue") => Ok(Overlap::Queue),
        Some("reject") => Ok(Overlap::Reject),
        Some("interrupt") => Ok(Overlap::Interrupt),
        Some("steer") => Ok(Overlap::Steer),
        _ => Err(Misread::new("queue, reject, interrupt or steer")),
    }
}

fn on_conflict(value: &Value) -> Read<OnConflict> {
    match value.as_str() {
        Some("rebase") => Ok(OnConflict::Rebase),
        Some("fail") => Ok(OnConflict::Fail),
        Some("overwrite") => Ok(OnConflict::Overwrite),
        _ => Err(Misread::new("rebase, fail or overwrite")),
    }
}

fn durability(value: &Value) -> Read<Durability> {
    match value.as_str() {
        Some("exit") => Ok(Durability::Exit),
        Some("step") => Ok(Durability::Step),
        _ => Err(Misread::new("exit or step")),
    }
}

/// A whole number of at least 1.
fn positive(value: &Value) -> Read<u64> {
    json::count(value)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Misread::new("a whole number from 1 on"))
}
