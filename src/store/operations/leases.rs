//! Leases of sessions, where nodes share a store: waiting, renewing, and asking another node to stop.

use std::rc::Rc;

use crate::error::Result;
use crate::message::Message;
use crate::port::Shared;
use crate::slot::Slot;
use crate::store::format::lease::{Lease, Node};
use crate::store::operations::sessions::ATTEMPTS;
use crate::store::operations::sessions::Sessions;
use crate::store::records::CommitOutcome;
use crate::store::session::Session;

/// The state of the lease of a call.
pub enum LeaseState {
    /// The call still has it.
    Ours,
    /// Another node wants the call to stop; these are the next messages of the user.
    ToStop(Vec<Message>),
    /// Another call has it.
    Lost,
}

impl Sessions {
    /// Whether other nodes may share the store.
    pub fn are_shared(&self) -> bool {
        self.records().are_shared()
    }

    /// Who else can reach the store, as the store says.
    pub fn shared(&self) -> Shared {
        self.records().shared()
    }

    /// The lease of another node that this node must wait for, and the number of nodes before this one.
    pub fn other_lease(&self, session: &Session) -> Option<(Lease, usize)> {
        let open = session.head.as_ref()?.open.as_ref()?;
        self.records().as_node(|node| {
            let node = node.filter(|node| open.bars(node))?;
            let place = open.waiting.iter().position(|it| it == node.name);
            Some((open.clone(), 1 + place.unwrap_or(open.waiting.len())))
        })
    }

    /// Joins the queue of nodes that wait for a session. `false`: the session was changed meanwhile.
    pub async fn wait_for_lease(&self, session: &mut Session) -> Result<bool> {
        let join = |open: &Lease, node: &Node<'_>| open.joined_by(node);
        self.reopen(session, &join).await
    }

    /// Renews the lease of a call.
    pub async fn renew_lease(&self, slot: &Slot, call_id: &str) -> Result<LeaseState> {
        let mut session = self.load_head(slot).await?;
        let open = session.head.as_ref().and_then(|head| head.open.as_ref());
        let Some(open) = open.filter(|open| open.call_id == call_id) else {
            return Ok(LeaseState::Lost);
        };
        let says = |says: &Vec<Rc<Message>>| says.iter().map(|it| (**it).clone()).collect();
        let kept = open.stop.as_ref().map(says).map_or(LeaseState::Ours, LeaseState::ToStop);
        let renew = |open: &Lease, node: &Node<'_>| open.renewed(node);
        self.reopen(&mut session, &renew).await.map(|_| kept)
    }

    /// Asks the call that another node runs to stop. Returns the id of that call, if there is one.
    pub async fn ask_to_stop(&self, slot: &Slot, says: &[Rc<Message>]) -> Result<Option<String>> {
        for _ in 0..ATTEMPTS {
            let mut session = self.load_head(slot).await?;
            let Some(call_id) = self.running_elsewhere(&session) else { return Ok(None) };
            let stop = |open: &Lease, _: &Node<'_>| {
                let stop = open.stop.clone().unwrap_or_else(|| says.to_vec());
                Some(Lease { stop: Some(stop), ..open.clone() })
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

    pub(in crate::store) fn running_elsewhere(&self, session: &Session) -> Option<String> {
        let open = session.head.as_ref()?.open.as_ref()?;
        let runs = |node: &Node<'_>| open.is_running(node) && open.bars(node);
        self.records()
            .as_node(|node| node.is_some_and(|node| runs(&node)).then(|| open.call_id.clone()))
    }

    /// Changes the lease as `decide` says. `false`: another node was faster.
    async fn reopen(
        &self,
        session: &mut Session,
        decide: &dyn Fn(&Lease, &Node<'_>) -> Option<Lease>,
    ) -> Result<bool> {
        let Some(head) = session.head.clone() else { return Ok(true) };
        head.check_format(&session.slot)?;
        let open = head.open.as_ref();
        let Some(open) = self.records().as_node(|node| decide(open?, &node?)) else {
            return Ok(true);
        };
        let change = self.records().change(|host| session.lease_change(&head, open, host));
        let committed = matches!(self.records().commit(&change.batch).await?, CommitOutcome::Done);
        if committed {
            session.take(change);
        }
        Ok(committed)
    }
}
