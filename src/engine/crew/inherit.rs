//! What a child may do: no more than its parent may, and no more than was said of the child itself.

use crate::state::{Facts, PermissionMode};

/// The fields of a child, under those of its parent.
pub(super) fn inherited(own: Facts, parent: &Facts) -> Facts {
    let mut facts = own;
    let (may, theirs) = (&mut facts.permission_context, &parent.permission_context);
    if may.is_trivial() {
        // Where nobody has said anything everything may run: that is not for the child of one that has limits.
        *may = theirs.clone();
    } else {
        let limits = theirs.deny_rules.iter().chain(&theirs.ask_rules);
        limits.for_each(|rule| may.remember(rule.clone()));
        may.allow_rules = theirs.allow_rules.clone();
        may.working_directories = theirs.working_directories.clone();
        may.mode = stricter(may.mode, theirs.mode);
    }
    if parent.plan_mode_context.plan_active {
        facts.plan_mode_context = parent.plan_mode_context.clone();
    }
    facts
}

fn stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode {
    let rank = |mode| match mode {
        PermissionMode::Explore => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::Bypass => 4,
    };
    if rank(other) < rank(one) { other } else { one }
}
