//! Search and background work.

use serde_json::Value;
use wasm_bindgen::prelude::*;

use crate::engine;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Read};
use crate::store::search::Query;
use crate::wasm::agent::Agent;
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::task::PolledTask;
use crate::wasm::values::value;

/// The words of a search, where to search, and the most hits.
struct SearchRequest {
    text: String,
    user: Option<String>,
    session: Option<String>,
    limit: usize,
}

#[wasm_bindgen]
impl Agent {
    /// The messages that match a query best, as a JSON list; `request` is `{ query, userId, sessionId, limit }`.
    pub fn search(&self, request: &str) -> JsResult<PolledTask> {
        let begin = || {
            let request = value(request, ErrorKind::InputInvalid, "the search")?;
            let request = SearchRequest::read(&request)
                .map_err(|misread| misread.into_error(ErrorKind::InputInvalid, "the search"))?;
            let searching = request.run(self.engine().clone());
            Ok(PolledTask::new(Box::pin(async move { searching.await.map(JsValue::from) })))
        };
        begin().map_err(|error: Error| to_js(&error))
    }

    /// Whether there is background work.
    #[wasm_bindgen(js_name = hasWork)]
    pub fn has_work(&self) -> bool {
        self.engine().has_work()
    }

    /// Whether memory holds something that is not stored.
    #[wasm_bindgen(js_name = isNeeded)]
    pub fn is_needed(&self) -> bool {
        self.engine().is_needed()
    }

    /// Does the background work.
    pub fn afterwards(&self) -> PolledTask {
        let agent = self.engine().clone();
        PolledTask::new(Box::pin(async move {
            agent.afterwards().await;
            Ok(JsValue::NULL)
        }))
    }
}

impl SearchRequest {
    fn read(request: &Value) -> Read<SearchRequest> {
        let fields = Fields::of(request)?;
        Ok(SearchRequest {
            text: fields.required("query", json::text)?,
            user: fields.optional("userId", json::text)?,
            session: fields.optional("sessionId", json::text)?,
            limit: fields.required("limit", json::count)? as usize,
        })
    }

    async fn run(self, agent: engine::Agent) -> Result<String> {
        let (user, session) = (self.user.as_deref(), self.session.as_deref());
        let query = Query { text: &self.text, user, session, limit: self.limit };
        agent.search(query).await.map(|hits| json::to_text(&hits))
    }
}
