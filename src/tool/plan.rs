//! `plan_enter`, `plan_write` and `plan_exit`: the model writes a plan, and a person approves or refuses it.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Effect, Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use crate::state::PlanModeContext;
use crate::store::workspace::files::Files;

/// What a plan tool does.
#[derive(Clone, Copy, PartialEq)]
enum PlanAction {
    Enter,
    Write,
    Exit,
}

/// Names, descriptions and input schemas of the tools.
const TOOLS: &[(PlanAction, &str, &str, &str)] = &[
    (
        PlanAction::Enter,
        "plan_enter",
        "Switches plan mode on: nothing is changed until a plan is approved. For jobs that are large or hard to undo.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        PlanAction::Write,
        "plan_write",
        "Writes the plan, in place of what was written before: Markdown, with the steps in order.",
        r#"{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}"#,
    ),
    (
        PlanAction::Exit,
        "plan_exit",
        "Asks the user to approve the plan. Plan mode goes off if they do.",
        r#"{"type":"object","properties":{"summary":{"type":"string","description":"The plan in a few sentences"}}}"#,
    ),
];

/// One of the plan tools.
pub struct PlanTool {
    spec: Rc<ToolSpec>,
    kind: PlanAction,
    /// The file for the plan, unless the session names another.
    file: Rc<str>,
    files: Rc<Files>,
}

/// The three tools, for these files.
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
    /// Enters plan mode. The plan goes into this file, unless the session has one already.
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
            PlanAction::Enter => {
                run.desk.change(&mut |facts| facts.plan_mode_context.enter(file));
                format!(
                    "Plan mode is on. Write the plan to {file} with plan_write, then call plan_exit."
                )
            }
            PlanAction::Write => {
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
            PlanAction::Exit => {
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
    /// A person must approve every plan, even if the permissions of the session allow everything.
    async fn opinion(&self, run: ToolRun<'_>) -> Result<Opinion> {
        let plan = run.desk.facts().plan_mode_context;
        let file = plan.current_plan_file.as_deref().unwrap_or(&self.file);
        let own = match self.kind {
            PlanAction::Enter | PlanAction::Write => OwnDecision::Allow,
            PlanAction::Exit if !plan.plan_active => {
                OwnDecision::Deny("plan mode is off already".to_owned())
            }
            PlanAction::Exit if self.files.of(run.slot).read(file).await?.is_none() => {
                OwnDecision::Deny("there is no plan yet: write it with plan_write".to_owned())
            }
            PlanAction::Exit => {
                OwnDecision::Danger(format!("the plan in {file} is to be carried out"))
            }
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
