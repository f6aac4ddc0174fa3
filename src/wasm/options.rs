//! The options of an agent, as TypeScript hands them over: names and shapes are checked there, values here.

use serde_json::Value;

use crate::engine::{Bounds, Options, Overlap, Timeouts};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread, Read};
use crate::policy::retry::Retries;
use crate::port::{Capabilities, Shared, ToolSpec};
use crate::tool::group::{Scope, ToolGroup};

/// Reads the options, or says which of them is wrong.
pub(super) fn read(value: &Value) -> Result<Options> {
    options(value).map_err(wrong)
}

/// What a store says of itself.
pub(super) fn capabilities(value: &Value) -> Result<Capabilities> {
    let read = |value: &Value| -> Read<Capabilities> {
        let fields = Fields::of(value)?;
        Ok(Capabilities {
            atomic: fields.required("atomic", json::boolean)?,
            compare_and_set: fields.required("compareAndSet", json::boolean)?,
            shared: fields.required("shared", shared)?,
        })
    };
    read(value).map_err(|misread| {
        misread
            .into_error(ErrorKind::Options, "capabilities of the store")
            .hint("see StoreCapabilities in the package's types")
    })
}

/// What a model is told of a tool.
pub(super) fn tool_spec(value: &Value) -> Result<ToolSpec> {
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
    Ok(Options {
        system_prompt: fields.or_default("systemPrompt", json::text)?,
        max_iterations: fields
            .optional("maxIterations", positive)?
            .map_or(defaults.max_iterations, |n| n as u32),
        queue_limit: fields
            .optional("queueLimit", json::count)?
            .map_or(defaults.queue_limit, |n| n as usize),
        overlap: fields.optional("overlap", overlap)?.unwrap_or(defaults.overlap),
        tool_groups: fields.or_default("toolGroups", |value| json::list(value, group))?,
        meta_tool: fields.or_default("metaTool", json::boolean)?,
        default_session_id: fields.optional("defaultSessionId", json::text)?,
        require_user_id: fields.or_default("requireUserId", json::boolean)?,
        timeouts: fields.optional("timeouts", timeouts)?.unwrap_or(defaults.timeouts),
        retries: fields.optional("retries", retries)?.unwrap_or(defaults.retries),
        cache: fields.optional("cache", bounds)?.unwrap_or(defaults.cache),
        generate: fields
            .optional("generate", json::object)?
            .map_or(defaults.generate, Value::Object),
        name: defaults.name,
    })
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
        sessions: fields
            .optional("sessions", json::count)?
            .map_or(defaults.sessions, |n| n as usize),
        bytes: fields.optional("bytes", json::count)?.map_or(defaults.bytes, |n| n as usize),
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

/// What a call does that finds its session busy.
pub(super) fn overlap(value: &Value) -> Read<Overlap> {
    match value.as_str() {
        Some("queue") => Ok(Overlap::Queue),
        Some("reject") => Ok(Overlap::Reject),
        Some("interrupt") => Ok(Overlap::Interrupt),
        _ => Err(Misread::new("queue, reject or interrupt")),
    }
}

/// A whole number from 1 on.
fn positive(value: &Value) -> Read<u64> {
    json::count(value)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Misread::new("a whole number from 1 on"))
}
