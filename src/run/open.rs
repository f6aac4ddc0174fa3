//! Tool calls without a result: which they are, what answers them, and how an input that ignores them closes them.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Ask, AskKind, Reason};
use crate::json::{self, Fields, Misread, Read};
use crate::message::{Block, CallState, Message, ResultState, Role, ToolResult, ToolUse};
use crate::state::Rule;

const PASSED_OVER: &str = "No result was handed in: the user went on with something else.";
const UNANSWERED: &str =
    "This call was not allowed, and did not run: the user said something else instead.";
const NOT_RUN: &str = "This call did not run: the user was still asked about others.";
const REFUSED: &str = "The user refused to hand in a result.";
const DENIED: &str = "The user did not allow this call";
const UNASKED: &str =
    "This call did not run: the session was cut off before the user had answered.";
const UNKNOWN: &str = "It is not known what became of this call: it was cut off. It may have run. \
                       Find out before you call it again.";

/// The calls of the last answer that have no result.
pub fn open_calls(context: &[Rc<Message>]) -> Vec<&ToolUse> {
    let Some(index) = context.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let after = context.get(index..).unwrap_or_default();
    let answered = |call: &ToolUse| after.iter().any(|message| answers(message, &call.id));
    let calls = after.first().into_iter().flat_map(|message| message.tool_uses());
    calls.filter(|call| !answered(call)).collect()
}

/// What waits for an answer, as it is asked.
pub fn asks(context: &[Rc<Message>]) -> Vec<Ask> {
    let ask = |call: &ToolUse| Ask {
        kind: if call.state == CallState::Asking { AskKind::Approval } else { AskKind::Result },
        tool_call_id: call.id.clone(),
        name: call.name.clone(),
        input: call.input.clone(),
        reason: call.awaits.clone().unwrap_or_default(),
        suggested_rules: call
            .asked
            .as_ref()
            .and_then(|it| rules(it, "rules").ok())
            .unwrap_or_default(),
    };
    open_calls(context).into_iter().filter(|call| is_asked(call)).map(ask).collect()
}

/// The results that a plain input gives to the calls it finds open.
pub fn passed_over(context: &[Rc<Message>]) -> Vec<ToolResult> {
    let close = |call: &ToolUse| match call.state {
        CallState::Asking => ToolResult::new(call, ResultState::Denied, UNANSWERED),
        CallState::Allowed => ToolResult::new(call, ResultState::Interrupted, NOT_RUN),
        _ => ToolResult::new(call, ResultState::Interrupted, PASSED_OVER),
    };
    open_calls(context).into_iter().map(close).collect()
}

/// The results of calls that were cut off: those that were handed in, and for the rest that nobody knows. What was
/// approved may have run: an approval is spent before its tool runs.
pub fn cut_off(context: &[Rc<Message>], answers: &[Value]) -> Vec<ToolResult> {
    let read: Vec<Answer> = answers.iter().filter_map(|it| Answer::from_json(it).ok()).collect();
    let close = |call: &ToolUse| {
        let answer = read.iter().find(|answer| answer.tool_call_id == call.id);
        let unanswered = if call.state == CallState::Asking { UNASKED } else { UNKNOWN };
        let text = if answer.is_some() { UNKNOWN } else { unanswered };
        let said = answer.and_then(|answer| answer.result(call));
        said.unwrap_or_else(|| ToolResult::new(call, ResultState::Interrupted, text))
    };
    open_calls(context).into_iter().map(close).collect()
}

/// What answers say to open calls.
#[derive(Default)]
pub struct Answered {
    /// Results, in the order of the calls.
    pub results: Vec<ToolResult>,
    /// Calls that may run, with what they are to be given, in their order.
    pub approved: Vec<ToolUse>,
    /// Calls that nobody was asked about, and that may run now that nobody is asked about any other.
    pub waiting: Vec<ToolUse>,
    /// Why the conversation cannot go on yet: others are still open.
    pub leaves: Option<Reason>,
}

/// What answers say to open calls; a subset is enough.
pub fn answered(context: &[Rc<Message>], answers: &[Value]) -> Result<Answered> {
    let mut read = Vec::new();
    for answer in answers {
        read.push(Answer::from_json(answer).map_err(misread)?);
    }
    let open = open_calls(context);
    let is_open = |id: &str| open.iter().any(|call| call.id == id && is_asked(call));
    for (index, answer) in read.iter().enumerate() {
        let id = &answer.tool_call_id;
        let again = read.iter().skip(index + 1).any(|other| other.tool_call_id == *id);
        if again || !is_open(id) {
            let why = if again { "is answered twice" } else { "waits for no answer" };
            return Err(not_asking(&format!("the tool call \"{id}\" {why}")));
        }
    }
    let mut answered = Answered::default();
    for call in open {
        let Some(answer) = read.iter().find(|answer| answer.tool_call_id == call.id) else {
            match call.state {
                CallState::Allowed => answered.waiting.push(call.clone()),
                CallState::Asking => answered.leaves = Some(Reason::Asking),
                _ => answered.leaves = answered.leaves.or(Some(Reason::Suspended)),
            }
            continue;
        };
        answer.check(call).map_err(misread)?;
        match answer.result(call) {
            Some(result) => answered.results.push(result),
            None => answered.approved.push(answer.approved(call)),
        }
    }
    if answered.leaves == Some(Reason::Asking) {
        answered.waiting.clear();
    }
    Ok(answered)
}

