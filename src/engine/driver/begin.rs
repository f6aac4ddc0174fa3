//! Begins calls: checks the request, and puts the call into the queue at once.

use std::rc::Rc;

use serde_json::Value;

use crate::engine::call::cancel::Cancel;
use crate::engine::call::checkpoints::Checkpoints;
use crate::engine::call::joining::{JoinedCalls, JoiningCall};
use crate::engine::call::live::Live;
use crate::engine::call::outbox::Outbox;
use crate::engine::call::outcome::{Ended, shutting_down};
use crate::engine::call::request::CallRequest;
use crate::engine::call::{Call, CallHandles};
use crate::engine::driver::Driver;
use crate::engine::driver::overlap::{resolve_overlap, wants_to_join};
use crate::engine::driver::place::QueuePlace;
use crate::engine::parts::AgentParts;
use crate::engine::stamp::all_stamped;
use crate::engine::subagent::children::CallChildren;
use crate::engine::subagent::role::ChildRole;
use crate::engine::turn::output::Output;
use crate::error::Result;
use crate::event::Event;
use crate::future::Local;
use crate::state::PermissionRight;
use crate::store::format::input::Input;
use crate::store::id;

/// Begins a call that the application makes.
pub(in crate::engine) fn begin(parts: &Rc<AgentParts>, request: CallRequest) -> Result<Call> {
    if parts.calls.is_closing() {
        return Err(shutting_down());
    }
    resolve_overlap(parts, &request)?;
    begin_as(parts, request, None)
}

/// Begins the call of a subagent.
pub(in crate::engine) fn begin_child(
    parts: &Rc<AgentParts>,
    request: CallRequest,
    role: Rc<ChildRole>,
) -> Result<Call> {
    if parts.calls.is_closing() {
        return Err(shutting_down());
    }
    begin_as(parts, request, Some(role))
}

fn begin_as(
    parts: &Rc<AgentParts>,
    request: CallRequest,
    role: Option<Rc<ChildRole>>,
) -> Result<Call> {
    let joins = wants_to_join(parts, &request);
    let output = request.output.as_ref().map(Output::new).transpose()?;
    let mut generate = parts.options.generate.as_object().cloned().unwrap_or_default();
    generate.extend(request.generate.unwrap_or_default());
    let is_named = request.call_id.is_some();
    let id: Rc<str> = request.call_id.unwrap_or_else(|| id::random_id(&*parts.host)).into();
    let input = Input {
        call_id: id.to_string(),
        named: is_named,
        messages: all_stamped(request.messages, &*parts.host),
        answers: request.answers,
        asked: None,
        resends: request.resends,
        from: request.from,
        holds_permissions: request.right == PermissionRight::Missing,
        earlier: None,
        path: None,
        rest: Default::default(),
    };
    let handles = CallHandles {
        slot: request.slot,
        outbox: Rc::<Outbox>::default(),
        cancel: Cancel::default(),
        live: Rc::<Live>::default(),
        checkpoints: Rc::new(Checkpoints::new(parts.sessions.checkpoint_ms())),
    };
    let CallHandles { slot, outbox, cancel, live, .. } = &handles;
    // This must be the first event. A joining call can be accepted before it is polled, so the event is added here.
    let message_ids = input.messages.iter().map(|message| message.id.clone()).collect();
    outbox.push(Event::CallStart { message_ids });
    let joining = joins.then(|| JoiningCall::new(input.clone(), Rc::clone(outbox), cancel.clone()));
    joining.iter().for_each(|joining| parts.joining.push(slot, joining));
    let depth = role.as_ref().map_or(0, |role| role.depth());
    let driver = Driver {
        _running: parts.calls.add(&id, &handles),
        place: QueuePlace::new(parts.sessions.gate().enter(slot)),
        parts: Rc::clone(parts),
        handles: handles.clone(),
        tag: request.tag,
        input,
        output,
        generate: Value::Object(generate),
        attributes: request.attributes,
        joining,
        joined: JoinedCalls::default(),
        children: Rc::new(CallChildren::new(depth, live, outbox)),
        role,
    };
    let drive: Local<'static, Ended> = Box::pin(driver.drive());
    Ok(Call::new(id, handles, Rc::clone(&parts.host), drive))
}
