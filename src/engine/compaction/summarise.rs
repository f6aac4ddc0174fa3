//! Makes the message that replaces the oldest messages of a context: a summary by a model, or a note that they are left out.
//! If the text to be summarised does not fit into the model's window, it is summarised in pieces.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::engine::models::{Models, SideQuestion};
use crate::engine::options::Options;
use crate::engine::stamp::{now, stamped};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::CompactionReport;
use crate::future::rarely;
use crate::json::Object;
use crate::message::{Finish, Message, Note, Usage};
use crate::policy::retry;
use crate::policy::summary::{self, SummarySizes};
use crate::port::{Host, Model};
use crate::run::ModelReply;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::id;
use crate::store::session::{Session, Summary};

/// The window that is tried first if the model's window is unknown.
const UNKNOWN_WINDOW: u64 = 120_000;

/// In a smaller window no summary is tried.
const SMALLEST_WINDOW: u64 = 512;

/// What replaces messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Replacement {
    /// A summary. One that the model's limit has cut off is an error.
    Summary,
    /// A summary of at most this many tokens. A longer one, or one that was cut off, is used as far as it goes.
    ShortSummary(u64),
    /// A note that the messages are left out, after the text of an earlier summary.
    NoteAfterSummary,
    /// A note that the messages are left out.
    Note,
}

/// The messages that a summary or a note will replace.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Prefix<'a> {
    /// How many messages, from the beginning of the context.
    pub(in crate::engine) n: usize,
    /// How many messages of the context are stored.
    pub(in crate::engine) n_stored: usize,
    /// The tag of the model requests.
    pub(in crate::engine) tag: u32,
    /// The usage is added here, even if the summary fails.
    pub(in crate::engine) spent: &'a RefCell<Usage>,
    /// What replaces them.
    pub(in crate::engine) by: Replacement,
}

/// Makes summaries.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Summariser<'a> {
    models: &'a Models,
    stored: &'a Sessions,
    host: &'a dyn Host,
    options: &'a Options,
}

