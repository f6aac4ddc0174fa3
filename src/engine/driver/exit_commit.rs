//! The commit that ends a call: the rest of its turn, the head and the session list entry, in one batch.

use std::rc::Rc;

use crate::engine::call::cancel::Cause;
use crate::engine::call::joining::JoinedCalls;
use crate::engine::call::outcome::{Failed, answer_of, deleted_meanwhile, empty_answer};
use crate::engine::call::scope::CallScope;
use crate::engine::parts::AgentParts;
use crate::engine::subagent::children::CallChildren;
use crate::engine::subagent::report::told_in;
use crate::engine::turn::output::Output;
use crate::engine::turn::setup::TurnResult;
use crate::error::ErrorKind;
use crate::event::{Event, Reply};
use crate::message::{Edit, Message, Role};
use crate::policy::rejection::{AskedFor, Rejected, rejected};
use crate::store::Saved;
use crate::store::format::entry::{CallUpdate, EntryKind, Outcome};
use crate::store::format::input::Input;
use crate::store::format::view::LeftOut;
use crate::store::id;
use crate::store::session::{Session, TurnCommit, ViewChange};

/// The inputs of the commit that ends a call.
#[derive(Clone, Copy)]
pub(in crate::engine) struct ExitCommit<'a> {
    pub(in crate::engine) scope: &'a CallScope<'a>,
    pub(in crate::engine) parts: &'a AgentParts,
    /// The input as it was accepted.
    pub(in crate::engine) input: &'a Input,
    /// Whether the caller has sent the question of this call again. Otherwise a call without a question resumes a turn.
    pub(in crate::engine) is_repeated: bool,
    pub(in crate::engine) output: Option<&'a Output>,
    pub(in crate::engine) joined: &'a JoinedCalls,
    pub(in crate::engine) children: &'a CallChildren,
}

