//! Messages and JSON as they are read and written, and the checker of tool input.

mod json;
mod message;
mod schema;
