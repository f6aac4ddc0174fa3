//! Making a summary: asking a model for it, in pieces where all at once would not fit.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::engine::Inner;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::CompactionReport;
use crate::future::{Either, Local, race};
use crate::json::{self, Object};
use crate::message::{Block, Finish, FoundBy, Message, Role, Usage, rfc3339};
use crate::policy::summary;
use crate::policy::tokens;
use crate::port::{Lineage, Model, Request, ToolSpec};
use crate::run::{Assembly, Reply};
use crate::slot::Slot;
use crate::store::id;
use crate::store::session::{Session, Summary};

/// How many tokens are summarised at once where nobody knows the model's window.
const UNKNOWN_WINDOW: u64 = 60_000;

/// A piece smaller than this is not cut again.
const SMALLEST_PIECE: u64 = 200;

/// What a summary is to replace.
#[derive(Clone, Copy)]
pub(super) struct Prefix<'a> {
    /// So many messages.
    pub(super) n: usize,
    /// How many messages of the context are stored.
    pub(super) n_stored: usize,
    /// What the model is to know the request by.
    pub(super) tag: u32,
    /// Where the cost is added to, also that of a summary which comes to nothing.
    pub(super) spent: &'a RefCell<Usage>,
}

impl Inner {
    /// A summary of the first messages of a session, and what it does. The session is as it was.
    pub(super) async fn condensed(
        &self,
        session: &Session,
        prefix: Prefix<'_>,
    ) -> Result<(Summary, CompactionReport)> {
        let replaced = session.context.get(..prefix.n).unwrap_or_default();
        let first_kept = session.context.get(prefix.n).filter(|_| prefix.n < prefix.n_stored);
        let cut = match first_kept {
            Some(message) => match self.sessions.find(session, &message.id).await? {
                Some((place, _)) => Some(place),
                None => return Err(failed("a message that is to stay is not in the log")),
            },
            None => None,
        };
        let text = self.summary_of(&session.slot, prefix, replaced).await?;
        if text.trim().is_empty() {
            return Err(failed("the summary is empty"));
        }
        let at = rfc3339(self.host.now_ms());
        let metadata = Some(replaces(session, replaced));
        let found_by = if self.options.compaction.offload && self.options.session_tools {
            FoundBy::SessionTools
        } else {
            FoundBy::Nothing
        };
        let framed = Message::of_summary(&text, found_by);
        let message = Message { id: id::mint(&*self.host), at, metadata, ..framed };
        let (before, size) = (self.tokens_of(replaced), self.tokens_of_one(&message));
        if size >= before {
            return Err(failed(&format!("the summary has {size} tokens in place of {before}")));
        }
        let all = self.tokens_of(&session.context);
        let report = CompactionReport {
            messages_before: session.context.len(),
            messages_after: session.context.len() - prefix.n + 1,
            tokens_before: all as usize,
            tokens_after: (all - before + size) as usize,
            summary: message.summary(),
        };
        // One that is not stored yet goes into this one, with what it would have replaced.
        let earlier = session.reshaping.summary.iter().flat_map(|earlier| earlier.replaced.clone());
        let ids = replaced.iter().map(|message| message.id.clone());
        let replaced = earlier.chain(ids).collect();
        let summary =
            Summary { id: id::mint(&*self.host), message: Rc::new(message), cut, replaced };
        Ok((summary, report))
    }

    /// The text of a summary. Where it does not fit into the model's window, smaller pieces are tried.
    async fn summary_of(
        &self,
        slot: &Slot,
        prefix: Prefix<'_>,
        messages: &[Rc<Message>],
    ) -> Result<String> {
        let model = self.models.summariser.as_ref().unwrap_or(&self.models.own);
        let text = summary::transcript(messages);
        let window = model.window(prefix.tag).map(|window| window / 2);
        let mut budget = window.unwrap_or(UNKNOWN_WINDOW).max(SMALLEST_PIECE);
        loop {
            match self.summary_in_pieces(&**model, (slot, prefix), &text, budget).await {
                Err(error)
                    if error.kind() == ErrorKind::ModelContextOverflow
                        && budget > SMALLEST_PIECE =>
                {
                    budget = (budget / 2).max(SMALLEST_PIECE);
                }
                Err(error) => {
                    let message = format!("no summary could be made: {}", error.message());
                    return Err(failed(&message));
                }
                done => return done,
            }
        }
    }

