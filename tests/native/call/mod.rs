//! Calls: the queue, the gate, how a call ends, and what it reports.

mod decisions;
mod early_end;
mod gate;
mod lifecycle;
mod live_state;
mod steps;
