//! Fitting a request into the model's window: before it is sent, and again if the model refuses it as too large.
//!
//! A message that was never sent can be shortened at no cost. Messages that were sent may be in the provider's cache.
//! So they stay byte for byte the same until compaction is triggered, and then all of them change at once.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::engine::call::log::CallLog;
use crate::engine::call::scope::CallScope;
use crate::engine::compaction::estimates::Estimates;
use crate::engine::compaction::evicted_files::EvictedFiles;
use crate::engine::compaction::summarise::{Prefix, Replacement, Summariser};
use crate::engine::instructions::Instructions;
use crate::engine::memory::UserMemory;
use crate::engine::models::Models;
use crate::error::ErrorKind;
use crate::event::Event;
use crate::future::{Either, race, rarely};
use crate::message::{Edit, Message, Role, Usage};
use crate::policy::compaction::{self, Keep, Truncation, When, cut};
use crate::policy::eviction::Eviction;
use crate::port::Model;
use crate::slot::Slot;
use crate::store::session::Session;

/// With less room, in tokens, a summary is not worth a request.
const LEAST_ROOM: u64 = 256;

/// The tokens of a summary in addition to its text.
const AROUND_SUMMARY: u64 = 90;

/// Makes the requests of one call fit.
pub(in crate::engine) struct Fitting<'a> {
    scope: &'a CallScope<'a>,
    log: &'a CallLog<'a>,
    estimates: Estimates<'a>,
    summariser: Summariser<'a>,
    memory: Option<&'a UserMemory>,
    files: EvictedFiles<'a>,
    /// Whether the files of evicted results were checked.
    has_adopted: Cell<bool>,
    /// Whether a summary has failed. It is not tried again in this call, unless nothing else helps.
    has_failed: Cell<bool>,
    /// Whether a summary has failed after a refusal. From then on, messages are left out without a summary.
    leaves_out: Cell<bool>,
    /// The usage of the summaries.
    spent: RefCell<Usage>,
}

/// The models that a fitting uses.
#[derive(Clone, Copy)]
pub(in crate::engine) struct FittingModels<'a> {
    pub(in crate::engine) all: &'a Models,
    /// The model that answers in this call.
    pub(in crate::engine) own: &'a dyn Model,
    pub(in crate::engine) summariser: Summariser<'a>,
}

/// What a fitting uses besides models.
#[derive(Clone, Copy)]
pub(in crate::engine) struct FittingParts<'a> {
    pub(in crate::engine) log: &'a CallLog<'a>,
    pub(in crate::engine) instructions: &'a Instructions<'a>,
    pub(in crate::engine) memory: Option<&'a UserMemory>,
    pub(in crate::engine) files: EvictedFiles<'a>,
}

