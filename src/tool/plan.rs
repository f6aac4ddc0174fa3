//! `plan_enter`, `plan_write` and `plan_exit`: the model plans first, and a person says whether it is carried out.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Effect, Opinion, Own, Tool, ToolRun, ToolSpec};
use crate::state::PlanModeContext;
use crate::store::files::Files;

/// What a plan tool does.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Enter,
    Write,
    Exit,
}

/// Their names, what a model is told of them, and what they take.
const TOOLS: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Enter,
        "plan_enter",
        "Switches plan mode on: nothing is changed until a plan is approved. For jobs that are large or hard to undo.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        Kind::Write,
        "plan_write",
        "Writes the plan, in place of what was written before: Markdown, with the steps in order.",
        r#"{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}"#,
    ),
    (
        Kind::Exit,
        "plan_exit",
        "Asks the user to approve the plan. Plan mode goes off if they do.",
        r#"{"type":"object","properties":{"summary":{"type":"string","description":"The plan in a few sentences"}}}"#,
    ),
];

/// One of them.
pub struct PlanTool {
    spec: Rc<ToolSpec>,
    kind: Kind,
    /// Where plans are written, unless the session says otherwise.
    file: Rc<str>,
    files: Rc<Files>,
}

/// The three of them, over these files.
pub fn plan_tools(file: &str, files: &Rc<Files>) -> Vec<Rc<dyn Tool>> {
    let file: Rc<str> = file.into();
    let made = TOOLS.iter().map(|(kind, name, description, schema)| {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        let spec = ToolSpec::new(*name, *description, schema);
        let spec =
            Rc::new(ToolSpec { parallel: false, effect: Effect::Notes, checks: true, ..spec });
        let (file, files) = (Rc::clone(&file), Rc::clone(files));
        Rc::new(PlanTool { spec, kind: *kind, file, files }) as Rc<dyn Tool>
    });
    made.collect()
}

impl PlanModeContext {
    /// Begins to plan, in this file unless there is one.
    pub fn enter(&mut self, file: &str) {
        self.plan_active = true;
        self.current_plan_file.get_or_insert_with(|| file.to_owned());
    }
}

impl PlanTool {
    async fn run(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let plan = run.desk.facts().plan_mode_context;
        let file = plan.current_plan_file.as_deref().unwrap_or(&self.file);
        let text = match self.kind {
            Kind::Enter => {
                run.desk.change(&mut |facts| facts.plan_mode_context.enter(file));
                format!(
                    "Plan mode is on. Write the plan to {file} with plan_write, then call plan_exit."
                )
            }
            Kind::Write => {
                let content = run.input.get("content").and_then(Value::as_str).unwrap_or_default();
                if content.trim().is_empty() {
                    let message = "The plan is empty. What was written before is as it was.";
                    return Err(Error::new(ErrorKind::InputInvalid, message));
                }
                self.files.of(run.slot).put(file, content).await?;
                run.desk.change(&mut |facts| {
                    facts.plan_mode_context.current_plan_file = Some(file.to_owned());
                });
                format!("Wrote {file}.")
            }
            Kind::Exit => {
                run.desk.change(&mut |facts| facts.plan_mode_context.plan_active = false);
                format!(
                    "The plan in {file} is approved and plan mode is off. Carry it out, step by step."
                )
            }
        };
        Ok(vec![Block::text(text)])
    }
}

impl PlanTool {
    /// A plan is carried out only if a person says so, whatever else may run in this session.
    async fn opinion(&self, run: ToolRun<'_>) -> Result<Opinion> {
        let plan = run.desk.facts().plan_mode_context;
        let file = plan.current_plan_file.as_deref().unwrap_or(&self.file);
        let own = match self.kind {
            Kind::Enter | Kind::Write => Own::Allow,
            Kind::Exit if !plan.plan_active => Own::Deny("plan mode is off already".to_owned()),
            Kind::Exit if self.files.of(run.slot).read(file).await?.is_none() => {
                Own::Deny("there is no plan yet: write it with plan_write".to_owned())
            }
            Kind::Exit => Own::Danger(format!("the plan in {file} is to be carried out")),
        };
        Ok(Opinion { own, ..Opinion::default() })
    }
}

impl Tool for PlanTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn check<'a>(&'a self, run: ToolRun<'a>, _: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        Box::pin(self.opinion(run))
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(self.run(run))
    }
}
