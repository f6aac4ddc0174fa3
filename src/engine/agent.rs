//! The public methods of an agent: calls, reads, changes of sessions, and background work.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::agent_for_caller::AgentForCaller;
use crate::engine::background;
use crate::engine::call::Call;
use crate::engine::call::cancel::Cause;
use crate::engine::call::request::{CallRequest, RuntimeContext, UserInput};
use crate::engine::compaction::inspect::{ContextReport, inspect};
use crate::engine::compaction::{self};
use crate::engine::driver::begin::begin;
use crate::engine::instructions::Instructions;
use crate::engine::options::Options;
use crate::engine::parts::AgentParts;
use crate::engine::session::edit::{self, Changing};
use crate::engine::session::indexing::index_now;
use crate::engine::session::transfer::{self, Format};
use crate::engine::session::{lease, users};
use crate::engine::subagent::children::Child;
use crate::engine::tool_list::{self, ToolInfo};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::{Ask, CompactionReport};
use crate::message::Message;
use crate::port::Page;
use crate::run::open;
use crate::slot::Slot;
use crate::state::{AgentState, PermissionContext, PermissionRight};
use crate::store::format::session_info::SessionInfo;
use crate::store::operations::branches::Branch;
use crate::store::operations::users::UserInfo;
use crate::store::search::{Query, SearchHit};
use crate::store::workspace::files::OwnerFiles;

/// One agent with many sessions. Each session runs one call at a time.
#[derive(Clone)]
pub struct Agent(Rc<AgentParts>);

impl Agent {
    pub(in crate::engine) fn new(parts: Rc<AgentParts>) -> Agent {
        Agent(parts)
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The slot of these ids. Missing ids get the agent's defaults.
    pub fn slot(&self, user: Option<&str>, session: Option<&str>) -> Result<Slot> {
        let options = &self.0.options;
        if user.is_none() && options.require_user_id {
            return Err(Error::new(ErrorKind::IdInvalid, "userId is missing")
                .hint("this agent requires a userId"));
        }
        let Some(session) = session.or(options.default_session_id.as_deref()) else {
            let hint = "name a sessionId, or give the agent a defaultSessionId";
            return Err(Error::new(ErrorKind::IdInvalid, "sessionId is missing").hint(hint));
        };
        Slot::new(user, session)
    }

    /// The name of the lock that keeps other tabs out of the session.
    pub fn lock_name(&self, slot: &Slot) -> String {
        self.0.sessions.stored().keys(slot).lock()
    }
}

/// Calls. A call is queued at once, and makes progress only when it is polled.
impl Agent {
    /// Sends an input to a session.
    pub fn call(&self, input: impl Into<UserInput>, context: RuntimeContext) -> Result<Call> {
        self.begin(CallRequest { messages: input.into().0, ..self.request(context)? })
    }

    /// Answers open approvals, or gives the results of suspended tools, and continues. The caller may answer only some
    /// of the open questions. An answer is JSON: `{ toolCallId, output }` or
    /// `{ toolCallId, approve, input?, reason?, remember? }`.
    pub fn confirm(&self, answers: Vec<Value>, context: RuntimeContext) -> Result<Call> {
        if answers.is_empty() {
            return Err(open::not_asking("the list of answers is empty"));
        }
        self.begin(CallRequest { answers, ..self.request(context)? })
    }

    /// Continues a turn that a shutdown, a crash or a failure cut off.
    pub fn resume(&self, context: RuntimeContext) -> Result<Call> {
        self.begin(self.request(context)?)
    }

    /// Answers a question again, from the state before it: the earlier question of `context`, otherwise the last one. With an
    /// input, the input replaces the question. What came after the question becomes a branch. If the resend fails, it stays
    /// current.
    pub fn resend(&self, input: Option<UserInput>, context: RuntimeContext) -> Result<Call> {
        let messages = input.map(|said| said.0).unwrap_or_default();
        let from = context.from.clone();
        self.begin(CallRequest { messages, resends: true, from, ..self.request(context)? })
    }

    /// Begins a call from a request that the caller has built.
    pub fn begin(&self, request: CallRequest) -> Result<Call> {
        begin(&self.0, request)
    }

    /// A request without an input.
    fn request(&self, context: RuntimeContext) -> Result<CallRequest> {
        let RuntimeContext {
            user, session, call_id, output, generate, overlap, attributes, ..
        } = context;
        Ok(CallRequest {
            slot: self.slot(user.as_deref(), session.as_deref())?,
            messages: Vec::new(),
            answers: Vec::new(),
            resends: false,
            from: None,
            right: PermissionRight::Given,
            call_id,
            output,
            generate,
            overlap: overlap.unwrap_or(self.0.options.overlap),
            attributes,
            tag: 0,
        })
    }

    /// Stops the session's running call. The messages become the user's next messages. `false`: no call runs.
    pub fn interrupt(&self, slot: &Slot, says: Vec<Message>) -> bool {
        let running = self.0.calls.first(slot);
        if let Some(call) = &running {
            call.ask(Cause::Stopped(says));
        }
        running.is_some()
    }

