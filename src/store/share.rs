//! Sharing sessions with other nodes: who waits for whom, who goes on, and who is asked to stop.

use std::rc::Rc;

use crate::error::Result;
use crate::message::Message;
use crate::slot::Slot;
use crate::store::Sessions;
use crate::store::lease::{Node, Open};
use crate::store::records::Landing;
use crate::store::session::Session;
use crate::store::sessions::ATTEMPTS;

/// What becomes of a session that a call has open.
pub enum Kept {
    /// It still has it.
    Ours,
    /// Somebody elsewhere wants the call to stop, and says this next.
    ToStop(Vec<Message>),
    /// Somebody else has it.
    Lost,
}

impl Sessions {
    /// Whether other nodes may have a session open.
    pub fn are_shared(&self) -> bool {
        self.records.node.is_some()
    }

    /// The lease of another node that has the session open, and how many are before this one.
    pub fn barred(&self, session: &Session) -> Option<(Open, usize)> {
        let open = session.head.as_ref()?.open.as_ref()?;
        self.records.as_node(|node| {
            let node = node.filter(|node| open.bars(node))?;
            let place = open.waiting.iter().position(|it| it == node.name);
            Some((open.clone(), 1 + place.unwrap_or(open.waiting.len())))
        })
    }

    /// Takes a place among the nodes that wait for a session; `false` if it has moved on meanwhile.
    pub async fn join_line(&self, session: &mut Session) -> Result<bool> {
        let join = |open: &Open, node: &Node<'_>| open.joined_by(node);
        self.reopen(session, &join).await
    }

    /// Keeps a session open for a call.
    pub async fn keep_open(&self, slot: &Slot, call_id: &str) -> Result<Kept> {
        let mut session = self.load_head(slot).await?;
        let open = session.head.as_ref().and_then(|head| head.open.as_ref());
        let Some(open) = open.filter(|open| open.call_id == call_id) else { return Ok(Kept::Lost) };
        let says = |says: &Vec<Rc<Message>>| says.iter().map(|it| (**it).clone()).collect();
        let kept = open.stop.as_ref().map(says).map_or(Kept::Ours, Kept::ToStop);
        let renew = |open: &Open, node: &Node<'_>| open.renewed(node);
        self.reopen(&mut session, &renew).await.map(|_| kept)
    }

    /// Asks the call that another node runs to stop; its id, if there is one.
    pub async fn ask_to_stop(&self, slot: &Slot, says: &[Rc<Message>]) -> Result<Option<String>> {
        for _ in 0..ATTEMPTS {
            let mut session = self.load_head(slot).await?;
            let Some(call_id) = self.running_elsewhere(&session) else { return Ok(None) };
            let stop = |open: &Open, _: &Node<'_>| {
                let stop = open.stop.clone().unwrap_or_else(|| says.to_vec());
                Some(Open { stop: Some(stop), ..open.clone() })
            };
            if self.reopen(&mut session, &stop).await? {
                return Ok(Some(call_id));
            }
        }
        Ok(None)
    }

    /// Whether another node still runs this call.
    pub async fn still_runs(&self, slot: &Slot, call_id: &str) -> Result<bool> {
        let session = self.load_head(slot).await?;
        Ok(self.running_elsewhere(&session).as_deref() == Some(call_id))
    }

    pub(super) fn running_elsewhere(&self, session: &Session) -> Option<String> {
        let open = session.head.as_ref()?.open.as_ref()?;
        let runs = |node: &Node<'_>| open.is_running(node) && open.bars(node);
        self.records
            .as_node(|node| node.is_some_and(|node| runs(&node)).then(|| open.call_id.clone()))
    }

    /// Changes who has a session open, if that is to change; `false` if somebody was faster.
    async fn reopen(
        &self,
        session: &mut Session,
        decide: &dyn Fn(&Open, &Node<'_>) -> Option<Open>,
    ) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(true) };
        head.check_format(&session.slot)?;
        let open = head.open.as_ref();
        let Some(open) = self.records.as_node(|node| decide(open?, &node?)) else {
            return Ok(true);
        };
        let change = self.records.change(|mint| session.opening(&head, open, mint));
        let landed = matches!(self.records.commit(&change.batch).await?, Landing::Done);
        if landed {
            session.take(change);
        }
        Ok(landed)
    }
}
