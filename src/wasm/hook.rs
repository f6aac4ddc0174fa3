//! A hook written in JavaScript.

use js_sys::Object;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::port::{Hook, HookRun, Point};
use crate::wasm::error::from_js;
use crate::wasm::js::{settled, value};
use crate::wasm::store::put;

#[wasm_bindgen]
extern "C" {
    /// The hook as `src/npm/middleware.ts` hands it over.
    pub(super) type JsHook;
    #[wasm_bindgen(method, getter)]
    fn name(this: &JsHook) -> String;
    /// The points at which it has something to say.
    #[wasm_bindgen(method, getter)]
    fn points(this: &JsHook) -> Vec<String>;
    /// How many messages of a lineage JavaScript has, none of them newer than `unchanged`.
    #[wasm_bindgen(method, catch)]
    fn known(this: &JsHook, lineage: f64, unchanged: f64) -> std::result::Result<u32, JsValue>;
    /// A promise of its answer, as JSON text.
    #[wasm_bindgen(method, catch)]
    fn at(
        this: &JsHook,
        point: &str,
        given: &str,
        run: &Object,
    ) -> std::result::Result<JsValue, JsValue>;
}

/// A hook that JavaScript runs.
pub(super) struct CustomHook {
    name: String,
    points: Vec<String>,
    hook: JsHook,
}

impl CustomHook {
    pub(super) fn new(hook: JsHook) -> CustomHook {
        CustomHook { name: hook.name(), points: hook.points(), hook }
    }

    fn begin(
        &self,
        point: Point,
        given: &str,
        run: HookRun<'_>,
    ) -> std::result::Result<JsValue, JsValue> {
        let lineage = run.lineage.id() as f64;
        let added = if point == Point::BeforeModel {
            let unchanged = run.lineage.take_unchanged().min(run.messages.len());
            let known = self.hook.known(lineage, unchanged as f64)? as usize;
            run.messages.get(known..).unwrap_or_default()
        } else {
            &[]
        };
        let about = Object::new();
        put(&about, "tag", &run.tag.into());
        put(&about, "tool", &run.tool_call_id.into());
        put(&about, "lineage", &lineage.into());
        put(&about, "added", &json::to_text(&added).into());
        self.hook.at(point.word(), given, &about)
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
