//! The model of a call: one that JavaScript runs, or one of a provider that we run over JavaScript's network.

use std::cell::RefCell;
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
use crate::model::provider::{Options, ProviderModel};
use crate::model::window_of;
use crate::port::{Deltas, Model, Request, ToolSpec};
use crate::wasm::error::from_model;
use crate::wasm::host::JsHost;
use crate::wasm::http::{JsAnswer, JsHttp};
use crate::wasm::js::settled_with;

#[wasm_bindgen]
extern "C" {
    /// The model as `src/npm/host.ts` hands it over.
    #[derive(Clone)]
    pub(super) type JsModel;
    /// The model of a call.
    #[wasm_bindgen(method, catch)]
    fn id(this: &JsModel, tag: u32) -> std::result::Result<String, JsValue>;
    /// How many tokens the model of a call takes, if its user says so.
    #[wasm_bindgen(method, catch)]
    fn window(this: &JsModel, tag: u32) -> std::result::Result<Option<f64>, JsValue>;
    /// Dialect and options of a provider's model, as JSON; none for a model that JavaScript runs.
    #[wasm_bindgen(method, catch)]
    fn provider(this: &JsModel, tag: u32) -> std::result::Result<Option<String>, JsValue>;
    /// Sends a request of a provider's model; `around` is path, headers and where the key goes, as JSON.
    #[wasm_bindgen(method, catch)]
    pub(super) fn send(
        this: &JsModel,
        tag: u32,
        around: &str,
        body: &[u8],
    ) -> std::result::Result<JsAnswer, JsValue>;
    /// How many messages of a lineage JavaScript has, none of them newer than `unchanged`.
    #[wasm_bindgen(method, catch)]
    fn known(this: &JsModel, lineage: f64, unchanged: f64) -> std::result::Result<u32, JsValue>;
    /// Begins an answer; `added` is the messages after the known ones, `tools` those to offer if they are others than
    /// the last time.
    #[wasm_bindgen(method, catch)]
    fn ask(
        this: &JsModel,
        tag: u32,
        lineage: f64,
        added: &str,
        rest: &str,
        tools: Option<String>,
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

/// The model that a call has.
pub(super) struct CallModel {
    model: JsModel,
    /// The tools that JavaScript has already: they are nearly always the same, and cost more than all the rest.
    offered: RefCell<Vec<Rc<ToolSpec>>>,
}

/// A request but for its messages and tools.
#[derive(Serialize)]
struct Rest<'a> {
    system: &'a str,
    generate: &'a Value,
}

impl CallModel {
    pub(super) fn new(model: JsModel) -> CallModel {
        CallModel { model, offered: RefCell::default() }
    }

    /// The model of a call, if it is a provider's.
    fn provider(&self, tag: u32) -> Option<ProviderModel> {
        let options = self.model.provider(tag).ok().flatten()?;
        let options = serde_json::from_str(&options).ok()?;
        let options = Options::from_json(&options).ok()?;
        let http = Rc::new(JsHttp { model: self.model.clone(), tag });
        Some(ProviderModel::new(options, http, Rc::new(JsHost { node: None })))
    }

    fn begin(&self, request: Request<'_>) -> std::result::Result<JsDeltas, JsValue> {
        let lineage = request.lineage.id() as f64;
        let unchanged = request.lineage.take_unchanged().min(request.messages.len());
        let known = self.model.known(lineage, unchanged as f64)? as usize;
        let added = request.messages.get(known..).unwrap_or_default();
        let Request { tag, system, tools, generate, .. } = request;
        let rest = json::to_text(&Rest { system, generate });
        let others = (!self.has_offered(tools)).then(|| json::to_text(&tools));
        let begun = self.model.ask(tag, lineage, &json::to_text(&added), &rest, others)?;
        *self.offered.borrow_mut() = tools.to_vec();
        Ok(begun)
    }

    fn has_offered(&self, tools: &[Rc<ToolSpec>]) -> bool {
        let offered = self.offered.borrow();
        offered.len() == tools.len()
            && offered.iter().zip(tools).all(|(one, other)| Rc::ptr_eq(one, other))
    }
}

impl Model for CallModel {
    fn id(&self, tag: u32) -> String {
        self.model.id(tag).unwrap_or_default()
    }

    fn window(&self, tag: u32) -> Option<u64> {
        let given = self.model.window(tag).ok().flatten().map(|window| window as u64);
        given.or_else(|| window_of(&self.id(tag)))
    }

    fn keeps_form(&self, tag: u32, beside_tools: bool) -> bool {
        self.provider(tag).is_some_and(|model| model.keeps_form(tag, beside_tools))
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        if let Some(model) = self.provider(request.tag) {
            let begun = model.begin(request);
            return Box::pin(async move { begun.await.map(|deltas| deltas as Box<dyn Deltas>) });
        }
        let begun = self.begin(request).map_err(from_model);
        let answer = begun.map(|deltas| Box::new(Answer(Rc::new(deltas))) as Box<dyn Deltas>);
        Box::pin(std::future::ready(answer))
    }
}

struct Answer(Rc<JsDeltas>);

impl Deltas for Answer {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        let deltas = Rc::clone(&self.0);
        Box::pin(async move {
            let batch = settled_with(deltas.next(), from_model).await?;
            let batch = batch.as_string().unwrap_or_default();
            let wrong = |complaint: String| {
                Error::new(ErrorKind::ModelFailed, format!("the model sent {complaint}"))
            };
            let batch = json::foreign(batch.as_bytes(), json::DEEPEST)
                .map_err(|error| wrong(format!("what is no JSON: {error}")))?;
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