    async fn summary_in_pieces(
        &self,
        model: &dyn Model,
        (slot, prefix): (&Slot, Prefix<'_>),
        text: &str,
        budget: u64,
    ) -> Result<String> {
        let template = self.options.compaction.prompt.as_deref();
        let mut so_far = String::new();
        for piece in summary::pieces(text, budget) {
            let known = if so_far.is_empty() { "" } else { "The summary so far:\n" };
            let messages = format!("{known}{so_far}\n\n{piece}");
            let text = summary::prompt(template, messages.trim_start());
            let reply = self.ask_aside(model, (slot, prefix.tag), summary::SYSTEM, text).await?;
            reply.message.usage.iter().for_each(|usage| prefix.spent.borrow_mut().add(usage));
            if reply.finish == Finish::Length {
                return Err(failed("the summary was cut at the model's limit of tokens"));
            }
            so_far = reply.message.text();
        }
        Ok(so_far)
    }

    /// What a model answers to a question of our own, beside the conversation.
    pub(super) async fn ask_aside(
        &self,
        model: &dyn Model,
        (slot, tag): (&Slot, u32),
        system: &str,
        text: String,
    ) -> Result<Reply> {
        let draft = Message::draft(Role::User, vec![Block::text(text)]);
        let at = rfc3339(self.host.now_ms());
        let message = Rc::new(Message { id: id::mint(&*self.host), at, ..draft });
        let (generate, lineage) = (Value::Object(Map::new()), Lineage::new());
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
        let timeouts = self.options.timeouts;
        let started = self.host.now_ms();
        let mut deltas = self.in_time(timeouts.model, model.ask(request)).await?;
        let mut assembly = Assembly::new(String::new());
        let mut unseen = Vec::new();
        let mut patience = timeouts.model;
        loop {
            let arrived = self.in_time(patience, deltas.next()).await?;
            if arrived.is_empty() {
                break;
            }
            patience = timeouts.idle;
            arrived.into_iter().for_each(|delta| assembly.push(delta, &mut unseen));
            unseen.clear();
        }
        let seconds = (self.host.now_ms() - started) / 1_000.0;
        let reply = assembly.finish(seconds, &mut unseen);
        if reply.finish == Finish::Filter {
            return Err(Error::new(ErrorKind::ModelRefused, "the provider's filter stopped it"));
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

    /// About how many tokens messages have, as we count.
    pub(super) fn tokens_of(&self, messages: &[Rc<Message>]) -> u64 {
        messages.iter().map(|message| self.tokens_of_one(message)).sum()
    }

    pub(super) fn tokens_of_one(&self, message: &Message) -> u64 {
        let count = |text: &str| self.tokens_of_text(text);
        tokens::of_message(message, count)
    }

    /// About how many tokens tools have.
    pub(super) fn tokens_of_tools(&self, tools: &[Rc<ToolSpec>]) -> u64 {
        let of_tool =
            |it: &Rc<ToolSpec>| it.tokens.or_count(|| self.tokens_of_text(&json::to_text(&**it)));
        tools.iter().map(of_tool).sum()
    }

    pub(super) fn tokens_of_text(&self, text: &str) -> u64 {
        self.models.counter.as_ref().map_or_else(|| tokens::of_text(text), |count| count(text))
    }
}

/// Which messages a summary stands for, also those that an earlier one stood for.
fn replaces(session: &Session, replaced: &[Rc<Message>]) -> Object {
    let earlier = replaced.first().filter(|_| session.has_summary());
    let earlier = earlier.and_then(|it| it.metadata.as_ref()?.get("replaces"));
    let n_fixed = usize::from(session.has_summary());
    let said = replaced.get(n_fixed..).unwrap_or_default();
    let id = |message: Option<&Rc<Message>>| message.map(|it| Value::from(it.id.clone()));
    let first = earlier.and_then(|it| it.get("first").cloned()).or_else(|| id(said.first()));
    let n_earlier = earlier.and_then(|it| it.get("messages")?.as_u64()).unwrap_or_default();
    let mut members = Object::new();
    members.insert("first".to_owned(), first.unwrap_or_default());
    members.insert("last".to_owned(), id(said.last()).unwrap_or_default());
    members.insert("messages".to_owned(), (n_earlier + said.len() as u64).into());
    Object::from_iter([("replaces".to_owned(), Value::Object(members))])
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::CompactionFailed, message)
        .hint("nothing was changed; try again, or give compaction another model")
}
