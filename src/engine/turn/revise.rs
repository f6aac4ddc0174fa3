//! What happens before a model request: what has arrived is added, and the hooks may revise the context (an application's own
//! compaction).

use std::rc::Rc;

use crate::engine::turn::Turn;
use crate::engine::turn::join::take_in_joining;
use crate::error::Result;
use crate::future::rarely;
use crate::message::Message;
use crate::policy::revision;
use crate::port::{Hook, Point};
use crate::store::session::Session;

impl Turn<'_> {
    /// Adds what has arrived since the last model request, and lets the hooks revise the context.
    pub(in crate::engine) async fn before_model(&self, session: &mut Session) -> Result<()> {
        take_in_joining(self.setup, self.hooks, session).await?;
        self.tell_of_children(session).await;
        match self.hooks.at(Point::ReviseContext).next() {
            Some(_) => rarely(self.revise(session)).await,
            None => Ok(()),
        }
    }

    /// Asks the hooks for the context to keep from now on.
    async fn revise(&self, session: &mut Session) -> Result<()> {
        // The hooks see what the model would be shown.
        self.fitting.fit(session).await;
        for hook in self.hooks.at(Point::ReviseContext) {
            self.revise_by(hook, session).await?;
        }
        Ok(())
    }

    async fn revise_by(&self, hook: &dyn Hook, session: &mut Session) -> Result<()> {
        let shown = self.setup.scope.live.show(session);
        let (context, summary) = self.hooks.revised_context(hook, session).await?;
        drop(shown);
        let mut revised = context.unwrap_or_else(|| session.context.to_vec());
        if let Some(text) = summary {
            self.put_summary(session, &mut revised, &text);
        }
        let kept = revision::kept(&session.context, &revised);
        let is_same = kept.len() == session.context.len() && kept.iter().all(Option::is_some);
        if is_same {
            return Ok(());
        }
        self.hooks.check_context(hook, &revised)?;
        // What is in the log can be shown in any order, so the turn is stored up to here.
        self.store_part(session).await?;
        let own = self.log.own_shown(session);
        if self.setup.parts.sessions.stored().revise(session, revised, &kept).await? {
            self.log.revised(session, own);
        }
        Ok(())
    }

    /// Puts a summary before the messages, in place of the summary that they begin with. Without a text there is none.
    fn put_summary(&self, session: &Session, revised: &mut Vec<Rc<Message>>, text: &str) {
        let old = session.context.first().filter(|_| session.has_summary());
        revised.retain(|message| old.is_none_or(|old| old.id != message.id));
        match old.filter(|old| old.summary() == text.trim()) {
            Some(old) => revised.insert(0, Rc::clone(old)),
            None if text.trim().is_empty() => {}
            None => {
                let is_kept = |it: &Rc<Message>| revised.iter().any(|kept| kept.id == it.id);
                let replaced: Vec<_> =
                    session.context.iter().filter(|it| !is_kept(it)).cloned().collect();
                revised.insert(0, self.fitting.summary_message(session, &replaced, text));
            }
        }
    }
}
