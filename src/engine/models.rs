//! The models of an agent: their purposes, the counting of tokens, and requests outside the conversation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::options::Timeouts;
use crate::engine::stamp::{now, stamped};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::{Either, Local, race};
use crate::json::{self, object_of};
use crate::message::{Block, Delta, Finish, Message, Role};
use crate::policy::tokens;
use crate::port::{Host, Lineage, Model, Request, ToolSpec};
use crate::run::{Assembly, ModelReply};
use crate::slot::Slot;

/// The longest wait for a whole answer to a question outside the conversation, in units of the model's timeout.
const WHOLE_ANSWER: u64 = 5;

/// No token has more bytes on average. So a longer answer has broken its limit.
const BYTES_PER_TOKEN: u64 = 16;

/// Counts the tokens of a text.
pub type Counter = Rc<dyn Fn(&str) -> u64>;

/// The models that an agent was given.
pub(in crate::engine) struct GivenModels {
    pub(in crate::engine) own: Rc<dyn Model>,
    /// Answers if the own model fails before its first delta.
    pub(in crate::engine) fallback: Option<Rc<dyn Model>>,
    /// Writes summaries. Default: the own model.
    pub(in crate::engine) summariser: Option<Rc<dyn Model>>,
    /// Finds facts to remember. Default: the own model.
    pub(in crate::engine) memory: Option<Rc<dyn Model>>,
    /// Counts tokens in place of our estimate.
    pub(in crate::engine) counter: Option<Counter>,
}

/// A question to a model outside the conversation, for example for a summary.
#[derive(Clone, Copy)]
pub(in crate::engine) struct SideQuestion<'a> {
    pub(in crate::engine) slot: &'a Slot,
    /// The tag of the request.
    pub(in crate::engine) tag: u32,
    pub(in crate::engine) system: &'a str,
    pub(in crate::engine) text: &'a str,
    /// The limit for the tokens of the answer.
    pub(in crate::engine) max_tokens: Option<u64>,
}

/// The models of an agent.
pub(in crate::engine) struct Models {
    given: GivenModels,
    host: Rc<dyn Host>,
    timeouts: Timeouts,
    /// The correction factor of our token estimates, by model.
    scales: RefCell<HashMap<String, f64>>,
    /// The windows that refusals have named, by model.
    windows: RefCell<HashMap<String, u64>>,
}

impl Models {
    pub(in crate::engine) fn new(
        given: GivenModels,
        host: Rc<dyn Host>,
        timeouts: Timeouts,
    ) -> Models {
        Models { given, host, timeouts, scales: RefCell::default(), windows: RefCell::default() }
    }

    /// The model that answers.
    pub(in crate::engine) fn own(&self) -> &dyn Model {
        &*self.given.own
    }

    /// The model that answers if the own model fails.
    pub(in crate::engine) fn fallback(&self) -> Option<&dyn Model> {
        self.given.fallback.as_deref()
    }

    /// The model that writes summaries.
    pub(in crate::engine) fn summariser(&self) -> &dyn Model {
        &**self.given.summariser.as_ref().unwrap_or(&self.given.own)
    }

    /// The model that finds facts to remember.
    pub(in crate::engine) fn memory(&self) -> &dyn Model {
        &**self.given.memory.as_ref().unwrap_or(&self.given.own)
    }

    /// The correction factor of our token estimates for a model.
    pub(in crate::engine) fn scale(&self, model: &str) -> f64 {
        self.scales.borrow().get(model).copied().unwrap_or(1.0)
    }

    /// Sets the correction factor of our token estimates for a model.
    pub(in crate::engine) fn set_scale(&self, model: String, scale: f64) {
        self.scales.borrow_mut().insert(model, scale);
    }

    /// The window of a model, if it is known. If a refusal has named a smaller one than the options, that one counts: a server
    /// can run a model with a smaller window.
    pub(in crate::engine) fn window(&self, model: &dyn Model, tag: u32) -> Option<u64> {
        let given = model.window(tag);
        let named = self.windows.borrow().get(&model.id(tag)).copied();
        given.into_iter().chain(named).min()
    }

    /// Remembers the window that a refusal has named.
    pub(in crate::engine) fn learn_window(&self, model: &dyn Model, tag: u32, refusal: &Error) {
        if let Some(window) = refusal.advice().window {
            self.windows.borrow_mut().insert(model.id(tag), window);
        }
    }

