//! HTTP through `src/npm/host/http.ts`, which adds the address, the key and headers, and removes secrets from
//! responses.

use std::rc::Rc;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Http, HttpAnswer, HttpRequest};
use crate::wasm::error::{JsResult, from_js};
use crate::wasm::values::settled;

#[wasm_bindgen]
extern "C" {
    /// A sent request, and the response to it.
    pub type JsResponse;
    /// Resolves when status and headers have arrived.
    #[wasm_bindgen(method, catch)]
    fn begun(this: &JsResponse) -> JsResult<JsValue>;
    #[wasm_bindgen(method, getter)]
    fn status(this: &JsResponse) -> u16;
    #[wasm_bindgen(method)]
    fn header(this: &JsResponse, name: &str) -> Option<String>;
    /// The bytes that have arrived, or a promise of them. No bytes mean the end.
    #[wasm_bindgen(method, catch)]
    fn next(this: &JsResponse) -> JsResult<JsValue>;
    /// Reads the rest of the response, but only after Rust has returned, so that its connection can be used again.
    #[wasm_bindgen(method, catch)]
    fn done(this: &JsResponse) -> JsResult<()>;
    /// Cancels the request, but only after Rust has returned. Does nothing after `done`.
    #[wasm_bindgen(method, catch)]
    fn cancel(this: &JsResponse) -> JsResult<()>;
}

/// A function that sends a request. It gets path, headers and place of the key as JSON, and the body.
type BeginRequest = Box<dyn Fn(&str, &[u8]) -> JsResult<JsResponse>>;

/// HTTP for the model of one call.
pub(crate) struct JsHttp {
    begin: BeginRequest,
}

impl JsHttp {
    pub(crate) fn new(begin: impl Fn(&str, &[u8]) -> JsResult<JsResponse> + 'static) -> JsHttp {
        JsHttp { begin: Box::new(begin) }
    }
}

impl Http for JsHttp {
    fn send(&self, request: HttpRequest) -> Local<'static, Result<Box<dyn HttpAnswer>>> {
        let HttpRequest { path, headers, key_header, body } = request;
        let begun = (self.begin)(&json::to_text(&(path, headers, key_header)), &body);
        Box::pin(async move {
            let begun = begun.map_err(|thrown| from_js(thrown, ErrorKind::ModelNetwork))?;
            let answer = AnswerOverJs(Rc::new(begun));
            settled(answer.0.begun(), ErrorKind::ModelNetwork).await?;
            Ok(Box::new(answer) as Box<dyn HttpAnswer>)
        })
    }
}

struct AnswerOverJs(Rc<JsResponse>);

impl HttpAnswer for AnswerOverJs {
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

    fn done(&mut self) {
        let _ = self.0.done();
    }
}

impl Drop for AnswerOverJs {
    fn drop(&mut self) {
        let _ = self.0.cancel();
    }
}
