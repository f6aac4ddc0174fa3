//! Running tools: side by side where they may, within their deadline, and whatever goes wrong is a result.

use serde_json::Value;

use crate::engine::Inner;
use crate::engine::hooks::Verdict;
use crate::engine::permit::denied;
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, Local, join_all, race, rarely};
use crate::message::{Block, ResultState, ToolResult, ToolUse};
use crate::mutants;
use crate::policy::redact::without_keys;
use crate::port::ToolRun;
use crate::run::STOPPED_CALL;
use crate::slot::Slot;
use crate::tool::Entry;

/// What came of running tools.
#[derive(Default)]
pub(super) struct Worked {
    /// The results, in the order of the calls.
    pub(super) results: Vec<ToolResult>,
    /// Whether somebody stopped the call.
    pub(super) stopped: bool,
    /// The hook that failed.
    pub(super) failed: Option<Error>,
}

impl Turn<'_> {
    /// Runs tools: neighbours that may run side by side do so, results are in the order of the calls.
    pub(super) async fn run_tools(&self, calls: &[ToolUse]) -> Worked {
        let mut worked = Worked::default();
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let is_parallel = |call: &&ToolUse| {
                self.agent.tools.find(&call.name).is_none_or(|entry| entry.tool.spec().parallel)
            };
            let n_together = rest.iter().take_while(is_parallel).count().max(1);
            let (together, later) =
                rest.split_at_checked(n_together).unwrap_or((std::slice::from_ref(first), &[]));
            let running = together.iter().map(|call| Box::pin(self.run_tool(call)) as Local<'_, _>);
            for outcome in join_all(running.collect()).await {
                match outcome {
                    Ok(result) => worked.results.extend(result),
                    Err(error) => worked.failed = worked.failed.or(Some(error)),
                }
            }
            rest = later;
            worked.stopped = self.cancel.cause().is_some();
            if worked.stopped || worked.failed.is_some() {
                break;
            }
        }
        worked
    }

    /// Runs one tool; `None` if the call was stopped meanwhile. Only a hook can fail here.
    async fn run_tool(&self, call: &ToolUse) -> Result<Option<ToolResult>> {
        let (tool_call_id, name) = (call.id.clone(), call.name.clone());
        self.outbox
            .push(Event::ToolStart { tool_call_id: tool_call_id.clone(), name: name.clone() });
        let running = Running::new(self.agent, (self.slot.clone(), name.clone()));
        let outcome = match race(self.cancel.asked(), self.execute_hooked(call)).await {
            Either::First(()) => Ok(None),
            Either::Second(result) => result.map(Some),
        };
        drop(running);
        let (state, output) = match &outcome {
            Ok(Some(result)) => (result.state, result.output.clone()),
            Ok(None) | Err(_) => (ResultState::Interrupted, vec![Block::text(STOPPED_CALL)]),
        };
        self.outbox.push(Event::ToolEnd { tool_call_id, name, state, output });
        outcome
    }

    /// Runs a tool between its hooks, where there are any.
    async fn execute_hooked(&self, call: &ToolUse) -> Result<ToolResult> {
        match self.is_hooked() {
            true => rarely(self.execute_between(call)).await,
            false => Ok(self.execute(call).await),
        }
    }

    async fn execute_between(&self, call: &ToolUse) -> Result<ToolResult> {
        let result = match self.hook_tool(&call.name, &call.id, call.input.clone()).await? {
            Verdict::Stop(why) => ToolResult::new(call, ResultState::Denied, why),
            Verdict::GoOn(input) if input == call.input => self.execute(call).await,
            Verdict::GoOn(input) => {
                let call = ToolUse { input, ..call.clone() };
                match self.objection(&call).await {
                    Some(denied) => denied,
                    None => self.execute(&call).await,
                }
            }
        };
        if result.state == ResultState::Suspended {
            return Ok(result);
        }
        self.hook_result(result).await
    }

    /// Whatever goes wrong in a tool is a result that the model can read.
    async fn execute(&self, call: &ToolUse) -> ToolResult {
        let entry = match self.known_tool(&call.name) {
            Ok(entry) => entry,
            Err(why) => return ToolResult::new(call, ResultState::Error, why),
        };
        let tool = &entry.tool;
        // Also here: a tool of the same answer may have switched plan mode on.
        if let Some(why) = self.agent.barred(self.slot, &self.live.facts.borrow(), tool.spec()) {
            return denied(call, &why);
        }
        let input = match entry.check(&call.input) {
            Ok(input) => input,
            Err(problems) => return ToolResult::new(call, ResultState::Error, problems),
        };
        if tool.spec().external {
            return ToolResult::new(call, ResultState::Suspended, "");
        }
        let ms = tool.spec().timeout_ms.unwrap_or(self.agent.options.timeouts.tool);
        let running = tool.call(self.tool_run(call, &input));
        let mut done = within(ms, running, self.agent.host.sleep(ms)).await;
        if done.is_err() && mutants::is("tool-again") {
            done = tool.call(self.tool_run(call, &input)).await;
        }
        self.live.take_news().into_iter().for_each(|event| self.outbox.push(event));
        if let Some(why) = self.live.take_suspended(&call.id) {
            return ToolResult::new(call, ResultState::Suspended, why);
        }
        match done {
            Ok(output) => ToolResult { output, ..ToolResult::new(call, ResultState::Success, "") },
            // What libraries throw may quote a key.
            Err(error) => ToolResult::new(call, ResultState::Error, without_keys(error.message())),
        }
    }

    /// A tool that this session has on, or what the model is told instead.
    pub(super) fn known_tool(&self, name: &str) -> Result<&Entry, String> {
        let tools = &self.agent.tools;
        let visible = self.visible_tools();
        let known = visible.iter().any(|spec| spec.name == name);
        tools.find(name).filter(|_| known).ok_or_else(|| {
            let names: Vec<_> = visible.iter().map(|spec| spec.name.as_str()).collect();
            let off = if tools.find(name).is_some() {
                "is not on in this session"
            } else {
                "does not exist"
            };
            format!("The tool \"{name}\" {off}. The tools are: {}.", names.join(", "))
        })
    }

    /// One run of a tool, or a look at what it would be given.
    pub(super) fn tool_run<'a>(&'a self, call: &'a ToolUse, input: &'a Value) -> ToolRun<'a> {
        ToolRun {
            slot: self.slot,
            tag: self.tag,
            attributes: self.attributes,
            tool_call_id: &call.id,
            input,
            desk: self.live,
        }
    }
}

/// A tool that runs, told to those who wait behind it; also a call that is dropped takes it back.
struct Running<'a>(&'a Inner, (Slot, String));

impl<'a> Running<'a> {
    fn new(agent: &'a Inner, tool: (Slot, String)) -> Running<'a> {
        agent.running_tools.borrow_mut().push(tool.clone());
        Running(agent, tool)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut tools = self.0.running_tools.borrow_mut();
        if let Some(index) = tools.iter().position(|tool| *tool == self.1) {
            tools.swap_remove(index);
        }
    }
}

/// What a tool answers within its deadline.
pub(super) async fn within<T>(
    ms: u64,
    work: Local<'_, Result<T>>,
    limit: Local<'_, ()>,
) -> Result<T> {
    match race(work, limit).await {
        Either::First(done) => done,
        Either::Second(()) => Err(Error::new(
            ErrorKind::Timeout,
            format!("The tool did not finish within {ms} ms and was stopped."),
        )),
    }
}
