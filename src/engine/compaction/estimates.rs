//! Estimates of how many tokens the requests of a call have, and what the call learns about its model from the answers.

use std::cell::Cell;
use std::rc::Rc;

use crate::engine::call::scope::CallScope;
use crate::engine::instructions::Instructions;
use crate::engine::models::Models;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::message::Message;
use crate::policy::compaction::When;
use crate::policy::tokens;
use crate::port::{Model, ToolSpec};

/// Estimates the requests of one call.
pub(in crate::engine) struct Estimates<'a> {
    scope: &'a CallScope<'a>,
    instructions: &'a Instructions<'a>,
    models: &'a Models,
    /// The model that answers in this call.
    own: &'a dyn Model,
    /// Whether the fallback model has refused a request of this call as too large. Then requests must fit that one.
    is_for_fallback: Cell<bool>,
}

impl<'a> Estimates<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        instructions: &'a Instructions<'a>,
        models: &'a Models,
        own: &'a dyn Model,
    ) -> Estimates<'a> {
        Estimates { scope, instructions, models, own, is_for_fallback: Cell::new(false) }
    }

    /// About how many tokens a request with these messages has.
    pub(in crate::engine) fn of_request(&self, messages: &[Rc<Message>]) -> u64 {
        (self.counted(messages) as f64 * self.scale()) as u64
    }

    /// About how many tokens a message has.
    pub(in crate::engine) fn of_message(&self, message: &Message) -> u64 {
        (self.models.tokens_of_one(message) as f64 * self.scale()) as u64
    }

    fn counted(&self, messages: &[Rc<Message>]) -> u64 {
        let tools = self.models.tokens_of_tools(&self.tools());
        let prompt = self.models.tokens_of_text(&self.instructions.prompt());
        let reminder = self.scope.live.with_facts(|facts| self.instructions.reminder(facts));
        let reminder = reminder.map_or(0, |it| self.models.tokens_of_one(&it));
        prompt + tools + self.models.tokens_of(messages) + reminder
    }

    /// The tools that the model is shown.
    pub(in crate::engine) fn tools(&self) -> Vec<Rc<ToolSpec>> {
        self.scope.live.with_facts(|facts| self.instructions.tools(facts))
    }

    /// The window of the model that requests must fit, if it is known.
    pub(in crate::engine) fn window(&self) -> Option<u64> {
        self.models.window(self.model(), self.scope.tag)
    }

    /// The largest size of a request, in tokens, that leaves room for an answer.
    pub(in crate::engine) fn most(&self) -> Option<u64> {
        let reserve = self.scope.options.compaction.reserve;
        self.window().map(|window| window - reserve.min(window / 4))
    }

    /// Learns how a provider counts tokens from what it reports for a request with these messages.
    pub(in crate::engine) fn learn(
        &self,
        model: &dyn Model,
        messages: &[Rc<Message>],
        reported: u64,
    ) {
        let id = model.id(self.scope.tag);
        let scale = self.models.scale(&id);
        // A refusal has raised the factor, perhaps too high. So an answer corrects it, also without a trigger.
        if scale > 1.0 || self.scope.options.compaction.when == When::ByTrigger {
            let window = self.models.window(model, self.scope.tag);
            let scale = tokens::scaled(scale, self.counted(messages), reported, window);
            self.models.set_scale(id, scale);
        }
    }

    /// Learns from the error of a model, if it is a refusal: which model requests must fit, and perhaps its window.
    pub(in crate::engine) fn learn_window(&self, model: &dyn Model, error: &Error) {
        if error.kind() == ErrorKind::ModelContextOverflow {
            self.models.learn_window(model, self.scope.tag, error);
            self.is_for_fallback.set(!std::ptr::addr_eq(model, self.own));
        }
    }

    /// The window of a model that has accepted a request of this many tokens.
    pub(in crate::engine) fn window_after(&self, model: &dyn Model, accepted: u64) -> Option<u64> {
        self.models.check_window(model, self.scope.tag, accepted);
        self.models.window(model, self.scope.tag)
    }

    /// Corrects the estimates after a refusal: a request that we estimated at `refused` tokens fills the window.
    pub(in crate::engine) fn raise(&self, refused: u64) {
        let Some(window) = self.window().filter(|window| *window > refused) else { return };
        let scale = self.scale() * window as f64 / refused.max(1) as f64;
        let scale = scale.min(tokens::HIGHEST_SCALE);
        self.models.set_scale(self.model().id(self.scope.tag), scale);
    }

    /// The error for a request that cannot be made smaller.
    pub(in crate::engine) fn too_large(&self, error: &Error, tokens: u64) -> Error {
        let window = self.window().map(|window| format!(", and the model takes {window}"));
        let fixed = self.of_request(&[]);
        let message = format!(
            "{}: the smallest request that keeps the question has about {tokens} tokens, {fixed} of them for the \
             system prompt and the tools{}",
            error.message(),
            window.unwrap_or_default()
        );
        let told = Error::new(ErrorKind::ModelContextOverflow, message).hint(
            "send the input in parts, give the agent fewer tools, or use a model with a larger window",
        );
        match error.cause() {
            Some(cause) => told.with_cause(Rc::clone(cause)),
            None => told,
        }
    }

    fn scale(&self) -> f64 {
        self.models.scale(&self.model().id(self.scope.tag))
    }

    /// The model that requests must fit.
    fn model(&self) -> &dyn Model {
        let fallback = self.models.fallback().filter(|_| self.is_for_fallback.get());
        fallback.unwrap_or(self.own)
    }
}
