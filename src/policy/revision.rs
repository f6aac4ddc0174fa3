//! What a hook may make of the context: the rules for its answer, and which messages stay as they are.

use std::collections::HashSet;
use std::rc::Rc;

use crate::message::{Message, Role};

/// Checks that no id is used twice, and that each tool call has exactly one result right after it. Returns what was expected
/// instead.
pub fn check(context: &[Rc<Message>]) -> Result<(), String> {
    if context.is_empty() {
        return Err("at least one message".to_owned());
    }
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for message in context {
        if !ids.insert(&*message.id) {
            return Err(format!("messages with different ids, not two with \"{}\"", message.id));
        }
        if message.role == Role::Tool {
            for result in message.tool_results() {
                let call = open.iter().position(|call| *call == result.id);
                let Some(call) = call else {
                    return Err(format!("the tool call right before its result \"{}\"", result.id));
                };
                open.swap_remove(call);
            }
            continue;
        }
        check_closed(&open)?;
        open = message.tool_uses().map(|call| &*call.id).collect();
    }
    check_closed(&open)
}

fn check_closed(open: &[&str]) -> Result<(), String> {
    match open.first() {
        Some(call) => Err(format!("a result right after the tool call \"{call}\"")),
        None => Ok(()),
    }
}

/// For each message of a revised context: the index of the same message in the context before, if it is unchanged and in the same
/// order.
pub fn kept(before: &[Rc<Message>], revised: &[Rc<Message>]) -> Vec<Option<usize>> {
    let mut next = 0;
    let mut same = |message: &Rc<Message>| {
        let rest = before.get(next..).unwrap_or_default();
        let at = next + rest.iter().position(|it| it.id == message.id)?;
        let known = before.get(at).filter(|it| **it == *message)?;
        next = at + 1;
        Some(known).map(|_| at)
    };
    revised.iter().map(&mut same).collect()
}