/// The rules that answers ask to keep; answers that cannot be read have none.
pub fn remembered(answers: &[Value]) -> Vec<Rule> {
    answers.iter().filter_map(|it| rules(it, "remember").ok()).flatten().collect()
}

/// Whether an answer is about this call.
pub fn is_about(answer: &Value, ask: &Ask) -> bool {
    answer.get("toolCallId").and_then(Value::as_str) == Some(&ask.tool_call_id)
}

/// Nobody has asked for what was answered.
pub fn not_asking(message: &str) -> Error {
    Error::new(ErrorKind::NotAsking, message).hint("asks(slot) tells what waits for an answer")
}

/// Whether somebody outside is asked: one that only waits for its neighbours is not.
fn is_asked(call: &ToolUse) -> bool {
    call.state != CallState::Allowed
}

/// What somebody says to an open call.
struct Answer {
    tool_call_id: String,
    said: Said,
    remember: Vec<Rule>,
}

enum Said {
    /// The result itself.
    Output(Vec<Block>, ResultState),
    /// That it may run, perhaps with something else.
    Yes(Option<Value>),
    /// That it may not run, and why.
    No(Option<String>),
}

impl Answer {
    fn from_json(value: &Value) -> Read<Answer> {
        let fields = Fields::of(value)?;
        let output = value.as_object().and_then(|members| members.get("output"));
        let said = match output {
            Some(output) => {
                let failed = fields.or_default("failed", json::boolean)?;
                let state = if failed { ResultState::Error } else { ResultState::Success };
                Said::Output(Block::output(output), state)
            }
            None if fields.required("approve", json::boolean)? => {
                Said::Yes(fields.optional("input", json::any)?)
            }
            None => Said::No(fields.optional("reason", json::text)?),
        };
        let tool_call_id = fields.required("toolCallId", json::text)?;
        Ok(Answer { tool_call_id, said, remember: rules(value, "remember")? })
    }

    /// Whether it is an answer to what was asked.
    fn check(&self, call: &ToolUse) -> Read<()> {
        let is_approval = call.state == CallState::Asking;
        match &self.said {
            Said::Yes(_) if !is_approval => {
                return Err(Misread::new("an output: this call waits for its result"));
            }
            Said::Output(..) if is_approval => {
                return Err(Misread::new("approve: this call waits for a yes or a no"));
            }
            _ => {}
        }
        // Whoever may answer one question may not write rules about everything.
        match self.remember.iter().any(|rule| rule.tool_name != call.name) {
            true => Err(Misread::new("rules to remember that are about the tool that was asked")),
            false => Ok(()),
        }
    }

    /// The result that it gives to a call, unless it lets it run.
    fn result(&self, call: &ToolUse) -> Option<ToolResult> {
        let denied = |text| ToolResult::new(call, ResultState::Denied, text);
        match &self.said {
            Said::Output(output, state) => {
                Some(ToolResult { output: output.clone(), ..ToolResult::new(call, *state, "") })
            }
            Said::Yes(_) => None,
            Said::No(why) if call.state == CallState::Asking => Some(denied(match why {
                Some(why) => format!("{DENIED}: {why}"),
                None => format!("{DENIED}."),
            })),
            Said::No(why) => Some(denied(why.clone().unwrap_or_else(|| REFUSED.to_owned()))),
        }
    }

    /// The call as it may run.
    fn approved(&self, call: &ToolUse) -> ToolUse {
        match &self.said {
            Said::Yes(Some(input)) => ToolUse { input: input.clone(), ..call.clone() },
            _ => call.clone(),
        }
    }
}

fn rules(value: &Value, name: &str) -> Read<Vec<Rule>> {
    Fields::of(value)?.or_default(name, |value| json::list(value, Rule::from_json))
}

fn misread(misread: Misread) -> Error {
    let hint = "answer an approval with { toolCallId, approve }, and a call that waits for its result with { toolCallId, output }";
    misread.into_error(ErrorKind::InputInvalid, "an answer").hint(hint)
}

fn answers(message: &Message, id: &str) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult(it) if it.id == id))
}
