//! Searching, and the work that nobody waits for, as TypeScript asks for them.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::store::search::Query;
use crate::wasm::agent::Agent;
use crate::wasm::error::to_js;
use crate::wasm::js::value;
use crate::wasm::task::Task;

/// What is looked for: the words, the user, the session, how many.
type Wish = (String, Option<String>, Option<String>, u64);

#[wasm_bindgen]
impl Agent {
    /// What fits some words best, as a JSON list; `request` is `{ query, userId, sessionId, limit }`.
    pub fn search(&self, request: &str) -> std::result::Result<Task, JsValue> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the search")?;
            let wish = wish(&request)
                .map_err(|misread| misread.into_error(ErrorKind::InputInvalid, "the search"))?;
            let searching = search(self.engine().clone(), wish);
            Ok(Task::new(Box::pin(async move { searching.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }

    /// Whether there is work that nobody waits for.
    #[wasm_bindgen(js_name = hasWork)]
    pub fn has_work(&self) -> bool {
        self.engine().has_work()
    }

    /// Whether its memory holds something that no store has.
    #[wasm_bindgen(js_name = isNeeded)]
    pub fn is_needed(&self) -> bool {
        self.engine().is_needed()
    }

    /// Does it.
    pub fn afterwards(&self) -> Task {
        let agent = self.engine().clone();
        Task::new(Box::pin(async move {
            agent.afterwards().await;
            Ok(JsValue::NULL)
        }))
    }
}

fn wish(request: &Value) -> Read<Wish> {
    let fields = Fields::of(request)?;
    let query = fields.required("query", json::text)?;
    let user = fields.optional("userId", json::text)?;
    let session = fields.optional("sessionId", json::text)?;
    Ok((query, user, session, fields.required("limit", json::count)?))
}

async fn search(agent: engine::Agent, (text, user, session, limit): Wish) -> Result<String> {
    let (user, session) = (user.as_deref(), session.as_deref());
    let query = Query { text: &text, user, session, limit: limit as usize };
    agent.search(query).await.map(|hits| json::to_text(&hits))
}
