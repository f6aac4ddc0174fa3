//! Values of the host that a batch needs: random words, the time, and the name of this node.

use crate::message::rfc3339;
use crate::store::format::lease::Node;

/// Random words, the time and our node, for one batch.
#[derive(Clone, Copy)]
pub struct HostValues<'a> {
    /// Returns a short random word.
    pub word: &'a dyn Fn() -> String,
    /// Milliseconds since 1970.
    pub now_ms: f64,
    /// This node, where nodes share the store.
    pub node: Option<Node<'a>>,
}

impl HostValues<'_> {
    pub(in crate::store) fn epoch(&self) -> String {
        (self.word)()
    }

    pub(in crate::store) fn nonce(&self) -> String {
        (self.word)()
    }

    pub(in crate::store) fn at(&self) -> String {
        rfc3339(self.now_ms)
    }
}
