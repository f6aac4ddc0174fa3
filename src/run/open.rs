//! Open tool calls (without a result): how to find them, and how answers or a new input close them.

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

/// The tool calls of the last reply that have no result.
pub fn open_calls(context: &[Rc<Message>]) -> Vec<&ToolUse> {
    let Some(index) = context.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let after = context.get(index..).unwrap_or_default();
    let answered = |call: &ToolUse| after.iter().any(|message| answers(message, &call.id));
    let calls = after.first().into_iter().flat_map(|message| message.tool_uses());
    calls.filter(|call| !answered(call)).collect()
}

/// The questions that wait for an answer.
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

/// The results of the open tool calls if the user sends a new input instead of an answer.
pub fn passed_over(context: &[Rc<Message>]) -> Vec<ToolResult> {
    let close = |call: &ToolUse| match call.state {
        CallState::Asking => ToolResult::new(call, ResultState::Denied, UNANSWERED),
        CallState::Allowed => ToolResult::new(call, ResultState::Interrupted, NOT_RUN),
        _ => ToolResult::new(call, ResultState::Interrupted, PASSED_OVER),
    };
    open_calls(context).into_iter().map(close).collect()
}

/// The results of tool calls that were cut off: the results that were handed in, and "unknown" for the others. An
/// approved call may have run, because its approval is stored as used before the tool runs.
pub fn cut_off(context: &[Rc<Message>], answers: &[Value]) -> Vec<ToolResult> {
    let read: Vec<ConfirmAnswer> =
        answers.iter().filter_map(|it| ConfirmAnswer::from_json(it).ok()).collect();
    let close = |call: &ToolUse| {
        let answer = read.iter().find(|answer| answer.tool_call_id == call.id);
        let unanswered = if call.state == CallState::Asking { UNASKED } else { UNKNOWN };
        let text = if answer.is_some() { UNKNOWN } else { unanswered };
        let said = answer.and_then(|answer| answer.result(call));
        said.unwrap_or_else(|| ToolResult::new(call, ResultState::Interrupted, text))
    };
    open_calls(context).into_iter().map(close).collect()
}

/// The results of tool calls that were allowed and have no result, in a session that was imported: nobody knows whether they
/// ran elsewhere. The calls that wait for an answer stay open.
pub fn unfinished(context: &[Rc<Message>]) -> Vec<ToolResult> {
    let open = open_calls(context).into_iter().filter(|call| !is_asked(call));
    open.map(|call| ToolResult::new(call, ResultState::Interrupted, UNKNOWN)).collect()
}

/// What a list of answers means for the open tool calls.
#[derive(Default)]
pub struct Answered {
    /// Results, in the order of the tool calls.
    pub results: Vec<ToolResult>,
    /// Approved tool calls, with their inputs, in the order of the tool calls.
    pub approved: Vec<ToolUse>,
    /// Calls that needed no approval, and that may run at once because no other call waits for one.
    pub waiting: Vec<ToolUse>,
    /// Why the conversation cannot continue yet, if other calls are still open.
    pub leaves: Option<Reason>,
}

/// Applies answers to the open tool calls. Not every open call needs an answer.
pub fn answered(context: &[Rc<Message>], answers: &[Value]) -> Result<Answered> {
    let mut read = Vec::new();
    for answer in answers {
        read.push(ConfirmAnswer::from_json(answer).map_err(misread)?);
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

/// The rules that the answers ask to remember. Unreadable answers have none.
pub fn remembered(answers: &[Value]) -> Vec<Rule> {
    answers.iter().filter_map(|it| rules(it, "remember").ok()).flatten().collect()
}

/// Whether an answer is for this question.
pub fn is_about(answer: &Value, ask: &Ask) -> bool {
    answer.get("toolCallId").and_then(Value::as_str) == Some(&ask.tool_call_id)
}

/// The error for an answer to a tool call that waits for no answer.
pub fn not_asking(message: &str) -> Error {
    Error::new(ErrorKind::NotAsking, message)
        .hint("asks(slot) returns the questions that wait for an answer")
}

/// Whether the tool call waits for an answer from outside. An allowed call only waits for other calls of the same
/// reply.
fn is_asked(call: &ToolUse) -> bool {
    call.state != CallState::Allowed
}

/// One answer to an open tool call.
struct ConfirmAnswer {
    tool_call_id: String,
    said: AnswerKind,
    remember: Vec<Rule>,
}

enum AnswerKind {
    /// The result itself.
    Output(Vec<Block>, ResultState),
    /// Approved, with another input if there is one.
    Yes(Option<Value>),
    /// Refused, with the reason if there is one.
    No(Option<String>),
}

impl ConfirmAnswer {
    fn from_json(value: &Value) -> Read<ConfirmAnswer> {
        let fields = Fields::of(value)?;
        let output = value.as_object().and_then(|members| members.get("output"));
        let said = match output {
            Some(output) => {
                let failed = fields.or_default("failed", json::boolean)?;
                let state = if failed { ResultState::Error } else { ResultState::Success };
                AnswerKind::Output(Block::output(output), state)
            }
            None if fields.required("approve", json::boolean)? => {
                AnswerKind::Yes(fields.optional("input", json::any)?)
            }
            None => AnswerKind::No(fields.optional("reason", json::text)?),
        };
        let tool_call_id = fields.required("toolCallId", json::text)?;
        Ok(ConfirmAnswer { tool_call_id, said, remember: rules(value, "remember")? })
    }

    /// Checks that the answer fits the question.
    fn check(&self, call: &ToolUse) -> Read<()> {
        let is_approval = call.state == CallState::Asking;
        match &self.said {
            AnswerKind::Yes(_) if !is_approval => {
                return Err(Misread::new("an output: this call waits for its result"));
            }
            AnswerKind::Output(..) if is_approval => {
                return Err(Misread::new("approve: this call waits for a yes or a no"));
            }
            _ => {}
        }
        // An answer to a question about one tool must not add rules about other tools.
        match self.remember.iter().any(|rule| rule.tool_name != call.name) {
            true => Err(Misread::new("rules in remember to be about the tool of this call")),
            false => Ok(()),
        }
    }

    /// The result that the answer gives to the tool call; `None` if the answer approves the call.
    fn result(&self, call: &ToolUse) -> Option<ToolResult> {
        let denied = |text| ToolResult::new(call, ResultState::Denied, text);
        match &self.said {
            AnswerKind::Output(output, state) => Some(ToolResult::of(call, *state, output.clone())),
            AnswerKind::Yes(_) => None,
            AnswerKind::No(why) if call.state == CallState::Asking => Some(denied(match why {
                Some(why) => format!("{DENIED}: {why}"),
                None => format!("{DENIED}."),
            })),
            AnswerKind::No(why) => Some(denied(why.clone().unwrap_or_else(|| REFUSED.to_owned()))),
        }
    }

    /// The tool call with the approved input.
    fn approved(&self, call: &ToolUse) -> ToolUse {
        match &self.said {
            AnswerKind::Yes(Some(input)) => ToolUse { input: input.clone(), ..call.clone() },
            _ => call.clone(),
        }
    }
}

fn rules(value: &Value, name: &str) -> Read<Vec<Rule>> {
    Fields::of(value)?.or_default(name, |value| json::list(value, Rule::from_json))
}

fn misread(misread: Misread) -> Error {
    let hint = "answer an approval with { toolCallId, approve }, and a tool call that waits for its result with { toolCallId, output }";
    misread.into_error(ErrorKind::InputInvalid, "an answer").hint(hint)
}

fn answers(message: &Message, id: &str) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult(it) if it.id == id))
}
