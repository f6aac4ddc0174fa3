//! Sessions: opening, branches, leases, users, search, repair, export and import.

mod agentscope;
mod branches;
mod cache;
mod checkpoints;
mod head;
mod leases;
mod listing;
mod open_turns;
mod put;
mod repair;
mod search;
mod search_terms;
mod sessions;
mod side_branches;
mod transfer;
mod users;
mod visible;
