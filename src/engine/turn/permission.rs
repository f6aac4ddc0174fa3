//! Permissions of tool calls. They are decided before any tool call of an answer runs. If the rules cannot decide, a
//! person is asked.
//!
//! An approval is valid only in the call that brings it. A stored approval never lets a tool run; a stored rule does.
//! The question is stored with a digest of the tool call, and an approval must match that digest.

use std::cell::RefCell;

use serde_json::json;

use crate::engine::call::scope::CallScope;
use crate::engine::turn::tool_access::{ToolAccess, denied};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, race};
use crate::json;
use crate::message::{CallState, ToolResult, ToolUse};
use crate::policy::permission::{Policy, Ruling};
use crate::policy::redact::without_keys;
use crate::port::{Host, Opinion};
use crate::run::open::not_asking;
use crate::state::{Behavior, Facts, Rule};
use crate::store::format::entry::CallUpdate;
use crate::store::id;
use crate::tool::Registry;

/// How long an approval is accepted after the question.
const MAX_WAIT_MS: f64 = 24.0 * 60.0 * 60.0 * 1_000.0;

/// The decisions about the tool calls of an answer.
#[derive(Default)]
pub(in crate::engine) struct Permits {
    /// The calls that run now.
    pub(in crate::engine) runs: Vec<ToolUse>,
    /// The results of calls that may not run.
    pub(in crate::engine) denied: Vec<ToolResult>,
    /// The updates of the calls that wait, because a person is asked about them or about another call of the same
    /// answer.
    pub(in crate::engine) paused: Vec<CallUpdate>,
    /// Whether the turn was stopped meanwhile.
    pub(in crate::engine) stopped: bool,
}

/// Decides which tool calls of one call may run.
pub(in crate::engine) struct Permissions<'a> {
    scope: &'a CallScope<'a>,
    tools: ToolAccess<'a>,
    /// The ids of the tool calls that a person has approved with this call, until they are decided about.
    approved: RefCell<Vec<String>>,
}

impl<'a> Permissions<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        tools: ToolAccess<'a>,
    ) -> Permissions<'a> {
        Permissions { scope, tools, approved: RefCell::default() }
    }

    /// Records the tool calls that a person has approved with this call.
    pub(in crate::engine) fn approve(&self, calls: &[ToolUse]) {
        self.approved.replace(calls.iter().map(|call| call.id.clone()).collect());
    }

    /// Decides about the tool calls of an answer. If a person must be asked about one of them, only those tool calls
    /// run that a person has approved with this call.
    pub(in crate::engine) async fn decide(&self, calls: &[ToolUse]) -> Permits {
        let approved = self.approved.take();
        let mut permits = Permits::default();
        let mut asks = Vec::new();
        for call in calls {
            let state =
                if approved.contains(&call.id) { CallState::Allowed } else { CallState::Pending };
            let call = ToolUse { state, ..call.clone() };
            match race(self.scope.cancel.asked(), Box::pin(self.ruling(&call))).await {
                Either::First(()) => return Permits { stopped: true, ..permits },
                Either::Second(Ruling::Deny(why)) => permits.denied.push(denied(&call, &why)),
                Either::Second(Ruling::Ask { why, rule_would_allow })
                    if state == CallState::Pending =>
                {
                    asks.push(self.question(&call, why, rule_would_allow));
                }
                Either::Second(_) => permits.runs.push(call),
            }
        }
        if !asks.is_empty() {
            let waits = |call: &mut ToolUse| call.state == CallState::Pending;
            for call in permits.runs.extract_if(.., waits) {
                permits.paused.push(CallUpdate::new(&call.id, CallState::Allowed));
            }
            permits.paused.append(&mut asks);
        }
        permits.denied.iter().for_each(|result| show_result(self.scope, result));
        permits
    }

    /// Decides again about a call whose input a hook has changed. Returns its result if it may not run; `None` if it
    /// may.
    pub(in crate::engine) async fn objection(&self, call: &ToolUse) -> Option<ToolResult> {
        match self.ruling(call).await {
            Ruling::Deny(why) => Some(denied(call, &why)),
            Ruling::Ask { why, .. } if call.state != CallState::Allowed => {
                Some(denied(call, &format!("middleware has changed it, and {why}")))
            }
            Ruling::Ask { .. } | Ruling::Allow => None,
        }
    }

    /// The decision of the rules about a call. A call of an unknown tool or with an invalid input is allowed here:
    /// running it gives a result that says what is wrong.
    async fn ruling(&self, call: &ToolUse) -> Ruling {
        let Ok(entry) = self.tools.find(&call.name) else { return Ruling::Allow };
        let Ok(input) = entry.check(&call.input) else { return Ruling::Allow };
        let spec = entry.tool.spec();
        let stored = self.scope.live.with_facts(|facts: &Facts| facts.permission_context.clone());
        let policy = Policy::of(&spec.name, self.scope.options.permissions.as_ref(), &stored);
        let barred = self.tools.barred(spec);
        if barred.is_some() {
            return policy.rule(spec.effect, &Opinion::default(), barred.as_deref());
        }
        let contents = policy.contents();
        let checking = entry.tool.check(self.tools.run_args(call, &input), &contents);
        match self.tools.in_time(spec, checking).await {
            Ok(opinion) => policy.rule(spec.effect, &opinion, None),
            Err(error) => {
                let why = without_keys(error.message());
                Ruling::Deny(format!("whether it may run could not be found out ({why})"))
            }
        }
    }

    /// The question to a person, in the form that is stored with the call.
    fn question(&self, call: &ToolUse, why: String, rule_would_allow: bool) -> CallUpdate {
        let rule = Rule {
            tool_name: call.name.clone(),
            rule_content: None,
            behavior: Behavior::Allow,
            source: "suggested".to_owned(),
            rest: json::Object::new(),
        };
        let rules: Vec<Rule> = rule_would_allow.then_some(rule).into_iter().collect();
        let digest = digest(self.tools.registry(), call);
        let asked = json!({ "digest": digest, "at": self.scope.host.now_ms(), "rules": rules });
        let (awaits, asked) = (Some(why), Some(asked));
        CallUpdate { awaits, asked, ..CallUpdate::new(&call.id, CallState::Asking) }
    }
}

