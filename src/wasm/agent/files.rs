//! The files of a workspace: read, write, list, delete.

use wasm_bindgen::prelude::*;

use crate::engine;
use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Fields, Misread};
use crate::wasm::agent::Agent;
use crate::wasm::error::{JsResult, to_js};
use crate::wasm::task::PolledTask;
use crate::wasm::values::value;

#[wasm_bindgen]
impl Agent {
    /// Reads, writes, lists or deletes files of a user; `request` is `{ act, userId, path, text }`.
    pub fn files(&self, request: &str) -> JsResult<PolledTask> {
        let request = FilesRequest::read(request).map_err(|error| to_js(&error))?;
        let agent = self.engine().clone();
        Ok(PolledTask::new(Box::pin(async move { request.run(&agent).await.map(JsValue::from) })))
    }
}

struct FilesRequest {
    act: String,
    user: Option<String>,
    path: String,
    text: String,
}

impl FilesRequest {
    fn read(request: &str) -> Result<FilesRequest> {
        let wrong = |misread: Misread| {
            misread
                .into_error(ErrorKind::InputInvalid, "the request")
                .hint("a path and a text are strings")
        };
        let request = value(request, ErrorKind::InputInvalid, "the request")?;
        let fields = Fields::of(&request).map_err(wrong)?;
        Ok(FilesRequest {
            act: fields.required("act", json::text).map_err(wrong)?,
            user: fields.optional("userId", json::text).map_err(wrong)?,
            path: fields.or_default("path", json::text).map_err(wrong)?,
            text: fields.or_default("text", json::text).map_err(wrong)?,
        })
    }

    async fn run(&self, agent: &engine::Agent) -> Result<String> {
        let files = agent.files(self.user.as_deref())?;
        match self.act.as_str() {
            "read" => match files.read(&self.path).await? {
                Some(file) => Ok(json::to_text(&file.text)),
                None => Err(missing(&self.path)),
            },
            "write" => files.put(&self.path, &self.text).await.map(|()| json::to_text(&())),
            "delete" => files.remove(&self.path).await.map(|()| json::to_text(&())),
            _ => files.list(&self.path).await.map(|paths| json::to_text(&paths)),
        }
    }
}

#[cold]
fn missing(path: &str) -> Error {
    Error::new(ErrorKind::PathInvalid, format!("there is no file {path}"))
        .hint("files.list(userId) returns the files that exist")
}