    /// Stops the call that another node runs on the session. `false`: there is no such call, or it did not stop in
    /// time.
    pub async fn interrupt_elsewhere(&self, slot: &Slot, says: Vec<Message>) -> Result<bool> {
        lease::interrupt_elsewhere(&self.0.sessions, slot, says).await
    }

    /// The subagent whose call has this tag.
    pub fn child(&self, tag: u32) -> Option<Rc<Child>> {
        self.0.children.find_by_tag(tag)
    }

    /// How many sessions have calls now.
    pub fn n_busy(&self) -> usize {
        self.0.sessions.gate().n_slots()
    }

    /// Takes no new calls. Waiting calls end at once. Running calls end after their current step; they are saved and
    /// marked, so that the next call continues from there.
    pub fn shut_down(&self) {
        self.0.calls.close(1);
    }

    /// Stores what is new in the answers of all running calls now, because the process or the page may end.
    pub fn checkpoint(&self) {
        self.0.calls.checkpoint();
    }

    /// Ends all calls and the search for facts at once.
    pub fn shut_down_now(&self) {
        self.0.calls.close(0);
        self.0.memory.iter().for_each(|memory| memory.stop());
    }
}

/// Reads.
impl Agent {
    /// The stored AgentState of a session. A session that does not exist has a fresh state of version 0.
    pub async fn state(&self, slot: &Slot) -> Result<AgentState> {
        Ok(self.0.sessions.stored().load(slot, None).await?.state())
    }

    /// The questions of a session that wait for an answer.
    pub async fn asks(&self, slot: &Slot) -> Result<Vec<Ask>> {
        let stored = self.0.sessions.stored();
        let mut asks = open::asks(&stored.load(slot, None).await?.context);
        if !asks.is_empty() {
            // An answer counts as used once it is accepted, even if its call still runs or has crashed.
            let inputs = stored.inputs(slot).await?;
            let answers = || inputs.iter().flat_map(|input| &input.answers);
            asks.retain(|ask| !answers().any(|answer| open::is_about(answer, ask)));
        }
        Ok(asks)
    }

    /// The newest messages of the log before a message, oldest first, unshortened.
    pub async fn history(
        &self,
        slot: &Slot,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.0.sessions.stored().history(slot, before, limit).await
    }

    /// The newest messages of a branch before a message, oldest first, unshortened.
    pub async fn history_of(
        &self,
        slot: &Slot,
        branch: Option<&str>,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Rc<Message>>> {
        self.0.sessions.stored().history_of(slot, branch, before, limit).await
    }

    /// The branches of a session. Each comes after the branch from which it separates. Empty if there is no session.
    pub async fn branches(&self, slot: &Slot) -> Result<Vec<Branch>> {
        self.0.sessions.stored().branches(slot).await
    }

    /// The entry of a session in the session list; `None` if there is no such session.
    pub async fn session(&self, slot: &Slot) -> Result<Option<SessionInfo>> {
        edit::info(&self.0.sessions, slot).await
    }

    /// The sessions of a user, newest first.
    pub async fn list_sessions(&self, user: Option<&str>, page: Page) -> Result<Vec<SessionInfo>> {
        let mut infos = self.0.sessions.stored().list_sessions(user, page).await?;
        for info in &mut infos {
            let slot = Slot::new(info.user_id.as_deref(), &info.session_id)?;
            info.running |= self.0.calls.first(&slot).is_some();
        }
        Ok(infos)
    }

    /// The users that have sessions, in the order of their keys.
    pub async fn list_users(&self, page: Page) -> Result<Vec<UserInfo>> {
        self.0.sessions.stored().list_users(page).await
    }

    /// The messages of a user, or of one session, that match a query best.
    pub async fn search(&self, query: Query<'_>) -> Result<Vec<SearchHit>> {
        self.0.lookup.find(query, self.0.sessions.indexing()).await
    }

    /// The contents of the next request of a session, before middleware changes it.
    pub async fn inspect(&self, slot: &Slot) -> Result<ContextReport> {
        let parts = &self.0;
        let instructions = Instructions::new(parts.sources(&parts.options), slot, None);
        inspect(parts.sessions.stored(), &parts.models, &instructions).await
    }

    /// All tools, in the order in which the model gets them. Without a slot, or for a session that does not exist, the
    /// tools are those of a fresh session.
    pub async fn tools(&self, slot: Option<&Slot>) -> Result<Vec<ToolInfo>> {
        tool_list::list(&self.0, slot).await
    }

    /// The session as a document.
    pub async fn export_session(&self, slot: &Slot, format: Format) -> Result<String> {
        transfer::export(&self.0.sessions, slot, format).await
    }

    /// The files of a user. Without a user, if files are kept per session: the files of the agent's default session.
    pub fn files(&self, user: Option<&str>) -> Result<OwnerFiles<'_>> {
        let files = self.0.files.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Options, "the agent has no workspace")
                .hint("create the agent with workspace: true, or memory: true")
        })?;
        if !files.is_per_session(user) {
            // The files do not depend on the session, but the userId is still checked.
            return self.slot(user, Some("files")).map(|slot| files.of(&slot));
        }
        let slot = self.slot(None, None).map_err(|error| {
            error.hint("without a userId each session has its own files: pass a userId, or set defaultSessionId")
        })?;
        Ok(files.of(&slot))
    }
}

