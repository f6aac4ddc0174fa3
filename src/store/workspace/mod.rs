//! The files of a workspace, and the paths that name them.

pub mod files;
pub(crate) mod path;
