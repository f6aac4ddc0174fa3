//! Permission for tool calls: asked for before any of a batch runs, and given by a person where rules cannot.
//!
//! An approval lives only in the call that brings it: nothing that is stored ever lets a tool run. What binds it to its
//! question is stored, and compared when it comes.

use serde_json::json;

use crate::engine::Inner;
use crate::engine::turn::Turn;
use crate::engine::work::within;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, race};
use crate::json;
use crate::message::{CallState, ResultState, ToolResult, ToolUse};
use crate::policy::permission::{Policy, Ruling};
use crate::policy::redact::without_keys;
use crate::port::Opinion;
use crate::run::open::not_asking;
use crate::state::{Behavior, Rule};
use crate::store::entry::Later;
use crate::store::id;

/// How long a question may wait for a yes.
const LONGEST_WAIT_MS: f64 = 24.0 * 60.0 * 60.0 * 1_000.0;

/// What becomes of a batch of calls.
#[derive(Default)]
pub(super) struct Permits {
    /// Those that run now.
    pub(super) runs: Vec<ToolUse>,
    /// What the others have instead of a result.
    pub(super) denied: Vec<ToolResult>,
    /// How far the rest is: a person is asked about them, or about their neighbours.
    pub(super) paused: Vec<Later>,
    /// Somebody stopped the call meanwhile.
    pub(super) stopped: bool,
}

impl Turn<'_> {
    /// Decides about a batch. If a person must be asked about one of its calls, none of them runs but what a person has
    /// approved in this very call.
    pub(super) async fn permit(&self, calls: &[ToolUse]) -> Permits {
        let approved = self.approved.take();
        let mut permits = Permits::default();
        let mut asks = Vec::new();
        for call in calls {
            let state =
                if approved.contains(&call.id) { CallState::Allowed } else { CallState::Pending };
            let call = ToolUse { state, ..call.clone() };
            match race(self.cancel.asked(), Box::pin(self.ruling(&call))).await {
                Either::First(()) => return Permits { stopped: true, ..permits },
                Either::Second(Ruling::Deny(why)) => permits.denied.push(denied(&call, &why)),
                Either::Second(Ruling::Ask { why, settles }) if state == CallState::Pending => {
                    asks.push(self.question(&call, why, settles));
                }
                Either::Second(_) => permits.runs.push(call),
            }
        }
        if !asks.is_empty() {
            let waits = |call: &mut ToolUse| call.state == CallState::Pending;
            for call in permits.runs.extract_if(.., waits) {
                permits.paused.push(Later::new(&call.id, CallState::Allowed));
            }
            permits.paused.append(&mut asks);
        }
        permits.denied.iter().for_each(|result| self.tell(result));
        permits
    }

    /// Why a call that a hook has changed may not run, if it may not.
    pub(super) async fn objection(&self, call: &ToolUse) -> Option<ToolResult> {
        match self.ruling(call).await {
            Ruling::Deny(why) => Some(denied(call, &why)),
            Ruling::Ask { why, .. } if call.state != CallState::Allowed => {
                Some(denied(call, &format!("middleware has changed it, and {why}")))
            }
            Ruling::Ask { .. } | Ruling::Allow => None,
        }
    }

    /// What becomes of a call. One that cannot run is not asked about: its result says what is wrong with it.
    async fn ruling(&self, call: &ToolUse) -> Ruling {
        let Ok(entry) = self.known_tool(&call.name) else { return Ruling::Allow };
        let Ok(input) = entry.check(&call.input) else { return Ruling::Allow };
        let spec = entry.tool.spec();
        let stored = self.live.facts.borrow().permission_context.clone();
        let policy = Policy::of(&spec.name, self.agent.options.permissions.as_ref(), &stored);
        let barred = self.agent.barred(self.slot, &self.live.facts.borrow(), spec);
        if barred.is_some() {
            return policy.rule(spec.effect, &Opinion::default(), barred.as_deref());
        }
        let contents = policy.contents();
        let ms = spec.timeout_ms.unwrap_or(self.agent.options.timeouts.tool);
        let checking = entry.tool.check(self.tool_run(call, &input), &contents);
        match within(ms, checking, self.agent.host.sleep(ms)).await {
            Ok(opinion) => policy.rule(spec.effect, &opinion, None),
            Err(error) => {
                let why = without_keys(error.message());
                Ruling::Deny(format!("whether it may run could not be found out ({why})"))
            }
        }
    }

    /// What a person is asked, as it is kept with the call.
    fn question(&self, call: &ToolUse, why: String, settles: bool) -> Later {
        let rule = Rule {
            tool_name: call.name.clone(),
            rule_content: None,
            behavior: Behavior::Allow,
            source: "suggested".to_owned(),
            rest: json::Object::new(),
        };
        let rules: Vec<Rule> = settles.then_some(rule).into_iter().collect();
        let digest = self.agent.digest(call);
        let asked = json!({ "digest": digest, "at": self.agent.host.now_ms(), "rules": rules });
        let (awaits, asked) = (Some(why), Some(asked));
        Later { awaits, asked, ..Later::new(&call.id, CallState::Asking) }
    }
}

impl Inner {
    /// Refuses a yes to something else than what was asked: another tool by now, another input, or too long ago. What
    /// the person has changed must be what the tool takes.
    pub(super) fn check_approval(&self, asked: &ToolUse, call: &ToolUse) -> Result<()> {
        let refused = |why: &str| Err(not_asking(&format!("the tool call \"{}\" {why}", call.id)));
        let question = asked.asked.as_ref();
        let said = |name| question.and_then(|question| question.get(name));
        if said("digest").is_some_and(|digest| *digest != self.digest(asked)) {
            return refused("is not what was asked about: the tool or its input has changed");
        }
        let at = said("at").and_then(serde_json::Value::as_f64);
        if at.is_some_and(|at| self.host.now_ms() - at > LONGEST_WAIT_MS) {
            return refused("was asked about too long ago: it can only be denied");
        }
        let Some(entry) = self.tools.find(&call.name) else {
            return refused("is of a tool that is not there any more");
        };
        entry.check(&call.input).map(|_| ()).map_err(|problems| {
            Error::new(
                ErrorKind::InputInvalid,
                format!("the answer to \"{}\": {problems}", call.id),
            )
            .hint("nothing was answered; give an input that the tool takes")
        })
    }

    /// Tells a call of a tool, as it is defined, from every other.
    fn digest(&self, call: &ToolUse) -> String {
        let spec = self.tools.find(&call.name).map(|entry| entry.tool.spec());
        let presets = spec.map(|spec| &spec.presets);
        let all = ("lockgate.ask.1", &call.id, &call.name, &call.input, spec, presets);
        id::digest(&json::to_bytes(&all))
    }
}

/// What a call has for a result that may not run.
pub(super) fn denied(call: &ToolUse, why: &str) -> ToolResult {
    ToolResult::new(call, ResultState::Denied, format!("This call was not allowed: {why}."))
}