    /// Forgets the window that a refusal has named if the model has accepted a larger request since.
    pub(in crate::engine) fn check_window(&self, model: &dyn Model, tag: u32, accepted: u64) {
        self.windows.borrow_mut().retain(|id, window| *window >= accepted || *id != model.id(tag));
    }

    /// About how many tokens messages have, by our estimate.
    pub(in crate::engine) fn tokens_of(&self, messages: &[Rc<Message>]) -> u64 {
        messages.iter().map(|message| self.tokens_of_one(message)).sum()
    }

    /// About how many tokens a message has.
    pub(in crate::engine) fn tokens_of_one(&self, message: &Message) -> u64 {
        tokens::of_message(message, |text: &str| self.tokens_of_text(text))
    }

    /// About how many tokens tools have.
    pub(in crate::engine) fn tokens_of_tools(&self, tools: &[Rc<ToolSpec>]) -> u64 {
        let of_tool =
            |it: &Rc<ToolSpec>| it.tokens.or_count(|| self.tokens_of_text(&json::to_text(&**it)));
        tools.iter().map(of_tool).sum()
    }

    /// About how many tokens a text has.
    pub(in crate::engine) fn tokens_of_text(&self, text: &str) -> u64 {
        self.given.counter.as_ref().map_or_else(|| tokens::of_text(text), |count| count(text))
    }

    /// Asks a model a question outside the conversation. An answer that does not end is an error, even if more of it
    /// always arrives in time.
    pub(in crate::engine) async fn ask_aside(
        &self,
        model: &dyn Model,
        question: SideQuestion<'_>,
    ) -> Result<ModelReply> {
        let longest = self.timeouts.model.saturating_mul(WHOLE_ANSWER);
        self.in_time(longest, Box::pin(self.ask_at_length(model, question))).await
    }

    async fn ask_at_length(
        &self,
        model: &dyn Model,
        question: SideQuestion<'_>,
    ) -> Result<ModelReply> {
        let SideQuestion { slot, tag, system, text, max_tokens } = question;
        let draft = Message::draft(Role::User, vec![Block::text(text)]);
        let at = now(&*self.host);
        let message = stamped(draft, &*self.host, &at);
        let limit = max_tokens.map(|limit| object_of("maxTokens", limit.into()));
        let (generate, lineage) = (Value::Object(limit.unwrap_or_default()), Lineage::new());
        let request = Request {
            slot,
            tag,
            system,
            messages: &[message],
            lineage: &lineage,
            tools: &[],
            generate: &generate,
            form: None,
        };
        let started = self.host.now_ms();
        let mut deltas = self.in_time(self.timeouts.model, model.ask(request)).await?;
        let mut assembly = Assembly::new(String::new());
        let mut unseen = Vec::new();
        let mut limit_ms = self.timeouts.model;
        let (mut n_bytes, mut is_endless) = (0, false);
        while !is_endless {
            let arrived = match self.in_time(limit_ms, deltas.next()).await {
                // The answer is complete already.
                Err(_) if assembly.is_finished() => break,
                arrived => arrived?,
            };
            if arrived.is_empty() {
                break;
            }
            limit_ms = self.timeouts.idle;
            n_bytes += arrived.iter().map(bytes_of).sum::<u64>();
            is_endless = max_tokens.is_some_and(|limit| n_bytes > limit * BYTES_PER_TOKEN);
            arrived.into_iter().for_each(|delta| assembly.push(delta, &mut unseen));
            unseen.clear();
        }
        let seconds = (self.host.now_ms() - started) / 1_000.0;
        let mut reply = assembly.finish(seconds, &mut unseen);
        if is_endless {
            reply.finish = Finish::Length;
        }
        if reply.finish == Finish::Filter {
            return Err(Error::new(
                ErrorKind::ModelRefused,
                "the provider's filter stopped the answer",
            ));
        }
        Ok(reply)
    }

    async fn in_time<T>(&self, ms: u64, work: Local<'_, Result<T>>) -> Result<T> {
        match race(work, self.host.sleep(ms)).await {
            Either::First(done) => done,
            Either::Second(()) => {
                let message = format!("the model did not answer within {ms} ms");
                Err(Error::new(ErrorKind::ModelTimeout, message))
            }
        }
    }
}

fn bytes_of(delta: &Delta) -> u64 {
    match delta {
        Delta::Text(text) | Delta::Thinking { text, .. } => text.len() as u64,
        _ => 0,
    }
}
