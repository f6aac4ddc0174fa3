//! Recovery after a crash: logs the inputs of crashed calls, and closes the tool calls that they left open. No tool
//! runs again.

use std::rc::Rc;

use crate::engine::call::log::located;
use crate::engine::session::{ATTEMPTS, AgentSessions, changes_too_fast};
use crate::engine::stamp::{now, stamped};
use crate::error::Result;
use crate::event::Reason;
use crate::future::rarely;
use crate::message::{Block, CallState, Message, Note, Role, ToolResult};
use crate::run::open;
use crate::run::result_message;
use crate::seams;
use crate::slot::Slot;
use crate::store::PartialAnswer;
use crate::store::format::entry::{CallUpdate, EntryKind, Outcome};
use crate::store::format::input::Input;
use crate::store::id;
use crate::store::session::{Session, TurnCommit};

const CUT_OFF: &str =
    "The answer to this was cut off before it could be saved. Tools may have run.";

/// Recovers the inputs that were accepted but not logged. The caller holds gate and lock, so their calls do not run any
/// more. `false`: the session was changed meanwhile; load it again.
pub(in crate::engine) async fn recover(
    sessions: &AgentSessions,
    session: &mut Session,
) -> Result<bool> {
    for input in sessions.stored().inputs_of(session).await? {
        let recovered = match input.resends {
            true => rarely(recover_resend(sessions, session, input)).await,
            false => rarely(recover_turn(sessions, session, input)).await,
        };
        // If the session was deleted meanwhile, its log entries may be missing.
        let is_gone = recovered.is_err() && sessions.stored().has_moved_on(session).await?;
        if is_gone || !recovered? {
            return Ok(false);
        }
        session.orphans = None;
    }
    sessions.stored().find_orphans(session).await?;
    Ok(true)
}

/// Logs the input of a crashed call, and closes the tool calls that it left open.
async fn recover_turn(
    sessions: &AgentSessions,
    session: &mut Session,
    input: Input,
) -> Result<bool> {
    let answer = sessions.stored().partial(&session.keys, &input.call_id).await?;
    let turn = interrupted_turn(sessions, session, (input, answer));
    if !sessions.stored().recover(session, &turn).await? {
        return Ok(false);
    }
    take(session, &turn);
    Ok(true)
}

/// Loads a session, and the turns of its accepted inputs that are not logged yet, as recovery would log them now. The loaded
/// context has these turns. Nothing is written.
pub(in crate::engine) async fn with_open_turns(
    sessions: &AgentSessions,
    slot: &Slot,
) -> Result<(Session, Vec<TurnCommit>)> {
    let stored = sessions.stored();
    // An input that is logged between the two reads is in the head too, so both are read until the inputs stay the same.
    let mut inputs = stored.inputs_with_revisions(slot).await?;
    for _ in 0..ATTEMPTS {
        let mut session = stored.load(slot, None).await?;
        let mut answers = Vec::new();
        for (_, input) in &inputs {
            answers.push(stored.partial(&session.keys, &input.call_id).await?);
        }
        let now = stored.inputs_with_revisions(slot).await?;
        if now == inputs {
            stored.check_inputs(&session, &inputs).await?;
            let mut turns = Vec::new();
            let open = inputs.into_iter().map(|(_, input)| input).zip(answers);
            // A resend leaves the stored path as it is.
            let has_head = session.head.is_some();
            for open in open.filter(|(input, _)| !input.resends && has_head) {
                let turn = interrupted_turn(sessions, &session, open);
                take(&mut session, &turn);
                turns.push(turn);
            }
            return Ok((session, turns));
        }
        inputs = now;
    }
    Err(changes_too_fast(slot))
}

/// Adds a turn to a loaded session.
fn take(session: &mut Session, turn: &TurnCommit) {
    session.amend(&turn.changes);
    session.context_mut().extend(turn.messages.iter().cloned());
}

