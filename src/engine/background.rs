//! Background work after the reply. It never delays a call and never makes a call fail.

use crate::engine::parts::AgentParts;
use crate::future::{Local, join_all};

/// Whether there is background work.
pub(in crate::engine) fn is_due(parts: &AgentParts) -> bool {
    let has_facts = parts.memory.as_ref().is_some_and(|memory| memory.is_due());
    parts.sessions.indexing().is_due() || parts.children.has_left() || has_facts
}

/// Does the background work: indexes, remembers facts, and runs subagents whose parent's call has ended.
pub(in crate::engine) async fn run(parts: &AgentParts) {
    loop {
        let children = parts.children.take_left();
        let is_last = children.is_empty();
        let mut work = vec![Box::pin(index_and_remember(parts)) as Local<'_, ()>];
        work.extend(children.into_iter().map(|(_, moving)| moving));
        join_all(work).await;
        if is_last {
            return;
        }
    }
}

/// Indexing skips a session that has a call, because both would write to the session at the same time.
async fn index_and_remember(parts: &AgentParts) {
    let sessions = &parts.sessions;
    sessions.indexing().run(sessions.stored(), sessions.gate()).await;
    if let Some(memory) = &parts.memory {
        memory.run().await;
    }
}
