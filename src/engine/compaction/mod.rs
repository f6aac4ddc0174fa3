//! Making the context of a session smaller: during a call (`fit.rs`), or by hand.

pub(in crate::engine) mod estimates;
pub(in crate::engine) mod evicted_files;
pub(in crate::engine) mod fit;
pub(in crate::engine) mod inspect;
pub(in crate::engine) mod summarise;

use std::cell::RefCell;
use std::rc::Rc;

use crate::engine::compaction::summarise::{Prefix, Replacement, Summariser};
use crate::engine::memory::UserMemory;
use crate::engine::models::Models;
use crate::engine::session::edit::Changing;
use crate::engine::session::{AgentSessions, refuse_if_pending};
use crate::error::Error;
use crate::error::ErrorKind;
use crate::event::CompactionReport;
use crate::message::Message;
use crate::policy::compaction::{Keep, cut};
use crate::slot::Slot;
use crate::store::session::Session;

/// Replaces the older messages of a context by a summary. If the summary fails, nothing changes.
pub(in crate::engine) fn compact(
    sessions: &Rc<AgentSessions>,
    models: &Rc<Models>,
    memory: Option<Rc<UserMemory>>,
    slot: &Slot,
) -> Changing<CompactionReport> {
    let (sessions, models, slot) = (Rc::clone(sessions), Rc::clone(models), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        let _exclusive = exclusive.await?;
        let mut session = sessions.open_for_change(&slot).await?;
        refuse_if_pending(&session)?;
        let options = sessions.options();
        let n_fixed = usize::from(session.has_summary());
        let n_stored = session.context.len();
        let size = |message: &Message| models.tokens_of_one(message);
        let keep = options.compaction.keep(models.window(models.own(), 0));
        let place = |keep| cut(&session.context, n_fixed, n_stored, keep, size);
        let Some(n) = place(keep).or_else(|| place(Keep::LEAST)) else {
            return Ok(unchanged(&models, &session));
        };
        if let Some(memory) = memory.filter(|_| options.compaction.flush) {
            memory.flush(&slot).await;
        }
        let spent = RefCell::default();
        let prefix = Prefix { n, n_stored, tag: 0, spent: &spent, by: Replacement::Summary };
        let summariser = Summariser::new(&models, sessions.stored(), &**sessions.host(), options);
        let (summary, report) = summariser.replacement(&session, prefix).await?;
        session.summarise(n, summary);
        if sessions.stored().store_view(&mut session).await? {
            return Ok(report);
        }
        let message = format!("{slot} has changed while it was summarised");
        Err(Error::new(ErrorKind::Superseded, message).hint("nothing was changed; try again"))
    })
}

/// Puts the messages back that the last summary has replaced; later messages stay. Without a summary, nothing changes.
pub(in crate::engine) fn undo(sessions: &Rc<AgentSessions>, slot: &Slot) -> Changing<()> {
    let (sessions, slot) = (Rc::clone(sessions), slot.clone());
    let exclusive = sessions.exclusive(&slot);
    Box::pin(async move {
        let _exclusive = exclusive.await?;
        let session = sessions.open_for_change(&slot).await?;
        refuse_if_pending(&session)?;
        sessions.stored().undo_summary(&session).await
    })
}

/// The report if there is nothing to summarise.
fn unchanged(models: &Models, session: &Session) -> CompactionReport {
    let tokens = models.tokens_of(&session.context) as usize;
    CompactionReport {
        messages_before: session.context.len(),
        messages_after: session.context.len(),
        tokens_before: tokens,
        tokens_after: tokens,
        summary: session.summary(),
    }
}
