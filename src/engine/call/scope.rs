//! What all parts of a call use: its session, its options, and the handle that stops it.

use crate::attributes::Attributes;
use crate::engine::call::cancel::Cancel;
use crate::engine::call::checkpoints::Checkpoints;
use crate::engine::call::live::Live;
use crate::engine::call::outbox::Outbox;
use crate::engine::options::Options;
use crate::event::Event;
use crate::port::Host;
use crate::slot::Slot;

/// What all parts of a call use.
pub(in crate::engine) struct CallScope<'a> {
    pub(in crate::engine) slot: &'a Slot,
    /// The number by which models and tools know the call.
    pub(in crate::engine) tag: u32,
    /// The options of the agent, or of the kind of subagent whose call this is.
    pub(in crate::engine) options: &'a Options,
    pub(in crate::engine) attributes: &'a Attributes,
    pub(in crate::engine) host: &'a dyn Host,
    pub(in crate::engine) outbox: &'a Outbox,
    pub(in crate::engine) cancel: &'a Cancel,
    /// The part of the session that tools and hooks can read and change.
    pub(in crate::engine) live: &'a Live,
    /// How much of the answer is stored before the call ends.
    pub(in crate::engine) checkpoints: &'a Checkpoints,
}

impl CallScope<'_> {
    /// Shows an event to the caller.
    pub(in crate::engine) fn emit(&self, event: Event) {
        self.outbox.push(event);
    }

    /// Warns the caller about a problem that does not end the call.
    pub(in crate::engine) fn warn(&self, code: &str, message: impl Into<String>) {
        self.emit(Event::Warning { code: code.to_owned(), message: message.into() });
    }

    /// Whether the call was told to end early.
    pub(in crate::engine) fn is_stopped(&self) -> bool {
        self.cancel.cause().is_some()
    }
}
