//! The one error type: a kind to branch on, a message for people, and a hint what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::rc::Rc;

/// The result of an operation that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($kind:ident $code:literal $status:literal $retry:ident: $doc:literal),+ $(,)?) => {
        /// The kind of an error. Callers branch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $(#[doc = $doc] $kind),+ }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),+];

            /// The error code in JavaScript and JSON.
            pub fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => $code),+ }
            }

            /// The matching HTTP status.
            pub fn status(self) -> u16 {
                match self { $(ErrorKind::$kind => $status),+ }
            }

            /// Whether the same call may succeed later without a change.
            pub fn is_retryable(self) -> bool {
                match self { $(ErrorKind::$kind => kinds!(@ $retry)),+ }
            }
        }
    };
    (@ again) => { true };
    (@ final) => { false };
}

kinds! {
    Options "OPTIONS" 400 final: "the agent's options are invalid",
    IdInvalid "ID_INVALID" 400 final: "a user or session id is invalid",
    InputInvalid "INPUT_INVALID" 400 final: "the input of the call is invalid",
    Busy "BUSY" 429 again: "too many calls wait for this session",
    Reentrant "REENTRANT" 409 final: "a tool or hook called its own session",
    Aborted "ABORTED" 499 final: "the caller's signal fired",
    Timeout "TIMEOUT" 504 again: "the call's own deadline passed",
    Superseded "SUPERSEDED" 409 final: "the session has moved on",
    ShuttingDown "SHUTTING_DOWN" 503 again: "the agent takes no new calls",
    NoSuchSession "NO_SUCH_SESSION" 404 final: "there is no such session",
    NoAnchor "NO_ANCHOR" 409 final: "the session has no message of the user that could be sent again",
    NotAsking "NOT_ASKING" 409 final: "the session waits for no such answer",
    PendingTools "PENDING_TOOLS" 409 final: "tool calls are still open",
    StoreUnavailable "STORE_UNAVAILABLE" 503 again: "the store cannot be reached",
    StoreTimeout "STORE_TIMEOUT" 504 again: "the store did not answer in time",
    StoreQuota "STORE_QUOTA" 507 final: "the store is full",
    StoreBlocked "STORE_BLOCKED" 503 again: "another page holds the store",
    StoreCorrupt "STORE_CORRUPT" 500 final: "a stored record cannot be read; its bytes are kept",
    Unauthorized "UNAUTHORIZED" 401 final: "a server does not know who is asking",
    Forbidden "FORBIDDEN" 403 final: "the caller lacks the right to do this",
    StateTooLarge "STATE_TOO_LARGE" 413 final: "a record is larger than the store takes",
    StateVersion "STATE_VERSION" 409 final: "the session was written by a newer version",
    EngineLoad "ENGINE_LOAD" 500 again: "the wasm file could not be loaded",
    EngineCrashed "ENGINE_CRASHED" 500 again: "the engine crashed and was restarted",
    ModelAuth "MODEL_AUTH" 401 final: "the provider refuses the key or the account",
    ModelRateLimit "MODEL_RATE_LIMIT" 429 again: "the provider limits the rate of requests",
    ModelOverloaded "MODEL_OVERLOADED" 503 again: "the provider is overloaded or has an internal error",
    ModelContextOverflow "MODEL_CONTEXT_OVERFLOW" 413 final: "the request is larger than the model's window",
    ModelBadRequest "MODEL_BAD_REQUEST" 400 final: "the provider refuses the request",
    ModelTruncated "MODEL_TRUNCATED" 502 again: "the stream of the model ended too early",
    ModelTimeout "MODEL_TIMEOUT" 504 again: "the model did not answer in time",
    ModelNetwork "MODEL_NETWORK" 502 again: "the provider cannot be reached",
    ModelRefused "MODEL_REFUSED" 422 final: "the provider's filter stopped the reply",
    ModelFailed "MODEL_FAILED" 502 final: "the model failed",
    OutputInvalid "OUTPUT_INVALID" 422 final: "the reply of the model does not match the requested schema",
    CompactionFailed "COMPACTION_FAILED" 502 again: "the conversation could not be summarised",
    Middleware "MIDDLEWARE" 500 final: "a hook (middleware) threw an error",
    PathInvalid "PATH_INVALID" 400 final: "a path is invalid",
    Internal "INTERNAL" 500 final: "an internal error of lockgate",
}

impl ErrorKind {
    /// Whether the provider rejects the content of the request. The same content would be rejected again.
    pub fn is_for_content(self) -> bool {
        use ErrorKind::{ModelBadRequest, ModelContextOverflow, ModelRefused};
        matches!(self, ModelBadRequest | ModelRefused | ModelContextOverflow)
    }
}

/// An error: a [`kind`](Error::kind) for programs and a text for people.
///
/// It has the size of one pointer, so that each `?` adds little code.
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    cause: Option<Rc<dyn StdError>>,
    second: Option<Error>,
    advice: Advice,
}

/// Advice that a provider gives when it refuses a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// How long to wait before the next request.
    pub wait_ms: Option<u64>,
    /// How many tokens a reply can have at most.
    pub max_tokens: Option<u64>,
    /// The model's context window, which a refusal has named.
    pub window: Option<u64>,
    /// The provider could not load a file that the request names by URL. The request may work without such files.
    pub without_files: bool,
}

impl Error {
    /// An error of this kind. The message is in lower case, without a full stop.
    #[cold]
    #[inline(never)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (message, advice) = (message.into(), Advice::default());
        Error(Box::new(Parts { kind, message, hint: None, cause: None, second: None, advice }))
    }

    /// Adds a hint what to do next.
    #[cold]
    #[inline(never)]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Puts the place of the error before the message.
    #[cold]
    #[inline(never)]
    pub fn within(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Keeps the original error as the cause.
    #[cold]
    pub fn with_cause(mut self, cause: Rc<dyn StdError>) -> Self {
        self.0.cause = Some(cause);
        self
    }

    /// Adds an error that came after this one. This one stays the main error.
    #[cold]
    pub fn and_then(mut self, second: Error) -> Self {
        self.0.second = Some(second);
        self
    }

    /// Adds the advice of the provider.
    #[cold]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.0.advice = advice;
        self
    }

    /// The advice of the provider.
    pub fn advice(&self) -> Advice {
        self.0.advice
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, if there is a hint.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The original error, if there is one.
    pub fn cause(&self) -> Option<&Rc<dyn StdError>> {
        self.0.cause.as_ref()
    }

    /// The error that came after this one, such as a failed save.
    pub fn second(&self) -> Option<&Error> {
        self.0.second.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind().code(), self.message())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref()
    }
}
