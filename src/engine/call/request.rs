//! The request of a caller: the session, the input, and the options of the call.

use serde_json::Value;

use crate::attributes::Attributes;
use crate::engine::options::Overlap;
use crate::json::Object;
use crate::message::{Block, Message, Role};
use crate::slot::Slot;
use crate::state::PermissionRight;

/// The request of a caller.
pub struct CallRequest {
    /// The session.
    pub slot: Slot,
    /// The input. Without messages and answers, the call continues a turn that was cut off.
    pub messages: Vec<Message>,
    /// Answers to open tool calls, in place of messages.
    pub answers: Vec<Value>,
    /// Whether a question is answered again. If there are messages, they replace the question.
    pub resends: bool,
    /// The id of the earlier question that a resend answers again; `None` for the last question.
    pub from: Option<String>,
    /// Whether the caller may change permissions. Without the right, a resend leaves them as they are.
    pub right: PermissionRight,
    /// The caller's own id for the call. A second call with this id returns the stored outcome.
    pub call_id: Option<String>,
    /// The form of the answer, as JSON Schema.
    pub output: Option<Value>,
    /// Temperature and the like. These options replace the agent's own.
    pub generate: Option<Object>,
    /// What to do if the session has a call already.
    pub overlap: Overlap,
    /// Values for the tools and hooks of this call.
    pub attributes: Attributes,
    /// A number by which models and tools know the call. The caller chooses it; it is never stored.
    pub tag: u32,
}

impl CallRequest {
    /// A text from the user, with default options.
    pub fn new(slot: Slot, text: impl Into<String>) -> CallRequest {
        CallRequest {
            slot,
            messages: vec![Message::draft(Role::User, vec![Block::text(text)])],
            answers: Vec::new(),
            resends: false,
            from: None,
            right: PermissionRight::Given,
            call_id: None,
            output: None,
            generate: None,
            overlap: Overlap::Queue,
            attributes: Attributes::default(),
            tag: 0,
        }
    }
}

/// The session of a call, and the options of the call.
///
/// ```
/// # use lockgate::engine::RuntimeContext;
/// struct Database(&'static str);
///
/// let context = RuntimeContext::new("alice", "s1").call_id("order-17").with(Database("orders"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuntimeContext {
    pub(in crate::engine) user: Option<String>,
    pub(in crate::engine) session: Option<String>,
    pub(in crate::engine) call_id: Option<String>,
    pub(in crate::engine) output: Option<Value>,
    pub(in crate::engine) generate: Option<Object>,
    pub(in crate::engine) overlap: Option<Overlap>,
    pub(in crate::engine) attributes: Attributes,
    pub(in crate::engine) from: Option<String>,
}

impl RuntimeContext {
    /// A call on a session of a user.
    pub fn new(user_id: impl Into<String>, session_id: impl Into<String>) -> RuntimeContext {
        let (user, session) = (Some(user_id.into()), Some(session_id.into()));
        RuntimeContext { user, session, ..RuntimeContext::default() }
    }

    /// A call on a session of the anonymous user.
    pub fn anonymous(session_id: impl Into<String>) -> RuntimeContext {
        RuntimeContext { session: Some(session_id.into()), ..RuntimeContext::default() }
    }

    /// Gives the call an id. A second call with this id returns the stored outcome instead of running again.
    pub fn call_id(mut self, call_id: impl Into<String>) -> Self {
        self.call_id = Some(call_id.into());
        self
    }

    /// The form of the answer, as JSON Schema.
    pub fn output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// Temperature and the like. These options replace the agent's own.
    pub fn generate(mut self, options: Object) -> Self {
        self.generate = Some(options);
        self
    }

    /// The id of an earlier question that `Agent::resend` answers again.
    pub fn from(mut self, message_id: impl Into<String>) -> Self {
        self.from = Some(message_id.into());
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

/// The input of a call: a text, a message, or several messages.
pub struct UserInput(pub(in crate::engine) Vec<Message>);

impl From<&str> for UserInput {
    fn from(text: &str) -> UserInput {
        UserInput(vec![Message::draft(Role::User, vec![Block::text(text)])])
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> UserInput {
        text.as_str().into()
    }
}

impl From<Message> for UserInput {
    fn from(message: Message) -> UserInput {
        UserInput(vec![message])
    }
}

impl From<Vec<Message>> for UserInput {
    fn from(messages: Vec<Message>) -> UserInput {
        UserInput(messages)
    }
}