impl<'a> Fitting<'a> {
    pub(in crate::engine) fn new(
        scope: &'a CallScope<'a>,
        parts: FittingParts<'a>,
        models: FittingModels<'a>,
    ) -> Fitting<'a> {
        let FittingParts { log, instructions, memory, files } = parts;
        let FittingModels { all, own, summariser } = models;
        Fitting {
            scope,
            log,
            estimates: Estimates::new(scope, instructions, all, own),
            summariser,
            memory,
            files,
            has_adopted: Cell::new(false),
            has_failed: Cell::new(false),
            leaves_out: Cell::new(false),
            spent: RefCell::default(),
        }
    }

    /// Estimates the requests of the call.
    pub(in crate::engine) fn estimates(&self) -> &Estimates<'a> {
        &self.estimates
    }

    /// Takes the usage of the summaries of this call.
    pub(in crate::engine) fn take_spent(&self) -> Usage {
        self.spent.take()
    }

    /// Whether a request that was refused as too large may be made smaller.
    pub(in crate::engine) fn may_shrink(&self) -> bool {
        self.scope.options.compaction.when != When::Never
    }

    /// The message that holds a summary of these messages.
    pub(in crate::engine) fn summary_message(
        &self,
        session: &Session,
        replaced: &[Rc<Message>],
        text: &str,
    ) -> Rc<Message> {
        self.summariser.framed(session, replaced, text)
    }

    /// Replaces files of earlier calls by a note, because the provider could not load a file. Returns whether there
    /// were any. Files in this call's own input stay, because its caller can correct them.
    pub(in crate::engine) fn remove_files(&self, session: &mut Session) -> bool {
        let mut has_removed = false;
        for index in 0..self.log.first() {
            let Some(message) = self.log.whole(session, index) else { continue };
            let edit = Edit::Faded { results: false };
            if edit.apply(&message) != *message {
                self.log.edit(session, index, &message, edit);
                has_removed = true;
            }
        }
        if has_removed {
            let message =
                "files of earlier messages could not be loaded; the model gets a note instead";
            self.scope.warn("media", message);
        }
        has_removed
    }

    /// Makes the next request fit into the window before it is sent.
    pub(in crate::engine) async fn fit(&self, session: &mut Session) {
        let has_edits = session.head.as_ref().is_some_and(|head| !head.edits.is_empty());
        if has_edits && !self.has_adopted.replace(true) {
            rarely(self.files.adopt(session, self.log)).await;
        }
        let options = self.scope.options;
        let is_asked = options.eviction.is_some() || options.compaction.when == When::ByTrigger;
        let window = if is_asked { self.estimates.window() } else { None };
        let eviction =
            options.eviction.as_ref().map(|it| self.readable(session, it).within(window));
        if let Some(eviction) = &eviction {
            let new = self.log.first()..session.context.len();
            self.evict(session, new, eviction).await;
        }
        let compaction = &options.compaction;
        let is_due = |session: &Session| {
            compaction.is_due(session.context.len(), self.estimate(session), window)
        };
        if compaction.when == When::ByTrigger && is_due(session) {
            rarely(self.reduce(session, eviction)).await;
        }
    }

    /// Shortens messages that were sent before, all at once.
    async fn reduce(&self, session: &mut Session, eviction: Option<Eviction>) {
        let (compaction, window) = (&self.scope.options.compaction, self.estimates.window());
        if let Some(truncation) = &compaction.truncation {
            let n_old = session.context.len().saturating_sub(compaction.keep_messages);
            self.truncate(session, 0..n_old.min(self.log.first()), truncation);
        }
        if let Some(eviction) = &eviction {
            self.evict_all(session, eviction).await;
        }
        let n = session.context.len();
        if compaction.is_due(n, self.estimate(session), window) && !self.has_failed.get() {
            self.summarise(session, compaction.keep(window)).await;
        }
        if let Some(most) = self.estimates.most() {
            self.squeeze(session, (most, None)).await;
        }
    }

    /// Shortens a request that the model has refused, the `n`th time since the last answer. Returns how many tokens it
    /// had, and how many it has now: fewer, unless only the prompt, the tools and the newest turn are left, with short
    /// results.
    pub(in crate::engine) async fn shrink(&self, session: &mut Session, n: u32) -> (u64, u64) {
        self.estimates.raise(self.estimate(session));
        let before = self.estimate(session);
        // Without a limit nobody knows how much is too much, so half of the older messages goes.
        let newest = self.estimate_newest(session);
        let half = before.saturating_sub(newest) / 2;
        if n == 1 {
            let most = self.estimates.most().unwrap_or(newest + half).min(before * 9 / 10);
            self.squeeze(session, (most, Some(most.saturating_sub(newest)))).await;
            if self.estimate(session) > most {
                self.leave_out(session, most.saturating_sub(self.estimate_newest(session))).await;
            }
            self.strip(session, most).await;
        } else {
            self.leave_out(session, half).await;
            self.strip(session, before.saturating_sub(1)).await;
        }
        (before, self.estimate(session))
    }

    /// Makes a request fit by all means that keep the messages of the open turn. The means that remove least come
    /// first. With `room`, the model has refused the request, and this many tokens are left beside the newest turn.
    async fn squeeze(&self, session: &mut Session, (most, room): (u64, Option<u64>)) {
        let fits = |session: &Session| self.estimate(session) <= most;
        if fits(session) {
            return;
        }
        let last = session.context.iter().rposition(|message| message.role == Role::Assistant);
        self.truncate(session, 0..last.unwrap_or(0), &Truncation::default());
        let eviction = self.scope.options.eviction.clone().unwrap_or_default();
        let eviction = self.readable(session, &eviction);
        self.evict_all(session, &eviction.at_most(most as usize / 2)).await;
        match room {
            _ if fits(session) => return,
            Some(room) => self.summarise_shortly(session, room).await,
            None => self.summarise(session, Keep::LEAST).await,
        }
        for chars in [4_000, 1_000, 200] {
            if fits(session) {
                return;
            }
            self.evict_all(session, &eviction.at_most(chars)).await;
        }
    }

    /// Replaces the oldest turns by a summary, so that both fit into about `room` tokens beside the newest turn.
    async fn summarise_shortly(&self, session: &mut Session, room: u64) {
        let n = self.cut_turns(session, room / 4);
        let is_worth_it = room >= LEAST_ROOM && n > usize::from(session.has_summary());
        if is_worth_it && !self.leaves_out.get() {
            let most = (room / 2).saturating_sub(AROUND_SUMMARY);
            let is_made = self.replace(session, n, Replacement::ShortSummary(most)).await;
            self.leaves_out.set(!is_made);
        }
    }

    /// Leaves out the oldest turns, so that about `room` tokens are left beside the newest turn.
    async fn leave_out(&self, session: &mut Session, room: u64) {
        let first = session.context.first().filter(|_| session.has_summary());
        let summary = first.map_or(0, |message| self.estimates.of_message(message));
        let (by, room) = match room.checked_sub(summary) {
            Some(rest) if summary <= rest => (Replacement::NoteAfterSummary, rest),
            _ => (Replacement::Note, room),
        };
        let n = self.cut_turns(session, room);
        let is_more = n > usize::from(session.has_summary());
        if is_more || (n > 0 && by == Replacement::Note && !session.summary().is_empty()) {
            self.replace(session, n, by).await;
        }
    }

    /// Shortens the results and arguments of all messages, also those that are usually shown whole, until the request
    /// fits.
    async fn strip(&self, session: &mut Session, most: u64) {
        if self.estimate(session) <= most {
            return;
        }
        self.recall(session).await;
        let eviction = self.scope.options.eviction.clone().unwrap_or_default();
        let eviction = self.readable(session, &eviction);
        let exclude = eviction.exclude.clone().or(Some(Vec::new()));
        let eviction = Eviction { exclude, ..eviction };
        for max in [4_000, 1_000, 200] {
            self.evict_all(session, &eviction.at_most(max)).await;
            let all = 0..session.context.len();
            self.truncate(session, all, &Truncation { max, text: None });
            if self.estimate(session) <= most {
                return;
            }
        }
    }

    /// Reads the results of the newest turn that are stored with an edit, so that another edit can shorten them more.
    async fn recall(&self, session: &Session) {
        let newest = self.cut_turns(session, 0);
        for (index, message) in session.context.iter().enumerate().skip(newest) {
            if message.role == Role::Tool
                && self.log.whole(session, index).is_none()
                && let Ok(Some((_, whole))) =
                    self.summariser.stored().find(session, &message.id).await
            {
                self.scope.live.keep_original(whole);
            }
        }
    }

    /// The place of the first message that is kept, if about this many tokens are kept before the newest turn.
    fn cut_turns(&self, session: &Session, tokens: u64) -> usize {
        let n_fixed = usize::from(session.has_summary());
        let size = |message: &Message| self.estimates.of_message(message);
        compaction::cut_turns(&session.context, n_fixed, self.log.first(), tokens, size)
    }

    /// The eviction, with the folder of evicted results, and the name of the tool that can read them.
    fn readable(&self, session: &Session, eviction: &Eviction) -> Eviction {
        let tools = self.estimates.tools();
        let names = tools.iter().map(|spec| spec.name.as_str());
        eviction.read_with(names, self.files.folder(session))
    }

    async fn evict_all(&self, session: &mut Session, eviction: &Eviction) {
        self.evict(session, 0..session.context.len(), eviction).await;
    }

    /// Shortens results that are too large.
    async fn evict(&self, session: &mut Session, which: Range<usize>, eviction: &Eviction) {
        for index in which {
            let Some(message) = self.log.whole(session, index) else { continue };
            let Some((edit, chars)) = eviction.edit(&message) else { continue };
            let size = |message: &Message| self.estimates.of_message(message);
            let is_smaller = |shown: &Rc<Message>| {
                Rc::ptr_eq(shown, &message) || size(&edit.apply(&message)) < size(shown)
            };
            if !session.context.get(index).is_some_and(is_smaller) {
                continue;
            }
            if let (Some(result), Edit::Evicted { path, .. }) =
                (message.tool_results().next(), &edit)
            {
                if !path.is_empty() {
                    rarely(self.files.write(session, path, &message)).await;
                }
                let (tool_call_id, path) = (result.id.clone(), path.clone());
                self.scope.emit(Event::Evicted { tool_call_id, path, chars });
            }
            self.log.edit(session, index, &message, edit);
        }
    }

    /// Cuts long arguments of tool calls.
    fn truncate(&self, session: &mut Session, which: Range<usize>, truncation: &Truncation) {
        for index in which {
            // An argument that was cut before can be cut again, so the message that is shown will do.
            let shown = || session.context.get(index).filter(|it| it.role == Role::Assistant);
            let whole = self.log.whole(session, index);
            let Some(message) = whole.or_else(|| shown().cloned()) else { continue };
            if let Some(edit) = truncation.edit(&message) {
                self.log.edit(session, index, &message, edit);
            }
        }
    }

    /// Replaces the beginning of the context by a summary. If the summary fails, nothing changes.
    async fn summarise(&self, session: &mut Session, keep: Keep) {
        let n_fixed = usize::from(session.has_summary());
        let size = |message: &Message| self.estimates.of_message(message);
        let Some(n) = cut(&session.context, n_fixed, self.log.first(), keep, size) else { return };
        if !self.replace(session, n, Replacement::Summary).await {
            self.has_failed.set(true);
        }
    }

    /// Replaces the first `n` messages of the context. Returns whether that succeeded; if not, nothing changes.
    async fn replace(&self, session: &mut Session, n: usize, by: Replacement) -> bool {
        let (messages, tokens) = (session.context.len(), self.estimate(session) as usize);
        self.scope.emit(Event::CompactionStart { messages, tokens });
        let n_stored = self.log.n_stored();
        let prefix = Prefix { n, n_stored, tag: self.scope.tag, spent: &self.spent, by };
        let replacing = self.summariser.replacement(session, prefix);
        let (code, message) = match race(self.scope.cancel.asked(), replacing).await {
            Either::Second(Ok((summary, report))) => {
                session.summarise(n, summary);
                self.note_summarised(&session.slot);
                self.log.summarised(n);
                self.scope.emit(Event::CompactionEnd { report });
                return true;
            }
            Either::Second(Err(error)) => (error.kind(), error.message().to_owned()),
            Either::First(()) => (ErrorKind::Aborted, "the call was stopped".to_owned()),
        };
        self.scope.emit(Event::CompactionFailed { code: code.code(), message });
        false
    }

    /// Lets the memory search the replaced messages for facts.
    fn note_summarised(&self, slot: &Slot) {
        if let Some(memory) = self.memory.filter(|_| self.summariser.flushes()) {
            memory.note_said(slot, true);
        }
    }

    /// About how many tokens the next request has.
    fn estimate(&self, session: &Session) -> u64 {
        self.estimates.of_request(&session.context)
    }

    /// About how many tokens the next request has if it contains only the newest turn.
    fn estimate_newest(&self, session: &Session) -> u64 {
        let newest = session.context.get(self.cut_turns(session, 0)..);
        self.estimates.of_request(newest.unwrap_or_default())
    }
}
