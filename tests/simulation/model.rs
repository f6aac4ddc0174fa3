//! A model and tools that are slow, fail, hang or answer nothing. The tools count their runs.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use lockgate::error::{Error, ErrorKind, Result};
use lockgate::future::Local;
use lockgate::message::{Block, Delta, Finish};
use lockgate::policy::summary;
use lockgate::port::{Deltas, Model, Opinion, OwnDecision, Request, Tool, ToolRun, ToolSpec};
use lockgate::slot::Slot;
use serde_json::json;

use crate::history::History;
use crate::world::World;

/// Failures before the first part of an answer.
const EARLY: &[ErrorKind] = &[
    ErrorKind::ModelAuth,
    ErrorKind::ModelRateLimit,
    ErrorKind::ModelOverloaded,
    ErrorKind::ModelNetwork,
    ErrorKind::ModelBadRequest,
];
/// Failures in the middle of an answer.
const LATE: &[ErrorKind] =
    &[ErrorKind::ModelTruncated, ErrorKind::ModelNetwork, ErrorKind::ModelRefused];

/// A model with random answers.
pub struct SimModel {
    pub world: Rc<World>,
    pub history: Rc<History>,
    /// How many of a thousand requests fail. Shared, so that the schedule can end the failures.
    pub trouble: Rc<Cell<u64>>,
}

enum End {
    Whole,
    Breaks(ErrorKind),
    Hangs,
}

impl Model for SimModel {
    fn id(&self, _: u32) -> String {
        "simulated".to_owned()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        Box::pin(async move {
            if request.system == summary::SYSTEM {
                return self.condense().await;
            }
            self.history.asked(request);
            let chance = &self.world.chance;
            self.world.lag().await;
            let mut deltas = Vec::new();
            let mut end = End::Whole;
            if chance.permille(self.trouble.get()) {
                match chance.below(10) {
                    5 => {
                        self.world.tally.count("model cut short");
                        self.say(&mut deltas, request.slot);
                        deltas.truncate(1 + chance.below(3) as usize);
                        if let Some(Delta::ToolCall { arguments, .. }) = deltas.last_mut() {
                            arguments.truncate(1);
                        }
                        deltas.push(Delta::Finish(Finish::Length));
                    }
                    6 => {
                        self.world.tally.count("model overflow");
                        self.history.overflowed.set(true);
                        let kind = ErrorKind::ModelContextOverflow;
                        return Err(Error::new(kind, "the simulation says so"));
                    }
                    7..10 => self.say_odd_calls(&mut deltas, request.slot),
                    0 => {
                        self.world.tally.count("model early error");
                        return Err(Error::new(chance.pick(EARLY), "the simulation says so"));
                    }
                    1 => {
                        self.world.tally.count("model hang");
                        self.say(&mut deltas, request.slot);
                        deltas.truncate(chance.below(3) as usize);
                        end = End::Hangs;
                    }
                    2 => {
                        self.world.tally.count("model empty answer");
                        deltas.push(Delta::Finish(Finish::Stop));
                    }
                    _ => {
                        self.world.tally.count("model late error");
                        self.say(&mut deltas, request.slot);
                        deltas.truncate(1 + chance.below(3) as usize);
                        end = End::Breaks(chance.pick(LATE));
                    }
                }
            } else {
                self.say(&mut deltas, request.slot);
            }
            deltas.reverse();
            Ok(Box::new(Answer { world: Rc::clone(&self.world), deltas, end }) as Box<dyn Deltas>)
        })
    }
}

impl SimModel {
    /// A summary, or a failure of it.
    async fn condense<'a>(&self) -> Result<Box<dyn Deltas + 'a>> {
        self.world.lag().await;
        self.world.tally.count("summary");
        let mut deltas = vec![Delta::Text(format!("summary {}", self.world.tick()))];
        let mut end = End::Whole;
        if self.world.chance.permille(self.trouble.get() * 3 / 2) {
            self.world.tally.count("summary trouble");
            match self.world.chance.below(4) {
                0 => return Err(Error::new(ErrorKind::ModelFailed, "the simulation says so")),
                1 => deltas.clear(),
                2 => end = End::Hangs,
                _ => end = End::Breaks(ErrorKind::ModelNetwork),
            }
        }
        Ok(Box::new(Answer { world: Rc::clone(&self.world), deltas, end }))
    }

