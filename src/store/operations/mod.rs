//! The operations on stored sessions: load, save a turn, list, repair and so on.
//!
//! The order of reads and commits matters. The head is read first, then the records that belong to it. A commit expects
//! the revision of that head. If the outcome of a commit is unknown, the head is read. If another commit was first, our
//! change is built again on top of it, or stored as a side branch. It never overwrites the other commit.

pub mod branches;
mod calls;
mod edit;
mod history;
mod leases;
mod list;
mod load;
mod open_inputs;
mod partials;
mod repair;
mod resend;
mod resend_from;
mod save_turn;
mod sessions;
mod summaries;
pub mod users;

pub use leases::LeaseState;
pub use partials::{AnsweredInput, PartialAnswer};
pub use save_turn::Saved;
pub use sessions::{OnConflict, Sessions};

pub(in crate::store) use load::missing_entry;
pub(in crate::store) use resend::CloseOpenCalls;
pub(in crate::store) use resend_from::without_later_summaries;
pub(in crate::store) use sessions::{ATTEMPTS, superseded};