impl<'a> Summariser<'a> {
    pub(in crate::engine) fn new(
        models: &'a Models,
        stored: &'a Sessions,
        host: &'a dyn Host,
        options: &'a Options,
    ) -> Summariser<'a> {
        Summariser { models, stored, host, options }
    }

    /// The store with the log.
    pub(in crate::engine) fn stored(self) -> &'a Sessions {
        self.stored
    }

    /// Whether a session is searched for facts when a summary hides what was said.
    pub(in crate::engine) fn flushes(self) -> bool {
        self.options.compaction.flush
    }

    /// What replaces the first messages of a session, and a report of what it changes. The session stays as it is.
    pub(in crate::engine) async fn replacement(
        self,
        session: &Session,
        prefix: Prefix<'_>,
    ) -> Result<(Summary, CompactionReport)> {
        let replaced = session.context.get(..prefix.n).unwrap_or_default();
        let first_kept = session.context.get(prefix.n).filter(|_| prefix.n < prefix.n_stored);
        let cut = match first_kept {
            Some(message) => {
                let found = self.stored.find(session, &message.id).await?.map(|(place, _)| place);
                // A changed message has the id of the message in the log.
                let place = match found.filter(|place| session.shows(&message.id, place)) {
                    None => rarely(self.stored.place_in_revision(session, prefix.n)).await?,
                    found => found,
                };
                let lost = || failed("the first message to keep is not in the log");
                Some(place.ok_or_else(lost)?)
            }
            None => None,
        };
        let message = match prefix.by {
            Replacement::Note => Message::left_out("", self.options.found_by()),
            Replacement::NoteAfterSummary => {
                Message::left_out(&session.summary(), self.options.found_by())
            }
            Replacement::Summary | Replacement::ShortSummary(_) => {
                let text = self.text_of(&session.slot, prefix, replaced).await?;
                Message::of_summary(&text, self.options.found_by())
            }
        };
        let message = self.marked(session, replaced, message);
        let models = self.models;
        let (before, size) = (models.tokens_of(replaced), models.tokens_of_one(&message));
        if size >= before {
            let what = if message.is_note(Note::LeftOut) { "note" } else { "summary" };
            return Err(failed(&format!(
                "the {what} has {size} tokens, and the messages only {before}"
            )));
        }
        let all = models.tokens_of(&session.context);
        let report = CompactionReport {
            messages_before: session.context.len(),
            messages_after: session.context.len() - prefix.n + 1,
            tokens_before: all as usize,
            tokens_after: (all - before + size) as usize,
            summary: message.summary(),
        };
        // This summary also covers an earlier summary that is not stored yet, and the messages that the earlier one
        // replaces.
        let earlier =
            session.view_change.summary.iter().flat_map(|earlier| earlier.replaced.clone());
        let ids = replaced.iter().map(|message| message.id.clone());
        let replaced = earlier.chain(ids).collect();
        let summary = Summary { id: id::random_id(self.host), message, cut, replaced };
        Ok((summary, report))
    }

    /// The message that holds a summary of these messages.
    pub(in crate::engine) fn framed(
        self,
        session: &Session,
        replaced: &[Rc<Message>],
        text: &str,
    ) -> Rc<Message> {
        self.marked(session, replaced, Message::of_summary(text, self.options.found_by()))
    }

    /// The message with an id, a time, and the messages that it replaces.
    fn marked(
        self,
        session: &Session,
        replaced: &[Rc<Message>],
        mut message: Message,
    ) -> Rc<Message> {
        let marks = message.metadata.get_or_insert_default();
        marks.insert("replaces".to_owned(), replaces(session, replaced));
        stamped(message, self.host, &now(self.host))
    }

    /// The text of a summary. If its requests do not fit into the model's window, smaller ones are tried.
    async fn text_of(
        self,
        slot: &Slot,
        prefix: Prefix<'_>,
        messages: &[Rc<Message>],
    ) -> Result<String> {
        let (model, options) = (self.models.summariser(), self.options);
        let text = summary::transcript(messages);
        let known = || self.models.window(model, prefix.tag);
        let mut window = known().unwrap_or(UNKNOWN_WINDOW);
        let scale = self.models.scale(&model.id(prefix.tag));
        let most = match prefix.by {
            Replacement::ShortSummary(most) => Some(most),
            _ => None,
        };
        loop {
            let template = options.compaction.prompt.as_deref();
            let sizes = SummarySizes::within(window, scale, most, template);
            match self.in_pieces(model, (slot, prefix), &text, sizes).await {
                Err(error)
                    if error.kind() == ErrorKind::ModelContextOverflow
                        && window > SMALLEST_WINDOW =>
                {
                    self.models.learn_window(model, prefix.tag, &error);
                    window = known().unwrap_or(window).min(window / 2);
                }
                Err(error) => {
                    let message = format!("no summary could be made: {}", error.message());
                    return Err(failed(&message));
                }
                done => return done,
            }
        }
    }

    async fn in_pieces(
        self,
        model: &dyn Model,
        (slot, prefix): (&Slot, Prefix<'_>),
        text: &str,
        sizes: SummarySizes<'_>,
    ) -> Result<String> {
        let mut so_far = String::new();
        for piece in summary::pieces(text, sizes.piece) {
            let known = if so_far.is_empty() { "" } else { "The summary so far:\n" };
            let messages = format!("{known}{so_far}\n\n{piece}");
            let text = &*summary::prompt(sizes.template, messages.trim_start());
            let max_tokens = sizes.answer;
            let (tag, system) = (prefix.tag, summary::SYSTEM);
            let question = SideQuestion { slot, tag, system, text, max_tokens };
            let reply = self.asked(model, question, prefix.by).await?;
            reply.message.usage.iter().for_each(|usage| prefix.spent.borrow_mut().add(usage));
            if reply.finish == Finish::Length && prefix.by == Replacement::Summary {
                return Err(failed("the summary was cut off at the model's token limit"));
            }
            so_far = reply.message.text();
            if let Some(tokens) = sizes.used {
                so_far = summary::shortened(&so_far, tokens).to_owned();
            }
            // Without it, the next piece would be summarised as if nothing came before.
            if so_far.trim().is_empty() {
                break;
            }
        }
        if so_far.trim().is_empty() {
            return Err(failed("the summary is empty"));
        }
        Ok(so_far)
    }

    /// Asks for a summary. If a refused request waits for it, a failure that passes by itself is retried, because otherwise
    /// messages are left out.
    async fn asked(
        self,
        model: &dyn Model,
        question: SideQuestion<'_>,
        by: Replacement,
    ) -> Result<ModelReply> {
        let mut n = 1;
        loop {
            let answer = self.models.ask_aside(model, question).await;
            let Err(error) = &answer else { return answer };
            if by == Replacement::Summary || error.kind() == ErrorKind::ModelTimeout {
                return answer;
            }
            let wait = retry::wait_ms(self.options.retries, n, error, 0.5);
            let Some(wait_ms) = wait else { return answer };
            self.host.sleep(wait_ms).await;
            n += 1;
        }
    }
}

/// Which messages a summary replaces, including those that an earlier summary replaced.
fn replaces(session: &Session, replaced: &[Rc<Message>]) -> Value {
    let earlier = replaced.first().filter(|_| session.has_summary());
    let earlier = earlier.and_then(|it| it.metadata.as_ref()?.get("replaces"));
    let n_fixed = usize::from(session.has_summary());
    let said = replaced.get(n_fixed..).unwrap_or_default();
    let id = |message: Option<&Rc<Message>>| message.map(|it| Value::from(it.id.clone()));
    let first = earlier.and_then(|it| it.get("first").cloned()).or_else(|| id(said.first()));
    let n_earlier = earlier.and_then(|it| it.get("messages")?.as_u64()).unwrap_or_default();
    let mut members = Object::new();
    members.insert("first".to_owned(), first.unwrap_or_default());
    let last = id(said.last()).or_else(|| earlier?.get("last").cloned());
    members.insert("last".to_owned(), last.unwrap_or_default());
    members.insert("messages".to_owned(), (n_earlier + said.len() as u64).into());
    Value::Object(members)
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::CompactionFailed, message)
        .hint("nothing was changed; try again, or give compaction another model")
}
