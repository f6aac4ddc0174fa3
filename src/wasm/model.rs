//! A model written in JavaScript.

use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Delta;
use crate::port::{Deltas, Model, Request, ToolSpec};
use crate::wasm::error::from_js;
use crate::wasm::js::settled;

#[wasm_bindgen]
extern "C" {
    /// The model as `src/npm/host.ts` hands it over.
    pub(super) type JsModel;
    /// The model of a call.
    #[wasm_bindgen(method, catch)]
    fn id(this: &JsModel, tag: u32) -> std::result::Result<String, JsValue>;
    /// How many messages of a lineage JavaScript has, none of them newer than `unchanged`.
    #[wasm_bindgen(method, catch)]
    fn known(this: &JsModel, lineage: f64, unchanged: f64) -> std::result::Result<u32, JsValue>;
    /// Begins an answer; `added` is the messages after the known ones.
    #[wasm_bindgen(method, catch)]
    fn ask(
        this: &JsModel,
        tag: u32,
        lineage: f64,
        added: &str,
        rest: &str,
    ) -> std::result::Result<JsDeltas, JsValue>;

    /// An answer that JavaScript pumps into a buffer.
    type JsDeltas;
    /// Everything in the buffer as one JSON list, or a promise of it; the empty list is the end.
    #[wasm_bindgen(method, catch)]
    fn next(this: &JsDeltas) -> std::result::Result<JsValue, JsValue>;
    /// Stops it, soon: never while we are still on the stack.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsDeltas) -> std::result::Result<(), JsValue>;
}

/// A model that JavaScript runs.
pub(super) struct CustomModel(pub(super) JsModel);

/// A request but for its messages.
#[derive(Serialize)]
struct Rest<'a> {
    system: &'a str,
    tools: &'a [Rc<ToolSpec>],
    generate: &'a Value,
}

impl CustomModel {
    fn begin(&self, request: Request<'_>) -> std::result::Result<JsDeltas, JsValue> {
        let lineage = request.lineage.id() as f64;
        let unchanged = request.lineage.take_unchanged().min(request.messages.len());
        let known = self.0.known(lineage, unchanged as f64)? as usize;
        let added = request.messages.get(known..).unwrap_or_default();
        let Request { system, tools, generate, .. } = request;
        let rest = json::to_text(&Rest { system, tools, generate });
        self.0.ask(request.tag, lineage, &json::to_text(&added), &rest)
    }
}

impl Model for CustomModel {
    fn id(&self, tag: u32) -> String {
        self.0.id(tag).unwrap_or_default()
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let begun = self.begin(request).map_err(|thrown| from_js(thrown, ErrorKind::ModelFailed));
        let answer = begun.map(|deltas| Box::new(Answer(Rc::new(deltas))) as Box<dyn Deltas>);
        Box::pin(std::future::ready(answer))
    }
}

struct Answer(Rc<JsDeltas>);

impl Deltas for Answer {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        let deltas = Rc::clone(&self.0);
        Box::pin(async move {
            let batch = settled(deltas.next(), ErrorKind::ModelFailed).await?;
            let batch = batch.as_string().unwrap_or_default();
            let wrong = |complaint: String| {
                Error::new(ErrorKind::ModelFailed, format!("the model sent {complaint}"))
            };
            let batch = serde_json::from_str(&batch).map_err(|error| wrong(error.to_string()))?;
            json::list(&batch, Delta::from_json).map_err(|misread| {
                misread.into_error(ErrorKind::ModelFailed, "a delta of the model")
            })
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let _ = self.0.cancel();
    }
}
