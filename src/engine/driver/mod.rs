//! The stations of a call, from the queue to the stored outcome.
//!
//! The order is: gate, lock, load and recover, the outcome of an earlier call with the same id, accept, the turn,
//! commit (event `saved`), `onEnd` hooks. Then lock and gate are released. The event `call-end` comes last.

pub(in crate::engine) mod begin;
pub(in crate::engine) mod exit_commit;
pub(in crate::engine) mod input_meaning;
pub(in crate::engine) mod overlap;
pub(in crate::engine) mod place;

use std::convert::Infallible;
use std::future::pending;
use std::rc::Rc;

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::call::CallHandles;
use crate::engine::call::cancel::Cause;
use crate::engine::call::joining::{JoinedCalls, JoiningCall};
use crate::engine::call::outcome::{
    Ended, Failed, empty_answer, ended_unaccepted, same_input, stored_end,
};
use crate::engine::call::running::RunningCall;
use crate::engine::call::scope::CallScope;
use crate::engine::driver::exit_commit::ExitCommit;
use crate::engine::driver::input_meaning::InputMeaning;
use crate::engine::driver::place::QueuePlace;
use crate::engine::parts::AgentParts;
use crate::engine::session::branch::rewind;
use crate::engine::session::lease;
use crate::engine::session::recovery::recover;
use crate::engine::subagent::children::CallChildren;
use crate::engine::subagent::role::ChildRole;
use crate::engine::turn::Turn;
use crate::engine::turn::hooks::Hooks;
use crate::engine::turn::output::Output;
use crate::engine::turn::setup::{TurnSetup, TurnStart};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Event, Reply, SerializedError};
use crate::future::{Either, race, rarely};
use crate::store::format::input::Input;
use crate::store::session::Session;

/// How often a call tries to accept its input while other writers change the session.
const ATTEMPTS: u32 = 16;

/// How a call ended, before its reply is shared.
type CallEnd = std::result::Result<Reply, Failed>;

/// Runs one call through its stations.
pub(in crate::engine) struct Driver {
    /// Counts the call as running until this is dropped.
    _running: RunningCall,
    place: QueuePlace,
    parts: Rc<AgentParts>,
    handles: CallHandles,
    tag: u32,
    input: Input,
    output: Option<Output>,
    generate: Value,
    attributes: Attributes,
    /// The handle through which this call joins the running call.
    joining: Option<Rc<JoiningCall>>,
    /// The calls that have joined this call.
    joined: JoinedCalls,
    /// The subagents that this call has begun.
    children: Rc<CallChildren>,
    /// The differences in the call of a subagent.
    role: Option<Rc<ChildRole>>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop_joining();
    }
}

impl Driver {
    /// Runs the call to its end.
    pub(in crate::engine) async fn drive(mut self) -> Ended {
        self.warn_of_schemas();
        let ended = self.within_deadline().await;
        self.handles.live.hide();
        self.joined.end(&ended);
        // The gate opens before the last event, so that the caller's next call need not wait.
        self.place.leave();
        self.handles.outbox.push(match &ended {
            Ok(reply) => Event::CallEnd { reply: Rc::clone(reply) },
            Err(failed) => {
                Event::Error { error: SerializedError::new(&failed.error, failed.partial.clone()) }
            }
        });
        ended
    }

