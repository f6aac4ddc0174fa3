//! Whose call it is, and what is particular to it.

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::call::Overlap;
use crate::json::Object;
use crate::message::{Block, Message, Role};

/// Whose call it is, and what is particular to it.
///
/// ```
/// # use lockgate::engine::RuntimeContext;
/// struct Database(&'static str);
///
/// let context = RuntimeContext::new("alice", "s1").call_id("order-17").with(Database("orders"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuntimeContext {
    pub(super) user: Option<String>,
    pub(super) session: Option<String>,
    pub(super) call_id: Option<String>,
    pub(super) output: Option<Value>,
    pub(super) generate: Option<Object>,
    pub(super) overlap: Option<Overlap>,
    pub(super) attributes: Attributes,
}

impl RuntimeContext {
    /// A call on this user's session of this name.
    pub fn new(user_id: impl Into<String>, session_id: impl Into<String>) -> RuntimeContext {
        let (user, session) = (Some(user_id.into()), Some(session_id.into()));
        RuntimeContext { user, session, ..RuntimeContext::default() }
    }

    /// A call of the anonymous user.
    pub fn anonymous(session_id: impl Into<String>) -> RuntimeContext {
        RuntimeContext { session: Some(session_id.into()), ..RuntimeContext::default() }
    }

    /// Names the call: the same again answers with the stored outcome instead of running twice.
    pub fn call_id(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = Some(call_id.into());
        self
    }

    /// The form that the answer is to have, as JSON Schema.
    pub fn output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Temperature and the like, over the agent's own.
    pub fn generate(mut self, options: Object) -> Self {
        self.generate = Some(options);
        self
    }

    /// What to do if the session has a call already.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = Some(overlap);
        self
    }

    /// A value for the tools and hooks of this call, by name.
    pub fn attribute(mut self, name: impl Into<String>, value: Value) -> Self {
        self.attributes.insert(name, value);
        self
    }

    /// A value for the tools and hooks of this call, by its type.
    pub fn with<T: 'static>(mut self, value: T) -> Self {
        self.attributes.put(value);
        self
    }
}

/// What a caller says: text, a message, or several.
pub struct Said(pub(super) Vec<Message>);

impl From<&str> for Said {
    fn from(text: &str) -> Said {
        Said(vec![Message::draft(Role::User, vec![Block::text(text)])])
    }
}

impl From<String> for Said {
    fn from(text: String) -> Said {
        text.as_str().into()
    }
}

impl From<Message> for Said {
    fn from(message: Message) -> Said {
        Said(vec![message])
    }
}

impl From<Vec<Message>> for Said {
    fn from(messages: Vec<Message>) -> Said {
        Said(messages)
    }
}
