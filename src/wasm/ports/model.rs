//! The model of a call: a model that JavaScript implements, or a provider's model that Rust calls through JavaScript's
//! HTTP.

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
use crate::model::options::ProviderOptions;
use crate::model::provider::ProviderModel;
use crate::model::window_of;
use crate::port::{Deltas, Model, Request, ToolSpec};
use crate::wasm::error::{JsResult, from_js, from_model};
use crate::wasm::ports::host::JsHost;
use crate::wasm::ports::http::{JsHttp, JsResponse};
use crate::wasm::values::{settled_with, value};

#[wasm_bindgen]
extern "C" {
    /// The models of calls, as `src/npm/host/ports.ts` makes them.
    #[derive(Clone)]
    pub type JsModel;
    /// The name of the model of a call.
    #[wasm_bindgen(method, catch)]
    fn id(this: &JsModel, tag: u32) -> JsResult<String>;
    /// The context window of the model of a call in tokens, if its user has set it.
    #[wasm_bindgen(method, catch)]
    fn window(this: &JsModel, tag: u32) -> JsResult<Option<f64>>;
    /// Dialect and options of a provider's model, as JSON; none for a model that JavaScript implements.
    #[wasm_bindgen(method, catch)]
    fn provider(this: &JsModel, tag: u32) -> JsResult<Option<String>>;
    /// Sends a request to a provider's model. `around` is path, headers and place of the key, as JSON.
    #[wasm_bindgen(method, catch)]
    fn send(this: &JsModel, tag: u32, around: &str, body: &[u8]) -> JsResult<JsResponse>;
    /// How many messages of a lineage JavaScript has, at most `unchanged`.
    #[wasm_bindgen(method, catch)]
    fn known(this: &JsModel, lineage: f64, unchanged: f64) -> JsResult<u32>;
    /// Begins an answer. `added` holds the messages after the known ones, and `tools` the tools if they have changed since
    /// the last request; both are JSON lists.
    #[wasm_bindgen(method, catch)]
    fn ask(
        this: &JsModel,
        tag: u32,
        lineage: f64,
        added: &str,
        rest: &str,
        tools: Option<String>,
    ) -> JsResult<JsDeltas>;

    /// An answer that JavaScript reads into a buffer.
    type JsDeltas;
    /// All deltas in the buffer as one JSON list, or a promise of it. The empty list means the end.
    #[wasm_bindgen(method, catch)]
    fn next(this: &JsDeltas) -> JsResult<JsValue>;
    /// Cancels the answer, but only after Rust has returned.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsDeltas) -> JsResult<()>;
}

/// The model of a call.
pub(crate) struct CallModel {
    model: JsModel,
    /// The tools that JavaScript already has. They rarely change, and are the largest part of most requests.
    offered: RefCell<Vec<Rc<ToolSpec>>>,
}

/// A request without its messages and tools.
#[derive(Serialize)]
struct RestOfRequest<'a> {
    system: &'a str,
    generate: &'a Value,
}

impl CallModel {
    pub(crate) fn new(model: JsModel) -> CallModel {
        CallModel { model, offered: RefCell::default() }
    }

    /// The model of a call, if it is a provider's.
    fn provider(&self, tag: u32) -> Result<Option<ProviderModel>> {
        let hint = "see HttpModelOptions in the package's types";
        let what = "the options of the model";
        let given = self.model.provider(tag).map_err(|thrown| {
            let error = from_js(thrown, ErrorKind::Options).within(what);
            if error.hint_text().is_some() { error } else { error.hint(hint) }
        })?;
        let Some(text) = given else { return Ok(None) };
        let options = ProviderOptions::from_json(&value(&text, ErrorKind::Options, what)?)
            .map_err(|misread| misread.into_error(ErrorKind::Options, what).hint(hint))?;
        let model = self.model.clone();
        let http = Rc::new(JsHttp::new(move |around, body| model.send(tag, around, body)));
        Ok(Some(ProviderModel::new(options, http, Rc::new(JsHost::new(None)))))
    }

    fn begin(&self, request: Request<'_>) -> JsResult<JsDeltas> {
        let lineage = request.lineage.id() as f64;
        let unchanged = request.lineage.take_unchanged().min(request.messages.len());
        let known = self.model.known(lineage, unchanged as f64)? as usize;
        let added = request.messages.get(known..).unwrap_or_default();
        let Request { tag, system, tools, generate, .. } = request;
        let rest = json::to_text(&RestOfRequest { system, generate });
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
        // An error in the options is ignored here: `ask` follows and reports it.
        let model = self.provider(tag).ok().flatten();
        model.is_some_and(|model| model.keeps_form(tag, beside_tools))
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> Local<'a, Result<Box<dyn Deltas + 'a>>> {
        let provider = match self.provider(request.tag) {
            Ok(provider) => provider,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        if let Some(model) = provider {
            let begun = model.begin(request);
            return Box::pin(async move { begun.await.map(|deltas| deltas as Box<dyn Deltas>) });
        }
        let begun = self.begin(request).map_err(from_model);
        let answer = begun.map(|deltas| Box::new(DeltasOfJs(Rc::new(deltas))) as Box<dyn Deltas>);
        Box::pin(std::future::ready(answer))
    }
}

struct DeltasOfJs(Rc<JsDeltas>);

impl Deltas for DeltasOfJs {
    fn next(&mut self) -> Local<'_, Result<Vec<Delta>>> {
        let deltas = Rc::clone(&self.0);
        Box::pin(async move {
            let batch = settled_with(deltas.next(), from_model).await?;
            let batch = batch.as_string().unwrap_or_default();
            let wrong = |complaint: String| {
                Error::new(ErrorKind::ModelFailed, format!("the model sent {complaint}"))
            };
            let batch = json::foreign(batch.as_bytes(), json::DEEPEST)
                .map_err(|error| wrong(format!("deltas that are not JSON: {error}")))?;
            json::list(&batch, Delta::from_json).map_err(|misread| {
                misread.into_error(ErrorKind::ModelFailed, "a delta of the model")
            })
        })
    }
}

impl Drop for DeltasOfJs {
    fn drop(&mut self) {
        let _ = self.0.cancel();
    }
}
