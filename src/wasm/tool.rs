//! A tool written in JavaScript.

use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::message::Block;
use crate::port::{Tool, ToolRun, ToolSpec};
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

    /// One run of it.
    type JsRun;
    /// A promise of the blocks it answers with, as JSON text.
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

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        let begun = self.tool.run(run.tag, run.tool_call_id, &object(run.input));
        Box::pin(async move {
            let mut running = Running {
                run: begun.map_err(|thrown| from_js(thrown, ErrorKind::Internal))?,
                over: false,
            };
            let output = settled(Ok(running.run.output().into()), ErrorKind::Internal).await;
            running.over = true;
            let output = output?.as_string().unwrap_or_default();
            let output = value(&output, ErrorKind::Internal, "the tool's result")?;
            Block::list(&output)
                .map_err(|misread| misread.into_error(ErrorKind::Internal, "the tool's result"))
        })
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