/// The turn of a call that was cut off, with results for the tool calls that it left open.
fn interrupted_turn(
    sessions: &AgentSessions,
    session: &Session,
    (input, answer): (Input, PartialAnswer),
) -> TurnCommit {
    let at = now(&**sessions.host());
    let stamp = |message| stamped(message, &**sessions.host(), &at);
    let PartialAnswer { messages: answer, pieces } = answer;
    let results = open::cut_off(&session.context, &input.answers);
    let (results, answer) = with_stored(results, answer);
    let results = seams::closing_results(results, !input.answers.is_empty());
    let finished = |result: &ToolResult| {
        let later = CallUpdate::new(&result.id, CallState::Finished);
        located(&session.context, later).map(|(_, later)| later)
    };
    let changes: Vec<CallUpdate> = results.iter().filter_map(finished).collect();
    let mut messages: Vec<_> = results.into_iter().map(result_message).map(stamp).collect();
    messages.extend(seams::recovered(&input.messages).iter().cloned());
    messages.extend(closed(answer, stamp));
    messages.push(stamp(Message::note_of(Note::CutOff, CUT_OFF)));
    let mut facts = session.facts();
    for rule in open::remembered(&input.answers) {
        facts.permission_context.remember(rule);
    }
    let entry = (messages, changes);
    TurnCommit { facts, pieces, ..recovered(sessions, session, input, entry) }
}

/// Logs the input of a crashed resend as a separate branch. The current branch does not change.
async fn recover_resend(
    sessions: &AgentSessions,
    session: &mut Session,
    input: Input,
) -> Result<bool> {
    let at = now(&**sessions.host());
    let stamp = |message| stamped(message, &**sessions.host(), &at);
    let PartialAnswer { messages: answer, pieces } =
        sessions.stored().partial(&session.keys, &input.call_id).await?;
    let mut messages = input.messages.clone();
    messages.extend(closed(answer, stamp));
    messages.push(stamp(Message::note_of(Note::CutOff, CUT_OFF)));
    let entry = (messages, Vec::new());
    let turn = TurnCommit { pieces, ..recovered(sessions, session, input, entry) };
    let close = |said: &[Rc<Message>]| {
        let results = open::cut_off(said, &[]).into_iter();
        results.map(|result| stamp(result_message(result))).collect()
    };
    sessions.stored().recover_resend(session, &turn, &close).await
}

/// The turn of a crashed call.
fn recovered(
    sessions: &AgentSessions,
    session: &Session,
    input: Input,
    (messages, changes): (Vec<Rc<Message>>, Vec<CallUpdate>),
) -> TurnCommit {
    TurnCommit {
        id: id::random_id(&**sessions.host()),
        kind: EntryKind::Recovered,
        input,
        joined: Vec::new(),
        messages,
        changes,
        outcome: Some(Outcome::ended(Reason::Interrupted)),
        facts: session.facts(),
        view_change: Default::default(),
        is_forgotten: false,
        left_out: None,
        told_tasks: Vec::new(),
        pieces: Vec::new(),
    }
}

/// Takes the results with which the stored part of an answer begins: they are of earlier tool calls. Returns all results of
/// these calls, and the rest of the answer.
fn with_stored(
    mut results: Vec<ToolResult>,
    mut answer: Vec<Rc<Message>>,
) -> (Vec<ToolResult>, Vec<Rc<Message>>) {
    // Behind the first message of the model, a result with the same id is of another call: some providers count from one.
    let n_first = answer.iter().take_while(|message| message.role == Role::Tool).count();
    let rest = answer.split_off(n_first);
    for known in answer.iter().flat_map(|message| message.tool_results()) {
        let place = results.iter_mut().find(|result| result.id == known.id);
        place.into_iter().for_each(|place| place.clone_from(known));
    }
    (results, rest)
}

/// The stored part of an answer as the log gets it: every tool call has a result, and thinking that did not arrive whole is
/// for readers only.
fn closed(
    mut answer: Vec<Rc<Message>>,
    stamp: impl Fn(Message) -> Rc<Message>,
) -> Vec<Rc<Message>> {
    let results = open::cut_off(&answer, &[]);
    answer.extend(results.into_iter().map(result_message).map(&stamp));
    let results = answer.iter().flat_map(|message| message.tool_results());
    let finished: Vec<String> = results.map(|result| result.id.clone()).collect();
    for message in &mut answer {
        let is_whole = message.usage.is_some();
        let message = Rc::make_mut(message);
        for block in &mut message.content {
            match block {
                Block::ToolUse(call) if finished.contains(&call.id) => {
                    call.state = CallState::Finished;
                }
                // Without this data no provider is sent the thinking.
                Block::Thinking { signature: None, provider, .. } if !is_whole => *provider = None,
                _ => {}
            }
        }
    }
    answer
}