/// Changes of a session. A change is queued at once, like a call.
impl Agent {
    /// Empties the context. The log keeps all messages. Nothing else changes.
    pub fn clear_context(&self, slot: &Slot) -> Changing<()> {
        edit::clear_context(&self.0.sessions, slot)
    }

    /// Appends messages to the log and the context without asking the model.
    pub fn append(&self, slot: &Slot, messages: Vec<Message>) -> Changing<Vec<Rc<Message>>> {
        edit::append(&self.0.sessions, slot, messages)
    }

    /// Gives a session another title.
    pub fn rename_session(&self, slot: &Slot, title: String) -> Changing<()> {
        edit::rename(&self.0.sessions, slot, title)
    }

    /// Changes what the tools of a session may do. Open approvals stay open; their answers are judged by the new rules.
    pub fn change_permissions(
        &self,
        slot: &Slot,
        change: impl Fn(&mut PermissionContext) + 'static,
    ) -> Changing<()> {
        edit::change_permissions(&self.0.sessions, slot, change)
    }

    /// Turns plan mode on.
    pub fn enter_plan_mode(&self, slot: &Slot) -> Changing<()> {
        edit::enter_plan_mode(&self.0.sessions, slot)
    }

    /// Turns plan mode off, even if the plan was not approved.
    pub fn exit_plan_mode(&self, slot: &Slot) -> Changing<()> {
        edit::exit_plan_mode(&self.0.sessions, slot)
    }

    /// The methods that can change permissions, for a caller with this right.
    pub fn with_right(&self, right: PermissionRight) -> AgentForCaller<'_> {
        AgentForCaller::new(&self.0.sessions, right)
    }

    /// Replaces the state of a session, if the session has not changed since the state was read.
    pub fn put_state(&self, slot: &Slot, state: &Value) -> Result<Changing<()>> {
        self.with_right(PermissionRight::Given).put_state(slot, state)
    }

    /// Replaces the older messages of a context by a summary. If the summary fails, nothing changes.
    pub fn compact(&self, slot: &Slot) -> Changing<CompactionReport> {
        let AgentParts { sessions, models, memory, .. } = &*self.0;
        compaction::compact(sessions, models, memory.clone(), slot)
    }

    /// Puts the messages back that the last summary has replaced; later messages stay. Without a summary, nothing
    /// changes.
    pub fn undo_compaction(&self, slot: &Slot) -> Changing<()> {
        compaction::undo(&self.0.sessions, slot)
    }

    /// Makes another branch current, with the state that the branch had when it was left.
    pub fn switch_branch(&self, slot: &Slot, branch: String) -> Changing<()> {
        self.with_right(PermissionRight::Given).switch_branch(slot, branch)
    }

    /// Copies a session into a new one: all of it, or up to and including the message `up_to`. An existing session with
    /// messages is not replaced.
    pub fn fork(
        &self,
        slot: &Slot,
        to: &Slot,
        up_to: Option<String>,
    ) -> Changing<Option<SessionInfo>> {
        self.with_right(PermissionRight::Given).fork(slot, to, up_to)
    }

    /// Creates a session from a document. An existing session with messages is not replaced.
    pub fn import_session(&self, slot: &Slot, text: &str) -> Result<Changing<Option<SessionInfo>>> {
        self.with_right(PermissionRight::Given).import_session(slot, text)
    }

    /// Repairs a session with unreadable records: its head is rebuilt from its log. Unreadable bytes are kept apart. A
    /// readable session is not changed.
    pub fn repair_session(&self, slot: &Slot) -> Changing<Option<SessionInfo>> {
        edit::repair(&self.0.sessions, slot)
    }

    /// Deletes a session. Its running call ends without being saved; its waiting calls end with NO_SUCH_SESSION.
    pub fn delete_session(&self, slot: &Slot) -> Changing<()> {
        edit::delete(&self.0.sessions, slot)
    }

    /// Deletes all data of a user. Running calls end without being saved; waiting calls end with NO_SUCH_SESSION.
    pub fn delete_user(&self, user: Option<&str>) -> Changing<()> {
        users::delete_user(&self.0.sessions, user)
    }
}

/// Background work, for which no call waits.
impl Agent {
    /// Whether there is background work.
    pub fn has_work(&self) -> bool {
        background::is_due(&self.0)
    }

    /// Whether memory holds something that is not stored: turns whose save has failed, or background work.
    pub fn is_needed(&self) -> bool {
        self.has_work() || self.0.sessions.has_unsaved()
    }

    /// Does the background work. This includes running the subagents whose parent's call has ended.
    pub async fn afterwards(&self) {
        background::run(&self.0).await;
    }

    /// Brings the search index of a session up to date, if enough of the session is new.
    pub async fn index(&self, slot: &Slot) -> Result<()> {
        index_now(self.0.sessions.stored(), slot).await
    }
}
