//! Helpers of all tests: a small executor, a clock moved by hand, builders.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use lockgate::engine::{Agent, Builder, Call, CallRequest, Ended, Options};
use lockgate::error::Result;
use lockgate::future::Local;
use lockgate::message::{Block, Message, Role};
use lockgate::port::{Host, Model, Store, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use lockgate::store::backend::memory_store::MemoryStore;

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a future to its end; panics if it waits for something that cannot come.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    while woken.0.swap(false, Ordering::Relaxed) {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
    }
    panic!("the future waits, and nothing can wake it")
}

/// Runs a future until it waits.
pub fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    let mut future = std::pin::Pin::new(future);
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A clock that moves by hand, and reproducible random numbers.
#[derive(Default)]
pub struct TestHost {
    now: Cell<f64>,
    seed: Cell<u64>,
    sleepers: RefCell<Vec<(f64, Waker)>>,
}

impl TestHost {
    pub fn new() -> Rc<TestHost> {
        thread_local!(static N_HOSTS: Cell<u64> = const { Cell::new(0) });
        let host = TestHost::default();
        host.now.set(1_790_000_000_000.0);
        // Two nodes of one test never create the same id.
        host.seed.set(N_HOSTS.replace(N_HOSTS.get() + 1));
        Rc::new(host)
    }

    /// Lets time pass.
    pub fn pass(&self, ms: f64) {
        self.now.set(self.now.get() + ms);
        let now = self.now.get();
        let due: Vec<_> =
            self.sleepers.borrow_mut().extract_if(.., |(until, _)| *until <= now).collect();
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// The host of a test, shared with the agent.
#[derive(Clone)]
pub struct HostHandle(pub Rc<TestHost>);

/// The prefix of node names that are known to be gone.
pub const DEAD: &str = "dead";

impl Host for HostHandle {
    fn now_ms(&self) -> f64 {
        self.0.now.get()
    }

    fn is_gone(&self, node: &str) -> bool {
        node.starts_with(DEAD)
    }

    fn random(&self, bytes: &mut [u8]) {
        for byte in bytes {
            let next = self
                .0
                .seed
                .get()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.0.seed.set(next);
            *byte = (next >> 56) as u8;
        }
    }

    fn sleep(&self, ms: u64) -> Local<'static, ()> {
        let host = Rc::clone(&self.0);
        let until = host.now.get() + ms as f64;
        Box::pin(std::future::poll_fn(move |context| {
            if host.now.get() >= until {
                return Poll::Ready(());
            }
            host.sleepers.borrow_mut().push((until, context.waker().clone()));
            Poll::Pending
        }))
    }
}

/// An agent over a store, with a hand-cranked clock.
pub fn agent_on(store: &Rc<dyn Store>, model: Rc<dyn Model>) -> Agent {
    builder_on(store, model).build().unwrap()
}

pub fn builder_on(store: &Rc<dyn Store>, model: Rc<dyn Model>) -> Builder {
    let host = HostHandle(TestHost::new());
    Builder::new(Options::new("helper")).model(model).store(Rc::clone(store)).host(Rc::new(host))
}

/// An agent with a store of its own, in memory.
pub fn agent(model: Rc<dyn Model>) -> Agent {
    agent_on(&memory(), model)
}

pub fn memory() -> Rc<dyn Store> {
    Rc::new(MemoryStore::new())
}

pub fn slot(session: &str) -> Slot {
    Slot::new(Some("alice"), session).unwrap()
}

pub fn said(text: &str) -> Vec<Message> {
    vec![Message::draft(Role::User, vec![Block::text(text)])]
}

pub fn request(session: &str, text: &str) -> CallRequest {
    CallRequest::new(slot(session), text)
}

pub fn ask(agent: &Agent, session: &str, text: &str) -> Ended {
    block_on(begin(agent, session, text).finish())
}

pub fn begin(agent: &Agent, session: &str, text: &str) -> Call {
    agent.begin(request(session, text)).unwrap()
}

/// The roles and texts of a session's log.
pub fn told(agent: &Agent, session: &str) -> Vec<String> {
    let history = block_on(agent.history(&slot(session), None, 1_000)).unwrap();
    history
        .iter()
        .map(|message| format!("{:?}: {}", message.role, message.text()).to_lowercase())
        .collect()
}

/// The kind of a note that the engine has written.
pub fn note_kind(message: &Message) -> Option<&str> {
    message.name.as_deref().filter(|name| *name == "system")?;
    message.metadata.as_ref()?.get("note")?.as_str()
}

/// Messages of a history without the state of their turns, which the context does not have.
pub fn unmarked(history: Vec<Rc<Message>>) -> Vec<Rc<Message>> {
    let plain = |mut message: Rc<Message>| {
        Rc::make_mut(&mut message).rest.retain(|name, _| !name.starts_with("turn"));
        message
    };
    history.into_iter().map(plain).collect()
}

/// Waits once, so that others get a turn.
pub async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A tool with any name, which answers "ran".
pub struct Named(pub Rc<ToolSpec>);

impl Tool for Named {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.0
    }

    fn call<'a>(&'a self, _: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(Ok(vec![Block::text("ran")])))
    }
}

/// A record as a version without seals has written it. Whoever changes a record on purpose can also remove its seal.
pub fn unsealed(bytes: &[u8]) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    for name in ["key", "check", "log", "inputs"] {
        value.as_object_mut().unwrap().remove(name);
    }
    serde_json::to_vec(&value).unwrap()
}
