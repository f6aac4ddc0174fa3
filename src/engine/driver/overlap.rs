//! What happens to a new call if its session has a call already: it waits, is refused, interrupts that call, or joins
//! it.

use crate::engine::call::cancel::Cause;
use crate::engine::call::request::CallRequest;
use crate::engine::options::Overlap;
use crate::engine::parts::AgentParts;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;

/// Refuses the new call, or interrupts the running call, if the request says so. If the queue is full, every call is
/// refused.
pub(in crate::engine) fn resolve_overlap(parts: &AgentParts, request: &CallRequest) -> Result<()> {
    let slot = &request.slot;
    let n_calls = parts.sessions.gate().length(slot);
    match request.overlap {
        Overlap::Reject if n_calls > 0 => {
            let message = format!("{slot} already has a call");
            return Err(
                Error::new(ErrorKind::Busy, message).hint("try again when that call has ended")
            );
        }
        Overlap::Interrupt => {
            let running = parts.calls.first(slot);
            running.iter().for_each(|call| call.ask(Cause::Stopped(Vec::new())));
        }
        Overlap::Queue | Overlap::Reject | Overlap::Steer => {}
    }
    let n_waiting = n_calls.saturating_sub(1);
    if n_waiting >= parts.options.queue_limit {
        let message = format!("{n_waiting} calls wait for {slot}");
        return Err(
            Error::new(ErrorKind::Busy, message).hint("wait for some of them, or raise queueLimit")
        );
    }
    Ok(())
}

/// Whether a call joins the running call. A call with an output schema or with its own model options cannot join,
/// because it needs its own turn.
pub(in crate::engine) fn wants_to_join(parts: &AgentParts, request: &CallRequest) -> bool {
    request.overlap == Overlap::Steer
        && parts.sessions.gate().length(&request.slot) > 0
        && !request.messages.is_empty()
        && !request.resends
        && request.output.is_none()
        && request.generate.is_none()
}
