//! One error for everything: a kind to branch on, a sentence to read, a hint what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::rc::Rc;

/// What an operation that may fail answers with.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! kinds {
    ($($kind:ident $code:literal $status:literal $retry:ident: $doc:literal),+ $(,)?) => {
        /// What went wrong, as callers branch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $(#[doc = $doc] $kind),+ }

        impl ErrorKind {
            /// Every kind there is.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),+];

            /// The word for it in JavaScript and JSON.
            pub fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => $code),+ }
            }

            /// The HTTP status that says the same.
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
    Options "OPTIONS" 400 final: "the agent was given options it cannot work with",
    IdInvalid "ID_INVALID" 400 final: "a user or session id that cannot be one",
    InputInvalid "INPUT_INVALID" 400 final: "what the caller said cannot be understood",
    Busy "BUSY" 429 again: "too many calls wait for this session",
    Reentrant "REENTRANT" 409 final: "a tool or hook called its own session",
    Aborted "ABORTED" 499 final: "the caller's signal fired",
    Timeout "TIMEOUT" 504 again: "the call's own deadline passed",
    Superseded "SUPERSEDED" 409 final: "the session has moved on",
    ShuttingDown "SHUTTING_DOWN" 503 again: "the agent takes no new calls",
    NoSuchSession "NO_SUCH_SESSION" 404 final: "there is no such session",
    NoAnchor "NO_ANCHOR" 409 final: "nothing was asked yet, so nothing can be asked again",
    NotAsking "NOT_ASKING" 409 final: "nothing waits for this answer",
    PendingTools "PENDING_TOOLS" 409 final: "tool calls are still open",
    StoreUnavailable "STORE_UNAVAILABLE" 503 again: "the store cannot be reached",
    StoreTimeout "STORE_TIMEOUT" 504 again: "the store did not answer in time",
    StoreQuota "STORE_QUOTA" 507 final: "the store is full",
    StoreBlocked "STORE_BLOCKED" 503 again: "another page holds the store",
    StoreCorrupt "STORE_CORRUPT" 500 final: "a stored record cannot be read; its bytes are kept",
    StateTooLarge "STATE_TOO_LARGE" 413 final: "a record is larger than the store takes",
    StateVersion "STATE_VERSION" 409 final: "the session was written by a newer version",
    EngineLoad "ENGINE_LOAD" 500 again: "the wasm file could not be loaded",
    EngineCrashed "ENGINE_CRASHED" 500 again: "the engine trapped and was started anew",
    ModelAuth "MODEL_AUTH" 401 final: "the provider refuses the key",
    ModelRateLimit "MODEL_RATE_LIMIT" 429 again: "the provider wants fewer requests",
    ModelOverloaded "MODEL_OVERLOADED" 503 again: "the provider is overloaded",
    ModelContextOverflow "MODEL_CONTEXT_OVERFLOW" 413 final: "the request is larger than the model's window",
    ModelBadRequest "MODEL_BAD_REQUEST" 400 final: "the provider refuses the request",
    ModelTruncated "MODEL_TRUNCATED" 502 again: "the model's stream ended too early",
    ModelTimeout "MODEL_TIMEOUT" 504 again: "the model did not answer in time",
    ModelNetwork "MODEL_NETWORK" 502 again: "the provider cannot be reached",
    ModelRefused "MODEL_REFUSED" 422 final: "the provider's filter stopped the answer",
    ModelFailed "MODEL_FAILED" 502 final: "the model failed",
    OutputInvalid "OUTPUT_INVALID" 422 final: "the model's answer does not fit the schema asked for",
    CompactionFailed "COMPACTION_FAILED" 502 again: "the conversation could not be summarised",
    Middleware "MIDDLEWARE" 500 final: "a hook threw",
    PathInvalid "PATH_INVALID" 400 final: "a path that cannot be one",
    Internal "INTERNAL" 500 final: "a fault of ours",
}

/// Something went wrong: [`kind`](Error::kind) tells what, the text tells a person.
///
/// One pointer wide, so that every `?` on the way up is small.
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

/// What a provider advises with its refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// How long to wait before asking again.
    pub wait_ms: Option<u64>,
    /// How many tokens of an answer would fit.
    pub max_tokens: Option<u64>,
    /// A file that the request names by its address could not be loaded: without such files it may do.
    pub without_files: bool,
}

impl Error {
    /// An error of a kind; the message is lower case, without a full stop.
    #[cold]
    #[inline(never)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (message, advice) = (message.into(), Advice::default());
        Error(Box::new(Parts { kind, message, hint: None, cause: None, second: None, advice }))
    }

    /// Says what to do next.
    #[cold]
    #[inline(never)]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says first where it happened.
    #[cold]
    #[inline(never)]
    pub fn within(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Keeps what was thrown underneath, whole.
    #[cold]
    pub fn because(mut self, cause: Rc<dyn StdError>) -> Self {
        self.0.cause = Some(cause);
        self
    }

    /// Carries an error that came after this one; the first stays the one that counts.
    #[cold]
    pub fn and_then(mut self, second: Error) -> Self {
        self.0.second = Some(second);
        self
    }

    /// Carries what the provider advises.
    #[cold]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.0.advice = advice;
        self
    }

    /// What the provider advises.
    pub fn advice(&self) -> Advice {
        self.0.advice
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence for a person.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, if there is something.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// What was thrown underneath.
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