    fn scope(&self) -> CallScope<'_> {
        let CallHandles { slot, outbox, cancel, live, checkpoints } = &self.handles;
        CallScope {
            slot,
            tag: self.tag,
            options: self.role.as_ref().map_or(&*self.parts.options, |role| role.options()),
            attributes: &self.attributes,
            host: &*self.parts.host,
            outbox,
            cancel,
            live,
            checkpoints,
        }
    }

    /// The first call of an agent warns about the parts of tool schemas that are not checked.
    fn warn_of_schemas(&self) {
        if !self.parts.has_warned.replace(true) {
            for message in self.parts.tools.unchecked() {
                self.scope().warn("schema", message);
            }
        }
    }

    /// Runs the stations and polls the subagents of the call. Subagents that still run afterwards become background work.
    async fn beside_children(&mut self) -> CallEnd {
        let children = Rc::clone(&self.children);
        let ended = children.beside(self.stations()).await;
        // If the call was told to end, its subagents end too.
        if !matches!(self.handles.cancel.cause(), None | Some(Cause::Shutdown)) {
            children.end().await;
        }
        self.parts.children.remove_parent(&self.handles.slot, &children);
        let left = children.leave();
        let left = match self.role.as_ref().and_then(|role| role.parent()) {
            Some(parent) => parent.adopt(left),
            None => left,
        };
        self.parts.children.leave(left);
        ended
    }

    /// Runs the call within its deadline. After the deadline the call is told to end, and still commits.
    async fn within_deadline(&mut self) -> Ended {
        let limit = self.parts.options.timeouts.call.map(|ms| self.parts.host.sleep(ms));
        let cancel = self.handles.cancel.clone();
        let watch = async {
            if let Some(limit) = limit {
                limit.await;
                cancel.ask(Cause::TimedOut);
            }
            pending::<Infallible>().await
        };
        let to_end = async {
            let ended = self.beside_children().await.map(Rc::new);
            Hooks::new(&self.scope(), &self.parts.hooks).on_end(&ended).await;
            ended
        };
        match race(to_end, watch).await {
            Either::First(ended) => ended,
            Either::Second(never) => match never {},
        }
    }

    async fn stations(&mut self) -> CallEnd {
        let (cancel, joining) = (self.handles.cancel.clone(), self.joining.clone());
        let joined = async {
            match &joining {
                Some(joining) => joining.ended().await,
                None => pending().await,
            }
        };
        match race(cancel.asked(), race(joined, self.enter())).await {
            Either::First(()) => return self.end_while_waiting().await,
            Either::Second(Either::First(ended)) => return ended.map(|reply| (*reply).clone()),
            Either::Second(Either::Second(entered)) => entered?,
        }
        self.stop_joining();
        // Boxed, so that a waiting call takes little memory.
        Box::pin(self.admitted()).await
    }

    /// Waits for the session.
    async fn enter(&mut self) -> Result<()> {
        let CallHandles { slot, outbox, .. } = &self.handles;
        self.place.enter(&self.parts, slot, outbox).await?;
        rarely(self.take_role()).await
    }

    /// Sets the role if the application continues the session of a subagent, for example with an answer to its
    /// question.
    async fn take_role(&mut self) -> Result<()> {
        if self.role.is_none() {
            self.role = self.parts.role_of(&self.handles.slot).await?.map(Rc::new);
            if self.role.is_some() {
                self.children.set_depth(1);
            }
        }
        Ok(())
    }

    /// The stations after gate and lock.
    async fn admitted(&mut self) -> CallEnd {
        let CallHandles { slot, outbox, cancel, .. } = &self.handles;
        let sessions = &self.parts.sessions;
        let stored = sessions.stored();
        // If the session changes while the input is being accepted, it is read again. No model request was made yet.
        let mut tried_at = self.joining.as_ref().and_then(|joining| joining.tried_at());
        let began = self.parts.host.now_ms();
        for attempt in 0.. {
            if attempt >= ATTEMPTS && !lease::may_try_again(sessions, began).await {
                break;
            }
            sessions.save_unsaved(slot).await?;
            let known = sessions.take_cached(slot);
            let opening = lease::open(sessions, slot, known, Some(outbox));
            let Either::Second(opened) = race(cancel.asked(), opening).await else {
                return self.end_before_acceptance();
            };
            let mut session = opened?;
            if !recover(sessions, &mut session).await? {
                continue;
            }
            self.refuse_if_recovered(&session, tried_at).await?;
            let earlier = self.earlier_call(&session).await?;
            if let EarlierCall::Ended(ended) = earlier {
                sessions.keep_cached(session);
                return ended;
            }
            if cancel.cause().is_some() || self.parts.calls.is_closing() {
                sessions.keep_cached(session);
                return self.end_before_acceptance();
            }
            let is_retry = matches!(earlier, EarlierCall::Retryable);
            let Some((meaning, input)) = self.admit(&mut session, is_retry).await? else {
                continue;
            };
            tried_at.get_or_insert(session.stored_head().map_or(0, |head| head.next));
            if stored.accept(&mut session, &input).await? {
                let said = if meaning.is_known { &self.input } else { &input };
                outbox.push(Event::Accepted { messages: said.messages.clone() });
                return Box::pin(self.turn(session, input, meaning)).await;
            }
        }
        let message =
            format!("other writers change {slot} faster than a call can accept its input");
        Err(Error::new(ErrorKind::Superseded, message).hint("nothing was stored; try again").into())
    }

    /// Decides what the input does in the session. `None`: the session was changed meanwhile; load it again.
    async fn admit(
        &self,
        session: &mut Session,
        is_retry: bool,
    ) -> Result<Option<(InputMeaning, Input)>> {
        if self.input.resends {
            let rewinding = rewind(&self.parts.sessions, session, &self.input);
            let Some((messages, earlier)) = rarely(rewinding).await? else { return Ok(None) };
            let meaning = InputMeaning::of_question(session, self.input.messages.is_empty());
            return Ok(Some((meaning, Input { messages, earlier, ..self.input.clone() })));
        }
        let meaning = match is_retry {
            true => InputMeaning::of_retry(session)?,
            false => InputMeaning::of(&self.parts.tools, &*self.parts.host, session, &self.input)?,
        };
        let is_question = !meaning.is_known && !self.input.messages.is_empty();
        let earlier = if is_question { session.earlier_facts() } else { None };
        let input = if meaning.is_known { self.input.again() } else { self.input.clone() };
        Ok(Some((meaning, Input { earlier, ..input })))
    }

    /// Runs the turn, then commits it.
    async fn turn(&self, mut session: Session, input: Input, meaning: InputMeaning) -> CallEnd {
        let CallHandles { slot, live, checkpoints, .. } = &self.handles;
        checkpoints.answer(&input.call_id, session.accepted.clone());
        let (stored, keys) = (self.parts.sessions.stored(), session.keys.clone());
        let facts = session.facts();
        live.set_facts(self.role.as_ref().map_or(facts.clone(), |role| role.limit(facts)));
        live.read_from(self.parts.sessions.stored(), slot);
        self.parts.children.add_parent(slot, &self.children);
        let scope = self.scope();
        let setup = TurnSetup {
            scope: &scope,
            parts: &self.parts,
            role: self.role.as_deref(),
            input: &input,
            output: self.output.as_ref(),
            generate: &self.generate,
            joined: &self.joined,
            children: &self.children,
        };
        let InputMeaning { answered, is_again, .. } = meaning;
        let running = Turn::run(setup, &mut session, TurnStart { answered, is_again });
        let warn = |error: &Error| scope.warn("checkpoint", error.message());
        let checkpoints = checkpoints.keep((stored, &keys), scope.host, warn);
        let beside = race(self.keep_session(&input.call_id), checkpoints);
        let result = match race(running, beside).await {
            Either::First(result) => result,
            Either::Second(Either::First(never) | Either::Second(never)) => match never {},
        };
        let TurnSetup { scope, parts, output, joined, children, .. } = setup;
        let is_repeated = !self.input.messages.is_empty();
        let input = &input;
        let commit = ExitCommit { scope, parts, input, is_repeated, output, joined, children };
        Box::pin(commit.store(session, result)).await
    }

    /// Holds the session while the call runs. If another tab or process takes the session over, the call is told to
    /// end.
    async fn keep_session(&self, call_id: &str) -> Infallible {
        let CallHandles { slot, cancel, .. } = &self.handles;
        let lost = async {
            self.place.lost().await;
            cancel.ask(Cause::TakenOver);
            pending::<Infallible>().await
        };
        let lease = lease::keep_open(&self.parts.sessions, slot, call_id, cancel);
        match race(lost, lease).await {
            Either::First(never) | Either::Second(never) => never,
        }
    }

    /// The outcome of an earlier call with the same id.
    async fn earlier_call(&self, session: &Session) -> Result<EarlierCall> {
        if !self.input.named {
            return Ok(EarlierCall::None);
        }
        let stored = self.parts.sessions.stored();
        let Some((entry, asked)) = stored.outcome(session, &self.input.call_id).await? else {
            return Ok(EarlierCall::None);
        };
        same_input(&self.input, &entry, asked.as_deref())?;
        let told = stored_end(&entry, &self.input, session, &empty_answer(&*self.parts.host));
        Ok(told.map_or(EarlierCall::Retryable, EarlierCall::Ended))
    }

    /// Refuses to continue if another node has recovered the input. A commit that was reported as a conflict may have
    /// been stored after all. Its input then looks like the input of a crashed call. `tried_at` is the number of the
    /// next log entry before that commit.
    async fn refuse_if_recovered(&self, session: &Session, tried_at: Option<u64>) -> Result<()> {
        let stored = self.parts.sessions.stored();
        if let Some(first) = tried_at
            && !self.input.named
            && stored.is_recovered(session, &self.input.call_id, first).await?
        {
            let message = format!("{}: another node has recovered the input", self.handles.slot);
            return Err(Error::new(ErrorKind::Superseded, message)
                .hint("the input is in the log; the model was not asked"));
        }
        Ok(())
    }

    /// Removes this call from the calls that want to join the running call.
    fn stop_joining(&self) {
        if let Some(joining) = &self.joining {
            self.parts.joining.remove(&self.handles.slot, joining);
        }
    }

    /// The end of a call that is told to end while it waits. If it has joined the running call, a stop ends both calls.
    async fn end_while_waiting(&self) -> CallEnd {
        self.stop_joining();
        let joining = self.joining.as_ref();
        let joined = joining.and_then(|joining| Some((joining, joining.holder()?)));
        let Some((joining, holder)) = joined else { return self.end_before_acceptance() };
        let Some(Cause::Stopped(says)) = self.handles.cancel.cause() else {
            return self.end_before_acceptance();
        };
        holder.ask(Cause::Stopped(says));
        joining.ended().await.map(|reply| (*reply).clone())
    }

    /// The end of a call that is told to end before its input is accepted.
    fn end_before_acceptance(&self) -> CallEnd {
        let CallHandles { slot, cancel, .. } = &self.handles;
        ended_unaccepted(cancel, slot, &self.input, &*self.parts.host)
    }
}

/// The outcome of an earlier call with the same id.
enum EarlierCall {
    /// There was none.
    None,
    /// It failed with a retryable error. Its question is in the log.
    Retryable,
    /// It has ended.
    Ended(CallEnd),
}