    /// Tool calls with the same id, or with arguments that are not JSON.
    fn say_odd_calls(&self, deltas: &mut Vec<Delta>, slot: &Slot) {
        let is_twin = self.world.chance.below(2) == 0;
        self.world.tally.count(if is_twin { "model twin calls" } else { "model garbled call" });
        let words = self.history.words("tool", slot).replace(' ', "-");
        for index in 0..2 {
            deltas.push(Delta::ToolCall {
                index,
                id: Some(if is_twin { words.clone() } else { format!("{words}-{index}") }),
                name: Some("quick".to_owned()),
                arguments: if is_twin { "{}" } else { "{\"x\": [1," }.to_owned(),
                provider: None,
            });
        }
        deltas.push(Delta::Finish(Finish::ToolCalls));
    }

    fn say(&self, deltas: &mut Vec<Delta>, slot: &Slot) {
        let chance = &self.world.chance;
        let words = self.history.words("answer", slot);
        let number = words.split(' ').nth(1).unwrap();
        if chance.below(8) == 0 {
            deltas.push(Delta::Thinking { text: format!("thought {number}"), signature: None });
        }
        let tools = if chance.below(3) == 0 { 1 + chance.below(3) } else { 0 };
        for word in 0..chance.below(4).max(u64::from(tools == 0)) {
            deltas.push(Delta::Text(format!("{words}.{word} ")));
        }
        // At the end no tool call may stay open.
        let names: &[&str] = match self.trouble.get() {
            0 => &["quick", "quick", "alone", "missing"],
            _ => &["quick", "quick", "quick", "alone", "missing", "outside", "suspends", "asks"],
        };
        for index in 0..tools {
            deltas.push(Delta::ToolCall {
                index,
                id: Some(format!("tool-{number}-{index}")),
                name: Some(chance.pick(names).to_owned()),
                arguments: "{}".to_owned(),
                provider: None,
            });
        }
        deltas.push(Delta::Finish(if tools > 0 { Finish::ToolCalls } else { Finish::Stop }));
    }
}

struct Answer {
    world: Rc<World>,
    deltas: Vec<Delta>,
    end: End,
}

impl Deltas for Answer {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        Box::pin(async move {
            if self.world.chance.below(3) == 0 {
                self.world.lag().await;
            }
            if let Some(delta) = self.deltas.pop() {
                let mut arrived = vec![delta];
                while self.world.chance.below(2) == 0
                    && let Some(delta) = self.deltas.pop()
                {
                    arrived.push(delta);
                }
                return Ok(arrived);
            }
            match self.end {
                End::Whole => Ok(Vec::new()),
                End::Breaks(kind) => Err(Error::new(kind, "the simulation says so")),
                End::Hangs => pending().await,
            }
        })
    }
}

/// A tool that counts its runs by tool call.
pub struct SimTool {
    world: Rc<World>,
    history: Rc<History>,
    trouble: Rc<Cell<u64>>,
    spec: Rc<ToolSpec>,
}

impl SimTool {
    /// The tools of a node: a parallel tool, a tool that runs alone, two tools whose results come from
    /// outside, and a tool that needs approval.
    pub fn all(model: &SimModel) -> Vec<Rc<dyn Tool>> {
        let tools = [
            ("quick", true),
            ("alone", false),
            ("outside", true),
            ("suspends", true),
            ("asks", true),
        ];
        let tools = tools.map(|(name, parallel)| {
            let spec = ToolSpec::new(name, "", json!({ "type": "object" }));
            let spec = ToolSpec { parallel, external: name == "outside", ..spec };
            Rc::new(SimTool {
                world: Rc::clone(&model.world),
                history: Rc::clone(&model.history),
                trouble: Rc::clone(&model.trouble),
                spec: Rc::new(spec),
            }) as Rc<dyn Tool>
        });
        tools.into()
    }
}

impl Tool for SimTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn check<'a>(&'a self, _: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        let own = if self.spec.name == "asks" {
            OwnDecision::Ask("it asks".into())
        } else {
            OwnDecision::Pass
        };
        Box::pin(async move {
            self.world.lag().await;
            Ok(Opinion { own, ..Opinion::default() })
        })
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(async move {
            self.world.lag().await;
            self.history.did(run.tool_call_id);
            if self.spec.name == "suspends" {
                run.desk.suspend(run.tool_call_id, "ask the clerk");
                return Ok(Vec::new());
            }
            if self.world.chance.permille(self.trouble.get()) {
                if self.world.chance.below(2) == 0 {
                    self.world.tally.count("tool hang");
                    return pending().await;
                }
                self.world.tally.count("tool error");
                return Err(Error::new(ErrorKind::Internal, "the simulation says so"));
            }
            self.world.lag().await;
            Ok(vec![Block::text("done")])
        })
    }
}