impl ExitCommit<'_> {
    /// Stores the result of a turn and returns the reply.
    pub(in crate::engine) async fn store(
        self,
        mut session: Session,
        mut result: TurnResult,
    ) -> Result<Reply, Failed> {
        let CallScope { slot, live, .. } = *self.scope;
        let stored = self.parts.sessions.stored();
        if matches!(self.scope.cancel.cause(), Some(Cause::Deleted)) {
            return Err(deleted_meanwhile(slot).into());
        }
        // If a step conflicted with another writer's turn, the whole turn is stored as a side branch already.
        if let Err(error) = &result.ended
            && result.is_aside
        {
            return Err(Failed { error: error.clone(), partial: result.partial });
        }
        let pieces = self.close_checkpoints(result.unsaved.as_ref());
        // A step whose save failed is saved again first. If the first save did arrive, the step is not stored twice.
        if let Some(step) = result.unsaved.take()
            && stored.save_turn(&mut session, &step).await.is_ok()
        {
            let now = result.messages.get(result.n_stored..).unwrap_or_default();
            result.changes.extend(CallUpdate::since(&step.messages, now));
            result.n_stored += step.messages.len();
        }
        let turn = self.turn(&mut session, &mut result, pieces);
        let saved = stored.save_turn(&mut session, &turn).await;
        // `onEnd` hooks see the stored session.
        live.set_facts(turn.facts.clone());
        live.put(&session);
        let TurnResult { ended, partial, messages, usage, asks, .. } = result;
        let answer = answer_of(&messages);
        let (saved, reason) = match (saved, ended) {
            (Ok(saved), Ok(reason)) => (saved, reason),
            (Ok(saved), Err(error)) => {
                self.note_saved(session, saved);
                return Err(Failed { error, partial });
            }
            (Err(unsaved), ended) => {
                self.parts.sessions.keep_unsaved(session, turn, unsaved.kind());
                return Err(match ended {
                    Ok(_) => Failed { error: unsaved, partial: answer },
                    Err(error) => Failed { error: error.and_then(unsaved), partial },
                });
            }
        };
        self.note_saved(session, saved);
        let message = answer.unwrap_or_else(|| empty_answer(self.scope.host));
        Ok(Reply {
            call_id: self.input.call_id.as_str().into(),
            reason,
            text: message.text(),
            message,
            messages,
            usage,
            output: self.output.and_then(Output::given),
            asks,
            version: saved.version,
        })
    }

    /// Ends the checkpoints. Returns the keys of the pieces that the commit removes, also those of a step whose save failed.
    fn close_checkpoints(self, unsaved: Option<&TurnCommit>) -> Vec<String> {
        let mut pieces = self.scope.checkpoints.close();
        pieces.extend(unsaved.iter().flat_map(|step| step.pieces.iter().cloned()));
        pieces
    }

    /// The part of the turn that is not stored yet, with its outcome.
    fn turn(
        self,
        session: &mut Session,
        result: &mut TurnResult,
        pieces: Vec<String>,
    ) -> TurnCommit {
        let left_out = self.left_out(session, result);
        let options = &self.parts.options;
        let outcome = match &result.ended {
            Ok(reason) => {
                let output = self.output.and_then(Output::given);
                Outcome { output, ..Outcome::ended(*reason) }
            }
            Err(error) => Outcome::failed(error.kind().code(), error.message()),
        };
        let messages = result.messages.get(result.n_stored..).unwrap_or_default().to_vec();
        // An entry without the question identifies the question by a digest.
        let is_apart = result.n_stored > 0 || self.input.messages.is_empty();
        TurnCommit {
            id: id::random_id(self.scope.host),
            kind: EntryKind::Turn,
            input: if is_apart { self.input.again() } else { self.input.clone() },
            joined: self.joined.inputs(),
            changes: std::mem::take(&mut result.changes),
            // Without `persistence.conversation` the next call does not see this one.
            is_forgotten: !options.persistence.conversation && !outcome.is_open(),
            outcome: Some(outcome),
            facts: options.persistence.saved(&result.facts, &session.facts()),
            view_change: session.view_change.clone(),
            // What is left out tells the model nothing, so the next turn reports the end of its tasks again.
            told_tasks: match left_out {
                Some(_) => Vec::new(),
                None => told_in(self.children, &messages),
            },
            left_out,
            pieces,
            messages,
        }
    }

    /// What leaves the context, if the provider has rejected the turn for its content.
    fn left_out(self, session: &mut Session, result: &TurnResult) -> Option<LeftOut> {
        let kind = result.ended.as_ref().err()?.kind();
        if !kind.is_for_content() {
            return None;
        }
        // A hook may have removed messages of the turn from the context.
        let is_own = |message: &Rc<Message>| result.messages.iter().any(|it| it.id == message.id);
        let end = session.context.len();
        let own = session.context.iter().position(is_own).unwrap_or(end);
        let asking = match self.input.messages.is_empty() {
            false => AskedFor::Question,
            true if self.input.answers.is_empty() => AskedFor::EarlierQuestion,
            true => AskedFor::Answers,
        };
        let Rejected { start, hidden } = rejected(&session.context, own, asking);
        // What was shortened for this turn only is shown again.
        if kind == ErrorKind::ModelContextOverflow {
            session.view_change = ViewChange::default();
        }
        for message in session.context.get(hidden).unwrap_or_default() {
            if message.role == Role::Tool {
                session.view_change.edits.put(&message.id, Edit::Faded { results: true });
            }
        }
        let n_stored = end.saturating_sub(result.messages.len() - result.n_stored);
        let first = session.context.get(start).filter(|_| start < n_stored);
        let first = first.map(|message| message.id.clone());
        let repeats = self.is_repeated && asking == AskedFor::EarlierQuestion;
        let call_id = repeats.then(|| self.input.call_id.clone());
        Some(LeftOut { first, call_id, from: None, n_kept: start.saturating_sub(n_stored) })
    }

    /// Records what was stored. Keeps the session in memory, unless another writer has changed it.
    fn note_saved(self, session: Session, saved: Saved) {
        let sessions = &self.parts.sessions;
        sessions.note_written(&session, saved.bytes);
        if let Some(memory) = &self.parts.memory {
            memory.note_said(&session.slot, false);
        }
        if !saved.overtaken {
            sessions.keep_cached(session);
        }
        self.scope.emit(Event::Saved { version: saved.version, bytes: saved.bytes });
    }
}
