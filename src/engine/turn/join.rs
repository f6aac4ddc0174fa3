//! Takes in the calls that want to join: their messages become part of the running turn.

use std::rc::Rc;

use crate::engine::call::joining::JoiningCall;
use crate::engine::turn::hooks::Hooks;
use crate::engine::turn::setup::TurnSetup;
use crate::error::Result;
use crate::future::rarely;
use crate::store::format::input::Input;
use crate::store::session::Session;

/// Takes in the calls that want to join, before the model is asked.
pub(in crate::engine) async fn take_in_joining(
    setup: TurnSetup<'_>,
    hooks: Hooks<'_>,
    session: &mut Session,
) -> Result<()> {
    let waiting = setup.parts.joining.take(setup.scope.slot);
    if waiting.is_empty() { Ok(()) } else { rarely(take_in(setup, hooks, session, waiting)).await }
}

async fn take_in(
    setup: TurnSetup<'_>,
    hooks: Hooks<'_>,
    session: &mut Session,
    waiting: Vec<Rc<JoiningCall>>,
) -> Result<()> {
    let TurnSetup { scope, parts, joined, .. } = setup;
    for call in waiting.iter().filter(|call| !call.is_cancelled()) {
        // A call whose id was used before, or that cannot be accepted now, stays in the queue.
        if !is_new(setup, session, call.input()).await {
            continue;
        }
        call.try_at(session.head.as_ref().map(|head| head.next));
        let accepting = parts.sessions.stored().accept(session, call.input());
        if !accepting.await.unwrap_or(false) {
            continue;
        }
        joined.add(call, scope.cancel);
        scope.checkpoints.join(&call.input().call_id, session.revision.clone());
        let messages = call.input().messages.clone();
        let n_before = session.context.len();
        session.context_mut().extend(messages.iter().cloned());
        let shown = scope.live.show(session);
        let hooked = hooks.on_call(messages).await?;
        drop(shown);
        session.context_mut().truncate(n_before);
        session.context_mut().extend(hooked);
    }
    Ok(())
}

/// Whether the id of the call was not used before: neither by an ended call nor by a part of this call.
async fn is_new(setup: TurnSetup<'_>, session: &Session, input: &Input) -> bool {
    let is_part = setup.input.call_id == input.call_id || setup.joined.has(&input.call_id);
    let made = || setup.parts.sessions.stored().outcome(session, &input.call_id);
    !input.named || (!is_part && made().await.is_ok_and(|made| made.is_none()))
}
