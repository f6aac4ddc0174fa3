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
use crate::port::{Opinion, Own, Tool, ToolRun, ToolSpec};
use crate::wasm::error::from_js;
use crate::wasm::js::{object, settled, value};

#[wasm_bindgen]
extern "C" {
    /// The tool as `src/npm/host.ts` hands it over.
    pub(super) type JsTool;
    #[wasm_bindgen(method, catch)]
    fn run(
        this: &JsTool,
        tag: u32,
        id: &str,
        input: &JsValue,
    ) -> std::result::Result<JsRun, JsValue>;

    /// What it says of an input, and which of these contents of rules, a JSON list, fit it.
    #[wasm_bindgen(method, catch)]
    fn judge(
        this: &JsTool,
        tag: u32,
        id: &str,
        input: &JsValue,
        rules: &str,
    ) -> std::result::Result<JsRun, JsValue>;

    /// One run of it.
    type JsRun;
    /// A promise of the blocks it answers with, as JSON text; or of `{ suspended }` and why; or of `{ own, fits }`.
    #[wasm_bindgen(method, getter)]
    fn output(this: &JsRun) -> Promise;
    /// Tells it to stop, soon: never while we are still on the stack.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsRun) -> std::result::Result<(), JsValue>;
}

/// A tool that JavaScript runs.
pub(super) struct CustomTool {
    pub(super) spec: Rc<ToolSpec>,
    pub(super) tool: JsTool,
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

/// What a run answers with.
async fn answer(begun: std::result::Result<JsRun, JsValue>) -> Result<Value> {
    let run = begun.map_err(|thrown| from_js(thrown, ErrorKind::Internal))?;
    let mut running = Running { run, over: false };
    let output = settled(Ok(running.run.output().into()), ErrorKind::Internal).await;
    running.over = true;
    let output = output?.as_string().unwrap_or_default();
    value(&output, ErrorKind::Internal, "the tool's result")
}

fn own(value: &Value) -> Read<Own> {
    match value.as_str() {
        Some("pass") => Ok(Own::Pass),
        Some("allow") => Ok(Own::Allow),
        Some("ask") => Ok(Own::Ask("the tool wants a person to approve it".to_owned())),
        Some("deny") => Ok(Own::Deny("the tool itself refuses it".to_owned())),
        _ => Err(Misread::new("allow, ask, deny or pass")),
    }
}

/// A run that is told to stop when nobody waits for it any more.
struct Running {
    run: JsRun,
    over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.run.cancel();
        }
    }
}
