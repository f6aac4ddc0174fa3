//! Ids and times of new messages.

use std::rc::Rc;

use crate::message::{Message, rfc3339};
use crate::port::Host;
use crate::store::id;

/// The current time, in the form that messages use.
pub(in crate::engine) fn now(host: &dyn Host) -> String {
    rfc3339(host.now_ms())
}

/// Gives a draft an id and a time. A message keeps the ones that it has.
pub(in crate::engine) fn stamped(mut message: Message, host: &dyn Host, at: &str) -> Rc<Message> {
    if message.id.is_empty() {
        message.id = id::random_id(host);
    }
    if message.at.is_empty() {
        message.at = at.to_owned();
    }
    Rc::new(message)
}

/// Gives drafts ids and the current time.
pub(in crate::engine) fn all_stamped(
    messages: impl IntoIterator<Item = Message>,
    host: &dyn Host,
) -> Vec<Rc<Message>> {
    let at = now(host);
    messages.into_iter().map(|message| stamped(message, host, &at)).collect()
}
