//! A hook written in JavaScript.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Hook, HookRun, Point};
use crate::wasm::error::{JsResult, from_js};
use crate::wasm::values::{settled, value};

#[wasm_bindgen]
extern "C" {
    /// A hook as `src/npm/turn/middleware.ts` makes it.
    pub type JsHook;
    #[wasm_bindgen(method, getter)]
    fn name(this: &JsHook) -> String;
    /// The points at which it runs.
    #[wasm_bindgen(method, getter)]
    fn points(this: &JsHook) -> Vec<String>;
    /// How many messages of a lineage JavaScript has, at most `unchanged`.
    #[wasm_bindgen(method, catch)]
    fn known(this: &JsHook, lineage: f64, unchanged: f64) -> JsResult<u32>;
    /// A promise of its answer, as JSON text. `given` is its input, and `added` the messages after the known ones.
    #[wasm_bindgen(method, catch)]
    fn at(
        this: &JsHook,
        point: &str,
        given: &str,
        tag: u32,
        tool_call_id: &str,
        lineage: f64,
        added: &str,
    ) -> JsResult<JsValue>;
}

/// A hook that JavaScript runs.
pub(crate) struct CustomHook {
    name: String,
    points: Vec<String>,
    hook: JsHook,
}

impl CustomHook {
    pub(crate) fn new(hook: JsHook) -> CustomHook {
        CustomHook { name: hook.name(), points: hook.points(), hook }
    }

    fn begin(&self, point: Point, given: &str, run: HookRun<'_>) -> JsResult<JsValue> {
        let lineage = run.lineage.id() as f64;
        let added = if matches!(point, Point::BeforeModel | Point::ReviseContext) {
            let unchanged = run.lineage.take_unchanged().min(run.messages.len());
            let known = self.hook.known(lineage, unchanged as f64)? as usize;
            run.messages.get(known..).unwrap_or_default()
        } else {
            &[]
        };
        let added = json::to_text(&added);
        self.hook.at(point.word(), given, run.tag, run.tool_call_id, lineage, &added)
    }
}

impl Hook for CustomHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_at(&self, point: Point) -> bool {
        self.points.iter().any(|it| it == point.word())
    }

    fn at<'a>(&'a self, point: Point, given: &str, run: HookRun<'a>) -> Local<'a, Result<Value>> {
        let begun =
            self.begin(point, given, run).map_err(|thrown| from_js(thrown, ErrorKind::Middleware));
        Box::pin(async move {
            let answer = settled(Ok(begun?), ErrorKind::Middleware).await?;
            value(&answer.as_string().unwrap_or_default(), ErrorKind::Middleware, "its answer")
        })
    }
}
