//! The context pass: a request is made to fit before it is sent, and again where the model refuses it as too large.
//!
//! What was never sent can be shown otherwise at no cost. What was sent is a prefix that the provider may have cached:
//! it stays byte for byte what it was until a trigger, and then everything that is to change changes together.

use std::ops::Range;
use std::rc::Rc;

use crate::engine::ask::Asked;
use crate::engine::summarise::Prefix;
use crate::engine::turn::Turn;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::future::{Either, race, rarely};
use crate::message::{Edit, Message, Role};
use crate::policy::compaction::{Keep, Truncation, When, cut};
use crate::policy::eviction::Eviction;
use crate::policy::tokens;
use crate::run::Asking;
use crate::store::session::Session;

impl Turn<'_> {
    /// Asks the model with a request that fits; one that it refuses as too large is made smaller, once.
    pub(super) async fn ask_fitting(
        &self,
        session: &mut Session,
        asking: Asking,
        iteration: u32,
    ) -> Asked {
        if let Err(error) = self.renew_prompt(session).await {
            return Asked::Failed(error, None);
        }
        self.fit(session).await;
        if self.cancel.cause().is_some() {
            return Asked::Stopped(None);
        }
        let mut asked = self.ask_formed(session, asking, iteration).await;
        if self.fade(session, &asked) {
            asked = self.ask_formed(session, asking, iteration).await;
        }
        let Some(error) = overflow(&asked) else { return asked };
        if self.options().compaction.when == When::Never {
            return asked;
        }
        let (before, after) = rarely(self.shrink(session)).await;
        if self.cancel.cause().is_some() {
            return Asked::Stopped(None);
        }
        if after >= before {
            return Asked::Failed(self.too_large(error, after), None);
        }
        let again = self.ask_formed(session, asking, iteration).await;
        if let Some(error) = overflow(&again) {
            return Asked::Failed(self.too_large(error, after), None);
        }
        let (before, after) = (before as usize, after as usize);
        self.outbox.push(Event::OverflowRecovered { before, after });
        again
    }

    /// Shows files of earlier calls no more that the provider could not load: whether there were any. What this call
    /// brings is its caller's to mend.
    fn fade(&self, session: &mut Session, asked: &Asked) -> bool {
        let Asked::Failed(error, None) = asked else { return false };
        if !error.advice().without_files {
            return false;
        }
        let mut has_faded = false;
        for index in 0..self.first.get() {
            let Some(message) = self.whole(session, index) else { continue };
            let edit = Edit::Faded {};
            if edit.apply(&message) != *message {
                self.edit(session, index, &message, edit);
                has_faded = true;
            }
        }
        if has_faded {
            let message =
                "files of earlier messages could not be loaded; the model is told so instead";
            let (code, message) = ("media".to_owned(), message.to_owned());
            self.outbox.push(Event::Warning { code, message });
        }
        has_faded
    }

    /// The pass before a request.
    async fn fit(&self, session: &mut Session) {
        let options = self.options();
        let is_asked = options.eviction.is_some() || options.compaction.when == When::ByTrigger;
        let window = if is_asked { self.window() } else { None };
        let eviction =
            options.eviction.as_ref().map(|eviction| self.readable(eviction).within(window));
        if let Some(eviction) = &eviction {
            let new = self.first.get()..session.context.len();
            self.evict(session, new, eviction);
        }
        let compaction = &options.compaction;
        let is_due = |session: &Session| {
            compaction.is_due(session.context.len(), self.estimate(session), window)
        };
        if compaction.when == When::ByTrigger && is_due(session) {
            rarely(self.reduce(session, eviction)).await;
        }
    }

    /// Changes together whatever was sent and is to change.
    async fn reduce(&self, session: &mut Session, eviction: Option<Eviction>) {
        let (compaction, window) = (&self.options().compaction, self.window());
        if let Some(truncation) = &compaction.truncation {
            let n_old = session.context.len().saturating_sub(compaction.keep_messages);
            self.truncate(session, 0..n_old.min(self.first.get()), truncation);
        }
        if let Some(eviction) = &eviction {
            self.evict(session, 0..session.context.len(), eviction);
        }
        let n = session.context.len();
        if compaction.is_due(n, self.estimate(session), window) && !self.unsummarised.get() {
            self.summarise(session, compaction.keep(window)).await;
        }
        if let Some(most) = self.most() {
            self.squeeze(session, most).await;
        }
    }

    /// Makes a request smaller that the model has refused: how many tokens it had, and has.
    async fn shrink(&self, session: &mut Session) -> (u64, u64) {
        let refused = self.estimate(session);
        // It was larger than the window, whatever we took it for.
        if let Some(window) = self.window().filter(|window| *window > refused) {
            self.rescale(window as f64 / refused.max(1) as f64);
        }
        let before = self.estimate(session);
        let half = before / 2;
        self.squeeze(session, self.most().map_or(half, |most| most.min(before * 9 / 10))).await;
        (before, self.estimate(session))
    }

    /// Makes a request fit by whatever keeps the open turn, the gentlest first.
    async fn squeeze(&self, session: &mut Session, most: u64) {
        let fits = |session: &Session| self.estimate(session) <= most;
        if fits(session) {
            return;
        }
        let last = session.context.iter().rposition(|message| message.role == Role::Assistant);
        self.truncate(session, 0..last.unwrap_or(0), &Truncation::default());
        let eviction = self.readable(&self.options().eviction.clone().unwrap_or_default());
        self.evict_all(session, &eviction.at_most(most as usize / 2));
        if !fits(session) {
            self.summarise(session, Keep::LEAST).await;
        }
        for chars in [4_000, 1_000, 200] {
            if fits(session) {
                return;
            }
            self.evict_all(session, &eviction.at_most(chars));
        }
    }

    /// An eviction that tells the model how to get at the rest, with the tools that it has.
    fn readable(&self, eviction: &Eviction) -> Eviction {
        eviction.read_with(self.visible_tools().iter().map(|spec| spec.name.as_str()))
    }

    fn evict_all(&self, session: &mut Session, eviction: &Eviction) {
        self.evict(session, 0..session.context.len(), eviction);
    }

    /// Shows results that are too large only in part.
    fn evict(&self, session: &mut Session, which: Range<usize>, eviction: &Eviction) {
        for index in which {
            let Some(message) = self.whole(session, index) else { continue };
            let Some((edit, chars)) = eviction.edit(&message) else { continue };
            if let (Some(result), Edit::Evicted { path, .. }) =
                (message.tool_results().next(), &edit)
            {
                let (tool_call_id, path) = (result.id.clone(), path.clone());
                self.outbox.push(Event::Evicted { tool_call_id, path, chars });
            }
            self.edit(session, index, &message, edit);
        }
    }

    /// Cuts long arguments of tool calls.
    fn truncate(&self, session: &mut Session, which: Range<usize>, truncation: &Truncation) {
        for index in which {
            let Some(message) = self.whole(session, index) else { continue };
            if let Some(edit) = truncation.edit(&message) {
                self.edit(session, index, &message, edit);
            }
        }
    }

    /// A message as it was said, if that is at hand.
    fn whole(&self, session: &Session, index: usize) -> Option<Rc<Message>> {
        let message = session.context.get(index)?;
        if let Some(original) = self.live.original(&message.id) {
            return Some(original);
        }
        let stored = session.head.as_ref().and_then(|head| head.edits.of(&message.id));
        let is_shown_whole = stored.or(session.reshaping.edits.of(&message.id)).is_none();
        is_shown_whole.then(|| Rc::clone(message))
    }

    fn edit(&self, session: &mut Session, index: usize, whole: &Rc<Message>, edit: Edit) {
        if let Some(message) = session.context_mut().get_mut(index) {
            *message = Rc::new(edit.apply(whole));
        }
        session.lineage.changed(index);
        session.reshaping.edits.put(&whole.id, edit);
        if index >= self.stored.get() {
            self.live.keep_original(Rc::clone(whole));
        }
    }

    /// Puts a summary in place of the beginning, if one can be made; otherwise nothing changes.
    async fn summarise(&self, session: &mut Session, keep: Keep) {
        let n_fixed = usize::from(session.has_summary());
        let scale = self.scale();
        let size = |it: &Message| (self.agent.tokens_of_one(it) as f64 * scale) as u64;
        let Some(n) = cut(&session.context, n_fixed, self.first.get(), keep, size) else { return };
        let (messages, tokens) = (session.context.len(), self.estimate(session) as usize);
        self.outbox.push(Event::CompactionStart { messages, tokens });
        let n_stored = self.stored.get();
        let prefix = Prefix { n, n_stored, tag: self.tag, spent: &self.spent };
        let condensing = self.agent.condensed(session, prefix);
        let (code, message) = match race(self.cancel.asked(), condensing).await {
            Either::Second(Ok((summary, report))) => {
                session.summarise(n, summary);
                self.agent.note_before_compaction(&session.slot);
                self.first.set(self.first.get() + 1 - n);
                self.stored.set(self.stored.get() + 1 - n);
                return self.outbox.push(Event::CompactionEnd { report });
            }
            Either::Second(Err(error)) => (error.kind(), error.message().to_owned()),
            Either::First(()) => (ErrorKind::Aborted, "the call was stopped".to_owned()),
        };
        self.unsummarised.set(true);
        self.outbox.push(Event::CompactionFailed { code: code.code(), message });
    }

    /// About how many tokens the next request has.
    pub(super) fn estimate(&self, session: &Session) -> u64 {
        (self.counted(session) as f64 * self.scale()) as u64
    }

    fn counted(&self, session: &Session) -> u64 {
        let tools = self.agent.tokens_of_tools(&self.visible_tools());
        let prompt = self.agent.tokens_of_text(&self.prompt.borrow());
        let reminder = self.reminder().map_or(0, |it| self.agent.tokens_of_one(&it));
        prompt + tools + self.agent.tokens_of(&session.context) + reminder
    }

    /// What the model is reminded of, as the session is now.
    pub(super) fn reminder(&self) -> Option<Rc<Message>> {
        self.agent.reminder(self.slot, &self.live.facts.borrow(), &self.brief.borrow())
    }

    /// Learns how the provider counts from what it reports for a request.
    pub(super) fn learn(&self, session: &Session, reported: u64) {
        if self.options().compaction.when == When::ByTrigger {
            let scale = tokens::scaled(self.scale(), self.counted(session), reported);
            self.agent.scales.borrow_mut().insert(self.model().id(self.tag), scale);
        }
    }

    fn rescale(&self, by: f64) {
        let scale = self.scale() * by;
        self.agent.scales.borrow_mut().insert(self.model().id(self.tag), scale);
    }

    fn scale(&self) -> f64 {
        let model = self.model().id(self.tag);
        self.agent.scales.borrow().get(&model).copied().unwrap_or(1.0)
    }

    fn window(&self) -> Option<u64> {
        self.model().window(self.tag)
    }

    /// The most tokens of a request that leave room for an answer.
    fn most(&self) -> Option<u64> {
        let reserve = self.options().compaction.reserve;
        self.window().map(|window| window - reserve.min(window / 4))
    }

    /// The model's refusal, with numbers.
    fn too_large(&self, error: &Error, tokens: u64) -> Error {
        let window = self.window().map(|window| format!(", and the model takes {window}"));
        let message = format!(
            "{}: the smallest request that keeps the question has about {tokens} tokens{}",
            error.message(),
            window.unwrap_or_default()
        );
        let told = Error::new(ErrorKind::ModelContextOverflow, message)
            .hint("say it in parts, or use a model with a larger window");
        match error.cause() {
            Some(cause) => told.because(Rc::clone(cause)),
            None => told,
        }
    }
}

fn overflow(asked: &Asked) -> Option<&Error> {
    match asked {
        Asked::Failed(error, None) if error.kind() == ErrorKind::ModelContextOverflow => {
            Some(error)
        }
        _ => None,
    }
}
