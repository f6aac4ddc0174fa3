//! The network as `src/npm/http.ts` has it: it joins address, key and headers, and takes them out of what comes back.

use std::rc::Rc;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Http, HttpAnswer, HttpRequest};
use crate::wasm::error::from_js;
use crate::wasm::js::settled;
use crate::wasm::model::JsModel;

#[wasm_bindgen]
extern "C" {
    /// A request under way.
    pub(super) type JsAnswer;
    /// Resolves when status and headers are there.
    #[wasm_bindgen(method, catch)]
    fn begun(this: &JsAnswer) -> std::result::Result<JsValue, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn status(this: &JsAnswer) -> u16;
    #[wasm_bindgen(method)]
    fn header(this: &JsAnswer, name: &str) -> Option<String>;
    /// The bytes that have arrived, or a promise of them; none at all is the end.
    #[wasm_bindgen(method, catch)]
    fn next(this: &JsAnswer) -> std::result::Result<JsValue, JsValue>;
    /// Stops it, soon: never while we are still on the stack.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsAnswer) -> std::result::Result<(), JsValue>;
}

/// The network of the model of one call.
pub(super) struct JsHttp {
    pub(super) model: JsModel,
    pub(super) tag: u32,
}

impl Http for JsHttp {
    fn send(&self, request: HttpRequest) -> Local<'static, Result<Box<dyn HttpAnswer>>> {
        let HttpRequest { path, headers, key_header, body } = request;
        let around = json::to_text(&(path, headers, key_header));
        let sent = self.model.send(self.tag, &around, &body);
        Box::pin(async move {
            let sent = sent.map_err(|thrown| from_js(thrown, ErrorKind::ModelNetwork))?;
            let answer = Answer(Rc::new(sent));
            settled(answer.0.begun(), ErrorKind::ModelNetwork).await?;
            Ok(Box::new(answer) as Box<dyn HttpAnswer>)
        })
    }
}

struct Answer(Rc<JsAnswer>);

impl HttpAnswer for Answer {
    fn status(&self) -> u16 {
        self.0.status()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.0.header(name)
    }

    fn next(&mut self) -> Local<'_, Result<Vec<u8>>> {
        let answer = Rc::clone(&self.0);
        Box::pin(async move {
            let bytes = settled(answer.next(), ErrorKind::ModelNetwork).await?;
            Ok(bytes.dyn_into::<Uint8Array>().map(|bytes| bytes.to_vec()).unwrap_or_default())
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let _ = self.0.cancel();
    }
}
