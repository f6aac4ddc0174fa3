//! Refuses stores that lack a capability that sessions need.

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::{Capabilities, Shared};
use crate::store::backend::chunks;

/// Refuses a store on which turns could be lost, judged by the capabilities that it declares.
pub fn check(capabilities: Capabilities) -> Result<()> {
    let refused =
        |message: &str, hint: &str| Err(Error::new(ErrorKind::Options, message).hint(hint));
    if !capabilities.atomic {
        return refused(
            "the store is not atomic: a crash could leave half a turn",
            "use a store whose commit is all or nothing: indexedDbStore() in a page, or a database",
        );
    }
    let is_shared = matches!(capabilities.shared, Shared::Host | Shared::Cluster);
    if is_shared && !capabilities.compare_and_set {
        return refused(
            "the store is shared but cannot compare revisions: turns would overwrite each other",
            "use a store with compareAndSet, such as Redis, MySQL or files",
        );
    }
    if capabilities.max_value_bytes.is_some_and(|most| most < chunks::SMALLEST) {
        return refused(
            "the store accepts only a few bytes per value",
            "use a store whose maxValueBytes is at least 64, or null",
        );
    }
    Ok(())
}
