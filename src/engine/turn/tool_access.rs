//! The tools that a call may use: which tools are active, and how a tool is called.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::scope::CallScope;
use crate::engine::instructions::Instructions;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::message::{ResultState, ToolResult, ToolUse};
use crate::policy::plan;
use crate::port::{ToolRun, ToolSpec};
use crate::store::format::task::is_child;
use crate::tool::{RegisteredTool, Registry};

/// The tools that a call may use.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ToolAccess<'a> {
    scope: &'a CallScope<'a>,
    registry: &'a Registry,
    instructions: &'a Instructions<'a>,
}

impl<'a> ToolAccess<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        registry: &'a Registry,
        instructions: &'a Instructions<'a>,
    ) -> ToolAccess<'a> {
        ToolAccess { scope, registry, instructions }
    }

    /// All tools of the agent.
    pub(in crate::engine) fn registry(self) -> &'a Registry {
        self.registry
    }

    /// The tools that the model sees.
    pub(in crate::engine) fn visible(self) -> Vec<Rc<ToolSpec>> {
        self.scope.live.with_facts(|facts| self.instructions.tools(facts))
    }

    /// An active tool of the session. The error is a text for the model.
    pub(in crate::engine) fn find(self, name: &str) -> Result<&'a RegisteredTool, String> {
        let visible = self.visible();
        let is_on = visible.iter().any(|spec| spec.name == name);
        let found = self.registry.find(name);
        found.filter(|_| is_on).ok_or_else(|| {
            let names: Vec<_> = visible.iter().map(|spec| spec.name.as_str()).collect();
            let off = if found.is_some() { "is not on in this session" } else { "does not exist" };
            format!("The tool \"{name}\" {off}. The tools are: {}.", names.join(", "))
        })
    }

    /// Why plan mode forbids a tool, regardless of the rules; `None` if the tool may run.
    pub(in crate::engine) fn barred(self, tool: &ToolSpec) -> Option<String> {
        let plan_mode = self.scope.options.plan_mode.as_ref();
        let extra = plan_mode.map_or(&[][..], |mode| &mode.extra_tools);
        let is_child = is_child(self.scope.slot.session());
        self.scope
            .live
            .with_facts(|facts| plan::bars(&facts.plan_mode_context, tool, extra, is_child))
    }

    /// The arguments for a run of a tool, or for its check of an input.
    pub(in crate::engine) fn run_args<'b>(self, call: &'b ToolUse, input: &'b Value) -> ToolRun<'b>
    where
        'a: 'b,
    {
        let CallScope { slot, tag, attributes, live, .. } = *self.scope;
        ToolRun { slot, tag, attributes, tool_call_id: &call.id, input, desk: live }
    }

    /// Waits for a tool, at most until the timeout of the tool.
    pub(in crate::engine) async fn in_time<T>(
        self,
        tool: &ToolSpec,
        work: Local<'_, Result<T>>,
    ) -> Result<T> {
        let ms = tool.timeout_ms.unwrap_or(self.scope.options.timeouts.tool);
        match race(work, self.scope.host.sleep(ms)).await {
            Either::First(done) => done,
            Either::Second(()) => Err(Error::new(
                ErrorKind::Timeout,
                format!("The tool did not finish within {ms} ms and was stopped."),
            )),
        }
    }
}

/// The result of a call that may not run.
pub(in crate::engine) fn denied(call: &ToolUse, why: &str) -> ToolResult {
    ToolResult::new(call, ResultState::Denied, format!("This call was not allowed: {why}."))
}
