//! The model requests of a turn: fitting into the window, structured output, retries and the fallback model.

use std::rc::Rc;

use crate::engine::call::scope::CallScope;
use crate::engine::turn::attempt::{Attempt, ModelAnswer, ModelAttempts};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::Event;
use crate::future::{Either, race, rarely};
use crate::message::Message;
use crate::policy::retry;
use crate::port::Model;
use crate::run::Asking;
use crate::store::session::Session;

/// The models that answer in one call.
#[derive(Clone, Copy)]
pub(in crate::engine) struct AnsweringModels<'a> {
    pub(in crate::engine) own: &'a dyn Model,
    /// Answers if the own model fails before its first delta.
    pub(in crate::engine) fallback: Option<&'a dyn Model>,
}

/// Asks the model for the answers of one call.
pub(in crate::engine) struct ModelRequests<'a> {
    scope: &'a CallScope<'a>,
    models: AnsweringModels<'a>,
    attempts: ModelAttempts<'a>,
}

impl<'a> ModelRequests<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        models: AnsweringModels<'a>,
        attempts: ModelAttempts<'a>,
    ) -> ModelRequests<'a> {
        ModelRequests { scope, models, attempts }
    }

    /// Asks the model with a request that fits. If the model refuses it as too large, smaller ones are sent until the
    /// model accepts one.
    pub(in crate::engine) async fn ask(
        &self,
        session: &mut Session,
        asking: Asking,
        iteration: u32,
    ) -> ModelAnswer {
        if let Err(error) = self.renew_prompt(session).await {
            return ModelAnswer::Failed(error, None);
        }
        self.attempts.fitting.fit(session).await;
        if self.scope.is_stopped() {
            return ModelAnswer::Stopped(None);
        }
        let mut answer = self.ask_for_form(session, asking, iteration).await;
        if is_about_files(&answer) && self.attempts.fitting.remove_files(session) {
            answer = self.ask_for_form(session, asking, iteration).await;
        }
        if overflow(&answer).is_none() || !self.attempts.fitting.may_shrink() {
            return answer;
        }
        rarely(self.ask_smaller(session, (asking, iteration), answer)).await
    }

    /// Sends a refused request again, smaller each time, until it cannot be made smaller any more.
    async fn ask_smaller(
        &self,
        session: &mut Session,
        (asking, iteration): (Asking, u32),
        refused: ModelAnswer,
    ) -> ModelAnswer {
        let fitting = self.attempts.fitting;
        let (mut answer, mut sizes, mut n) = (refused, None, 0);
        while let Some(error) = overflow(&answer) {
            n += 1;
            let (before, after) = fitting.shrink(session, n).await;
            if self.scope.is_stopped() {
                return ModelAnswer::Stopped(None);
            }
            if after >= before {
                return ModelAnswer::Failed(fitting.estimates().too_large(error, after), None);
            }
            sizes = Some((sizes.map_or(before, |(first, _)| first), after));
            answer = self.ask_for_form(session, asking, iteration).await;
        }
        if let Some((before, after)) = sizes {
            let (before, after) = (before as usize, after as usize);
            self.scope.emit(Event::OverflowRecovered { before, after });
        }
        answer
    }

    /// Writes the system prompt again if plan mode was switched in this call.
    async fn renew_prompt(&self, session: &Session) -> Result<()> {
        let instructions = self.attempts.parts.instructions;
        if !self.scope.live.with_facts(|facts| instructions.plan_has_changed(facts)) {
            return Ok(());
        }
        let _shown = self.scope.live.show(session);
        let prompt = self.attempts.hooks.system_prompt(instructions.written_prompt()).await?;
        instructions.set_prompt(prompt);
        Ok(())
    }

    /// Asks the model. If the caller asked for structured output, the answer is checked. If it is invalid, the model is
    /// asked once more.
    async fn ask_for_form(
        &self,
        session: &mut Session,
        asking: Asking,
        iteration: u32,
    ) -> ModelAnswer {
        let mut answer = self.ask_or_fall_back(session, asking, iteration).await;
        let Some(output) = self.attempts.parts.output else { return answer };
        // If the provider refuses structured output, the hidden tool is used instead.
        if let ModelAnswer::Failed(error, None) = &answer
            && error.kind() == ErrorKind::ModelBadRequest
            && output.falls_back_to_tool()
        {
            answer = self.ask_or_fall_back(session, asking, iteration).await;
        }
        let ModelAnswer::Replied(reply) = &answer else { return answer };
        let mut why = match output.accept(reply.clone()) {
            Ok(reply) => return ModelAnswer::Replied(reply),
            Err(why) => why,
        };
        if output.may_ask_again() {
            // Only the model sees this note: it is removed before anything is saved.
            let place = session.context.len();
            session.context_mut().push(Rc::new(Message::note(why)));
            let again = self.ask_or_fall_back(session, asking, iteration).await;
            session.context_mut().truncate(place);
            session.lineage.changed(place);
            let ModelAnswer::Replied(mut second) = again else { return again };
            // The tokens of the first answer count too.
            if let Some(usage) = &mut second.message.usage {
                reply.message.usage.iter().for_each(|cost| usage.add(cost));
            }
            match output.accept(second) {
                Ok(reply) => return ModelAnswer::Replied(reply),
                Err(still) => why = still,
            }
        }
        let error = Error::new(ErrorKind::OutputInvalid, why);
        ModelAnswer::Failed(error.hint("use a simpler outputSchema, or a stronger model"), None)
    }

    /// Asks the model. If all its attempts fail before the first delta, the fallback model is asked.
    async fn ask_or_fall_back(
        &self,
        session: &Session,
        asking: Asking,
        iteration: u32,
    ) -> ModelAnswer {
        let attempt = Attempt { model: self.models.own, asking, iteration, max_tokens: None };
        let answer = self.ask_with_retries(session, attempt).await;
        let (ModelAnswer::Failed(error, None), Some(fallback)) = (&answer, self.models.fallback)
        else {
            return answer;
        };
        if !retry::falls_back(error.kind()) {
            return answer;
        }
        self.scope.emit(Event::Fallback { model: fallback.id(self.scope.tag) });
        rarely(self.ask_with_retries(session, Attempt { model: fallback, ..attempt })).await
    }

    /// Asks a model. A transient failure before the first delta is retried.
    async fn ask_with_retries(&self, session: &Session, first: Attempt<'_>) -> ModelAnswer {
        let mut attempt = first;
        let mut n = 1;
        loop {
            let (iteration, model) = (attempt.iteration, attempt.model.id(self.scope.tag));
            self.scope.emit(Event::ModelStart { iteration, model });
            let answer = self.attempts.ask(session, attempt).await;
            let ModelAnswer::Failed(error, None) = answer else { return answer };
            self.attempts.fitting.estimates().learn_window(attempt.model, &error);
            // If the provider says how many tokens an answer may have, the request is sent again at once with this
            // limit.
            let shorter = error.advice().max_tokens.filter(|_| attempt.max_tokens.is_none());
            let wait = match shorter {
                Some(_) => Some(0),
                None => retry::wait_ms(self.scope.options.retries, n, &error, self.chance()),
            };
            let Some(wait_ms) = wait else { return ModelAnswer::Failed(error, None) };
            attempt.max_tokens = shorter.or(attempt.max_tokens);
            n += 1;
            self.scope.emit(Event::Retry { attempt: n, wait_ms, code: error.kind().code() });
            let waited = race(self.scope.cancel.asked(), self.scope.host.sleep(wait_ms)).await;
            if let Either::First(()) = waited {
                return ModelAnswer::Stopped(None);
            }
        }
    }

    /// A random number in 0..1.
    fn chance(&self) -> f64 {
        let mut bytes = [0; 2];
        self.scope.host.random(&mut bytes);
        f64::from(u16::from_le_bytes(bytes)) / 65_536.0
    }
}

fn overflow(answer: &ModelAnswer) -> Option<&Error> {
    match answer {
        ModelAnswer::Failed(error, None) if error.kind() == ErrorKind::ModelContextOverflow => {
            Some(error)
        }
        _ => None,
    }
}

/// Whether the provider could not load files of the conversation.
fn is_about_files(answer: &ModelAnswer) -> bool {
    matches!(answer, ModelAnswer::Failed(error, None) if error.advice().without_files)
}
