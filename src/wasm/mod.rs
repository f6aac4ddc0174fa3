//! The border to JavaScript. Its rules:
//!
//! - Rust makes no promises for users. Every future is a [`PolledTask`] that TypeScript polls inside a `try`, so
//!   TypeScript sees a trap and can reject the promises of its users.
//! - Exported methods take `&self`, never wait, and hold no borrow while JavaScript runs.
//! - JavaScript may throw any value anywhere: every call to it is caught, and the thrown value comes back as `cause`.
//! - Secrets stay outside: no key, token or header value can enter.
//! - The types of both directions are in `src/npm/glue.d.ts`, which the build writes from this folder.
//!
//! What crosses the border, and in which form. The default is JSON text; the other rows say why they differ.
//!
//! | what | format | why |
//! |---|---|---|
//! | requests, options, events, states, histories, messages, tool results, keys, batches | JSON text, a string | one parse on each side; `JSON.parse` reads it fastest, and the glue copies long strings by `encodeInto` |
//! | values of records, bodies of requests and responses | bytes, `Uint8Array` | they are bytes on both sides; a list of values stands beside the JSON that names their keys |
//! | input of tools | a JavaScript value, made by serde-wasm-bindgen | user code reads it, and integers above 2^53 must be BigInts |
//! | records that a store returns | objects `{ key, value, revision }` | stores of users return such objects, and their `value` is bytes |
//! | errors | objects | `cause` must be the same value that was thrown |
//! | numbers, ids, single words | plain arguments | there is nothing to encode |

mod agent;
mod call;
mod error;
mod ports;
mod stores;
mod task;
mod transcript;
mod values;

pub use agent::Agent;
#[cfg(feature = "testing")]
pub use agent::options::options_as_read;
pub use call::Call;
pub use ports::JsPorts;
pub use ports::lock::JsLocks;
pub use stores::{IndexedDb, LocalStore, OpenStore};
pub use task::{JsInstance, PolledTask, install};
#[cfg(feature = "testing")]
pub use task::{trap, trap_later};
pub use transcript::{check_transcript, repair_transcript};