/// Shows the result of a tool call that did not run now.
pub(in crate::engine) fn show_result(scope: &CallScope<'_>, result: &ToolResult) {
    let ToolResult { id, name, output, state, .. } = result.clone();
    let (tool_call_id, start) = (id.clone(), name.clone());
    scope.emit(Event::ToolStart { tool_call_id, name: start });
    scope.emit(Event::ToolEnd { tool_call_id: id, name, state, output });
}

/// Refuses an approval that does not fit its question: the tool or its input has changed, or the question is too old.
/// If a person has changed the input, it must match the tool's schema.
pub(in crate::engine) fn check_approval(
    tools: &Registry,
    host: &dyn Host,
    asked: &ToolUse,
    call: &ToolUse,
) -> Result<()> {
    let refused = |why: &str| Err(not_asking(&format!("the tool call \"{}\" {why}", call.id)));
    let question = asked.asked.as_ref();
    let said = |name| question.and_then(|question| question.get(name));
    if said("digest").is_some_and(|known| *known != digest(tools, asked)) {
        return refused("cannot be approved: the tool or its input has changed since the question");
    }
    let at = said("at").and_then(serde_json::Value::as_f64);
    if at.is_some_and(|at| host.now_ms() - at > MAX_WAIT_MS) {
        return refused("can only be denied: the question is too old");
    }
    let Some(entry) = tools.find(&call.name) else {
        return refused("cannot be approved: its tool does not exist any more");
    };
    entry.check(&call.input).map(|_| ()).map_err(|problems| {
        Error::new(ErrorKind::InputInvalid, format!("the answer to \"{}\": {problems}", call.id))
            .hint("no answer was stored; pass an input that matches the tool's schema")
    })
}

/// A hash of a tool call and of the current definition of its tool.
fn digest(tools: &Registry, call: &ToolUse) -> String {
    let spec = tools.find(&call.name).map(|entry| entry.tool.spec());
    let presets = spec.map(|spec| &spec.presets);
    let all = ("lockgate.ask.1", &call.id, &call.name, &call.input, spec, presets);
    id::digest(&json::to_bytes(&all))
}
