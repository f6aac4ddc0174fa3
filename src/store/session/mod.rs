//! One session in memory, and the batches that change it in the store. Nothing here waits or reads a record.

mod batches;
mod changes;
mod edit;
mod loaded;
mod put;
mod turn;
mod view;

pub use changes::{
    Alteration, ContextChange, NewContext, NewSummary, RevisedPiece, Revision, Summary, TurnCommit,
    ViewChange,
};
pub use loaded::{Change, Session};

pub(in crate::store) use batches::{last_line, line};
pub(crate) use put::is_alike;
pub(in crate::store) use put::{Past, put};
pub(in crate::store) use turn::takes_over;
