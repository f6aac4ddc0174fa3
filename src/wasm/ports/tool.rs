//! A tool written in JavaScript.

use std::rc::Rc;

use js_sys::Promise;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json::{self, Fields, Misread, Read};
use crate::message::Block;
use crate::port::{Opinion, OwnDecision, Tool, ToolRun, ToolSpec};
use crate::wasm::error::{JsResult, from_tool};
use crate::wasm::values::{object, settled_with, value};

#[wasm_bindgen]
extern "C" {
    /// A tool as `src/npm/host/ports.ts` makes it.
    pub type JsTool;
    #[wasm_bindgen(method, catch)]
    fn run(this: &JsTool, tag: u32, id: &str, input: &JsValue) -> JsResult<JsRun>;

    /// The tool's opinion of an input, and which rule contents (a JSON list) match the input.
    #[wasm_bindgen(method, catch)]
    fn judge(this: &JsTool, tag: u32, id: &str, input: &JsValue, rules: &str) -> JsResult<JsRun>;

    /// One run of the tool.
    type JsRun;
    /// A promise of JSON text: the blocks of its answer, or `{ suspended }` with the reason, or `{ own, fits }`.
    #[wasm_bindgen(method, getter)]
    fn output(this: &JsRun) -> Promise;
    /// Tells the tool to stop, but only after Rust has returned.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsRun) -> JsResult<()>;
}

/// A tool that JavaScript implements.
pub(crate) struct CustomTool {
    spec: Rc<ToolSpec>,
    tool: JsTool,
}

impl CustomTool {
    pub(crate) fn new(spec: Rc<ToolSpec>, tool: JsTool) -> CustomTool {
        CustomTool { spec, tool }
    }
}

impl Tool for CustomTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn check<'a>(&'a self, run: ToolRun<'a>, rules: &'a [&'a str]) -> Local<'a, Result<Opinion>> {
        if !self.spec.checks {
            return Box::pin(std::future::ready(Ok(Opinion::of(self.spec.effect))));
        }
        let rules = json::to_text(&rules);
        let begun = self.tool.judge(run.tag, run.tool_call_id, &object(run.input), &rules);
        Box::pin(async move {
            let said = answer(begun).await?;
            let read = || -> Read<Opinion> {
                let fields = Fields::of(&said)?;
                let fits = fields.optional("fits", |it| json::list(it, json::boolean))?;
                Ok(Opinion { own: fields.required("own", own)?, fits, is_edit: false })
            };
            read().map_err(|misread| misread.into_error(ErrorKind::Internal, "the tool's opinion"))
        })
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        let begun = self.tool.run(run.tag, run.tool_call_id, &object(run.input));
        Box::pin(async move {
            let output = answer(begun).await?;
            if let Some(why) = output.get("suspended").and_then(Value::as_str) {
                run.desk.suspend(run.tool_call_id, why);
                return Ok(Vec::new());
            }
            Block::list(&output)
                .map_err(|misread| misread.into_error(ErrorKind::Internal, "the tool's result"))
        })
    }
}

/// The answer of a run.
async fn answer(begun: JsResult<JsRun>) -> Result<Value> {
    let run = begun.map_err(|thrown| from_tool(&thrown))?;
    let mut running = CancelOnDrop { run, over: false };
    let output = settled_with(Ok(running.run.output().into()), |thrown| from_tool(&thrown)).await;
    running.over = true;
    let output = output?.as_string().unwrap_or_default();
    value(&output, ErrorKind::Internal, "the tool's result")
}

fn own(value: &Value) -> Read<OwnDecision> {
    match value.as_str() {
        Some("pass") => Ok(OwnDecision::Pass),
        Some("allow") => Ok(OwnDecision::Allow),
        Some("ask") => Ok(OwnDecision::Ask("the tool wants a person to approve it".to_owned())),
        Some("deny") => Ok(OwnDecision::Deny("the tool itself refuses it".to_owned())),
        _ => Err(Misread::new("allow, ask, deny or pass")),
    }
}

/// A run that is cancelled when it is dropped before its end.
struct CancelOnDrop {
    run: JsRun,
    over: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.run.cancel();
        }
    }
}
