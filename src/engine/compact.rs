//! A person looks at the context, has it summarised, or takes a summary back.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

use crate::engine::Agent;
use crate::engine::Inner;
use crate::engine::alter::Changing;
use crate::engine::meet::nothing_open;
use crate::engine::outcome::shutting_down;
use crate::engine::summarise::Prefix;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::event::CompactionReport;
use crate::json;
use crate::message::{Block, Edit, Message};
use crate::policy::compaction::{Keep, cut};
use crate::slot::Slot;
use crate::store::session::Session;

/// How often a session that moves on is read again.
const ATTEMPTS: u32 = 8;

/// What the next request would hold, piece by piece.
#[derive(Debug, Serialize)]
pub struct ContextReport {
    /// How many tokens the model takes, if that is known.
    pub window: Option<u64>,
    /// About how many tokens the request has.
    pub tokens: u64,
    /// What it is made of, in order.
    pub parts: Vec<Part>,
}

/// A piece of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// What it is: system, tools, summary, message or reminder.
    pub kind: &'static str,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The messages that a summary stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Value>,
    /// Where all of it can be read, if it is shown in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicted_to: Option<String>,
    /// About how many tokens it has.
    pub tokens: u64,
    /// What it says.
    pub text: String,
}

impl Agent {
    /// Puts a summary in place of the older messages of a context. A failed one changes nothing.
    pub fn compact(&self, slot: &Slot) -> Changing<CompactionReport> {
        let (agent, slot, ticket) = (Rc::clone(&self.0), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.hold(&slot).await?;
            let mut session = agent.opened(&slot).await?;
            nothing_open(&session)?;
            let n_fixed = usize::from(session.has_summary());
            let n_stored = session.context.len();
            let size = |message: &Message| agent.tokens_of_one(message);
            let keep = agent.options.compaction.keep(agent.models.own.window(0));
            let place = |keep| cut(&session.context, n_fixed, n_stored, keep, size);
            let Some(n) = place(keep).or_else(|| place(Keep::LEAST)) else {
                return Ok(agent.unchanged(&session));
            };
            let spent = RefCell::default();
            let prefix = Prefix { n, n_stored, tag: 0, spent: &spent };
            let (summary, report) = agent.condensed(&session, prefix).await?;
            session.summarise(n, summary);
            if agent.sessions.reshape(&mut session).await? {
                agent.note_before_compaction(&slot);
                return Ok(report);
            }
            let message = format!("{slot} has moved on while it was summarised");
            Err(Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again"))
        })
    }

    /// Shows again what the last summary has replaced; what was said since stays. Without one, nothing changes.
    pub fn undo_compaction(&self, slot: &Slot) -> Changing<()> {
        let (agent, slot, ticket) = (Rc::clone(&self.0), slot.clone(), self.0.gate.enter(slot));
        Box::pin(async move {
            ticket.admitted().await;
            let _held = agent.hold(&slot).await?;
            let session = agent.opened(&slot).await?;
            nothing_open(&session)?;
            agent.sessions.undo_summary(&session).await
        })
    }

    /// What the next request of a session would hold, before hooks have seen it.
    pub async fn inspect(&self, slot: &Slot) -> Result<ContextReport> {
        let agent = &self.0;
        let session = agent.sessions.load(slot, None).await?;
        let facts = session.facts();
        let (brief, _) = agent.brief(slot, &facts).await;
        let tools = agent.tools_on(&facts.tool_context.activated_groups, &brief);
        let prompt = agent.instructions(&agent.options.system_prompt, &brief);
        let plain = |kind, tokens, text: String| Part {
            kind,
            message_id: None,
            replaces: None,
            evicted_to: None,
            tokens,
            text,
        };
        let mut parts = Vec::new();
        if !prompt.is_empty() {
            parts.push(plain("system", agent.tokens_of_text(&prompt), prompt));
        }
        if !tools.is_empty() {
            parts.push(plain("tools", agent.tokens_of_tools(&tools), json::to_text(&tools)));
        }
        for (index, message) in session.context.iter().enumerate() {
            let is_summary = index == 0 && session.has_summary();
            let edit = session.head.as_ref().and_then(|head| head.edits.of(&message.id));
            let kind = if is_summary { "summary" } else { "message" };
            let replaces = message.metadata.as_ref().and_then(|it| it.get("replaces").cloned());
            parts.push(Part {
                message_id: Some(message.id.clone()),
                replaces: replaces.filter(|_| is_summary),
                evicted_to: match edit {
                    Some(Edit::Evicted { path, .. }) => Some(path.clone()),
                    _ => None,
                },
                ..plain(kind, agent.tokens_of_one(message), words(message))
            });
        }
        if let Some(reminder) = agent.reminder(slot, &facts, &brief) {
            parts.push(plain("reminder", agent.tokens_of_one(&reminder), words(&reminder)));
        }
        let tokens = parts.iter().map(|part| part.tokens).sum();
        Ok(ContextReport { window: agent.models.own.window(0), tokens, parts })
    }
}

impl Inner {
    /// A session that is to be changed by hand, recovered, and there.
    pub(super) async fn opened(&self, slot: &Slot) -> Result<Session> {
        if self.closing.get() {
            return Err(shutting_down());
        }
        self.cache.borrow_mut().take(slot);
        for _ in 0..ATTEMPTS {
            self.save_unsaved(slot).await?;
            let mut session = self.open(slot, None, None).await?;
            if !self.recover(&mut session).await? {
                continue;
            }
            if session.head.is_none() {
                let message = format!("there is no {slot}");
                return Err(Error::new(ErrorKind::NoSuchSession, message));
            }
            return Ok(session);
        }
        let message = format!("{slot} changes faster than it can be changed by hand");
        Err(Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again"))
    }

    /// What is told where there is nothing to summarise.
    fn unchanged(&self, session: &Session) -> CompactionReport {
        let tokens = self.tokens_of(&session.context) as usize;
        CompactionReport {
            messages_before: session.context.len(),
            messages_after: session.context.len(),
            tokens_before: tokens,
            tokens_after: tokens,
            summary: session.summary(),
        }
    }
}

/// What a message says, for a person.
fn words(message: &Message) -> String {
    let block = |block: &Block| match block {
        Block::Text { text, .. } => text.clone(),
        Block::Thinking { thinking, .. } => thinking.clone(),
        Block::ToolUse(call) => format!("{}({})", call.name, call.input),
        Block::ToolResult(result) => Block::text_of(&result.output),
        Block::Media { name, .. } => format!("[{}]", name.as_deref().unwrap_or("file")),
        Block::Other(other) => json::to_text(other),
    };
    message.content.iter().map(block).collect::<Vec<_>>().join("\n")
}
