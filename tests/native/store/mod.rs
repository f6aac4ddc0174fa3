//! Stores: the list of rules, wrong stores, keys, and values larger than a cell.

mod chunks;
mod corruption;
mod damage;
pub mod flaws;
mod key;
mod older_version;
mod rules;
