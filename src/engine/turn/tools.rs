//! Runs tools, in parallel if possible, each with its timeout. Every failure of a tool becomes a result.

use crate::engine::call::running::RunningCalls;
use crate::engine::call::scope::CallScope;
use crate::engine::turn::hooks::{Hooks, Verdict};
use crate::engine::turn::permission::Permissions;
use crate::engine::turn::tool_access::{ToolAccess, denied};
use crate::error::Error;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, Local, join_all, race, rarely};
use crate::message::{Block, MAX_TOOL_TEXT, ResultState, ToolResult, ToolUse, shortened};
use crate::policy::redact::without_keys;
use crate::run::STOPPED_CALL;
use crate::seams;

/// The results of the tools of an answer.
#[derive(Default)]
pub(in crate::engine) struct ToolResults {
    /// The results, in the order of the calls.
    pub(in crate::engine) results: Vec<ToolResult>,
    /// Whether the turn was stopped meanwhile.
    pub(in crate::engine) stopped: bool,
    /// The error of a hook that failed.
    pub(in crate::engine) failed: Option<Error>,
}

/// Runs the tools of one call.
pub(in crate::engine) struct ToolRunner<'a> {
    scope: &'a CallScope<'a>,
    tools: ToolAccess<'a>,
    permissions: &'a Permissions<'a>,
    hooks: Hooks<'a>,
    running: &'a RunningCalls,
}

impl<'a> ToolRunner<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        tools: ToolAccess<'a>,
        permissions: &'a Permissions<'a>,
        hooks: Hooks<'a>,
        running: &'a RunningCalls,
    ) -> ToolRunner<'a> {
        ToolRunner { scope, tools, permissions, hooks, running }
    }

    /// Runs tools. Consecutive calls of parallel tools run at the same time; the results are in the order of the calls.
    pub(in crate::engine) async fn run(&self, calls: &[ToolUse]) -> ToolResults {
        let mut ran = ToolResults::default();
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let is_parallel = |call: &&ToolUse| {
                let entry = self.tools.registry().find(&call.name);
                entry.is_none_or(|entry| entry.tool.spec().parallel)
            };
            let n_together = rest.iter().take_while(is_parallel).count().max(1);
            let (together, later) =
                rest.split_at_checked(n_together).unwrap_or((std::slice::from_ref(first), &[]));
            let running = together.iter().map(|call| Box::pin(self.run_one(call)) as Local<'_, _>);
            for outcome in join_all(running.collect()).await {
                match outcome {
                    Ok(result) => ran.results.extend(result),
                    Err(error) => ran.failed = ran.failed.or(Some(error)),
                }
            }
            rest = later;
            ran.stopped = self.scope.is_stopped();
            if ran.stopped || ran.failed.is_some() {
                break;
            }
        }
        ran
    }

    /// Runs one tool; `None` if the turn was stopped meanwhile. Only a hook can fail here.
    async fn run_one(&self, call: &ToolUse) -> Result<Option<ToolResult>> {
        let (tool_call_id, name) = (call.id.clone(), call.name.clone());
        self.scope
            .emit(Event::ToolStart { tool_call_id: tool_call_id.clone(), name: name.clone() });
        let running = self.running.tool_runs(self.scope.slot, &name);
        let outcome = match race(self.scope.cancel.asked(), self.run_hooked(call)).await {
            Either::First(()) => Ok(None),
            Either::Second(result) => result.map(Some),
        };
        drop(running);
        let (state, output) = match &outcome {
            Ok(Some(result)) => (result.state, result.output.clone()),
            Ok(None) | Err(_) => (ResultState::Interrupted, vec![Block::text(STOPPED_CALL)]),
        };
        self.scope.emit(Event::ToolEnd { tool_call_id, name, state, output });
        outcome
    }

    async fn run_hooked(&self, call: &ToolUse) -> Result<ToolResult> {
        match self.hooks.is_empty() {
            true => Ok(self.execute(call).await),
            false => rarely(self.run_between_hooks(call)).await,
        }
    }

    async fn run_between_hooks(&self, call: &ToolUse) -> Result<ToolResult> {
        let input = call.input.clone();
        let result = match self.hooks.before_tool(&call.name, &call.id, input).await? {
            Verdict::Stop(why) => ToolResult::new(call, ResultState::Denied, why),
            Verdict::GoOn(input) if input == call.input => self.execute(call).await,
            Verdict::GoOn(input) => {
                let call = ToolUse { input, ..call.clone() };
                match self.permissions.objection(&call).await {
                    Some(denied) => denied,
                    None => self.execute(&call).await,
                }
            }
        };
        if result.state == ResultState::Suspended {
            return Ok(result);
        }
        self.hooks.after_tool(result).await
    }

    /// Runs a tool. Every failure becomes a result that the model can read.
    async fn execute(&self, call: &ToolUse) -> ToolResult {
        let entry = match self.tools.find(&call.name) {
            Ok(entry) => entry,
            Err(why) => return ToolResult::new(call, ResultState::Error, why),
        };
        let tool = &entry.tool;
        // Checked again here: a tool of the same answer may have switched plan mode on.
        if let Some(why) = self.tools.barred(tool.spec()) {
            return denied(call, &why);
        }
        let input = match entry.check(&call.input) {
            Ok(input) => input,
            Err(problems) => return ToolResult::new(call, ResultState::Error, problems),
        };
        if tool.spec().external {
            return ToolResult::new(call, ResultState::Suspended, "");
        }
        let running = seams::only_run(|| tool.call(self.tools.run_args(call, &input)));
        let done = self.tools.in_time(tool.spec(), running).await;
        let live = self.scope.live;
        live.take_news().into_iter().for_each(|event| self.scope.emit(event));
        if let Some(why) = live.take_suspended(&call.id) {
            return ToolResult::new(call, ResultState::Suspended, why);
        }
        match done {
            Ok(output) => ToolResult::of(call, ResultState::Success, output),
            // The error message of a library may contain an API key.
            Err(error) => {
                let message = shortened(error.message().to_owned(), MAX_TOOL_TEXT);
                ToolResult::new(call, ResultState::Error, without_keys(&message))
            }
        }
    }
}
