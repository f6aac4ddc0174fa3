//! `session_list`, `session_history` and `session_search`: the model reads what its user said before.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Block;
use crate::port::{Archive, Effect, Tool, ToolRun, ToolSpec, Wanted};

/// How many sessions are listed.
const SESSIONS: usize = 50;

/// What a session tool does.
#[derive(Clone, Copy)]
enum Kind {
    List,
    History,
    Search,
}

/// Their names, what a model is told of them, and what they take. (Schemas as text are a third of the code.)
const TOOLS: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::List,
        "session_list",
        "Lists the conversations with this user, newest first.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        Kind::History,
        "session_history",
        "Shows the last messages of a conversation with this user. Long ones are cut.",
        r#"{"type":"object","properties":{"sessionId":{"type":"string"},"lastN":{"type":"integer","minimum":1,"maximum":200,"default":20}},"required":["sessionId"]}"#,
    ),
    (
        Kind::Search,
        "session_search",
        "Finds messages of this and earlier conversations with this user by their words.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"maxResults":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}"#,
    ),
];

/// A tool that reads the log.
pub struct SessionTool {
    spec: Rc<ToolSpec>,
    kind: Kind,
    archive: Rc<dyn Archive>,
}

/// The three of them.
pub fn session_tools(archive: &Rc<dyn Archive>) -> Vec<Rc<dyn Tool>> {
    let made = TOOLS.iter().map(|(kind, name, description, schema)| {
        let schema = serde_json::from_str(schema).unwrap_or_default();
        let spec = ToolSpec::new(*name, *description, schema);
        let spec = Rc::new(ToolSpec { effect: Effect::Notes, ..spec });
        Rc::new(SessionTool { spec, kind: *kind, archive: Rc::clone(archive) }) as Rc<dyn Tool>
    });
    made.collect()
}

impl Tool for SessionTool {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        let text = |name| run.input.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name, default| {
            run.input.get(name).and_then(Value::as_u64).map_or(default, |number| number as usize)
        };
        let wanted = match self.kind {
            Kind::List => Wanted::Sessions(SESSIONS),
            Kind::History => Wanted::History(text("sessionId"), number("lastN", 20)),
            Kind::Search => Wanted::Hits(text("query"), number("maxResults", 10)),
        };
        Box::pin(async move {
            let found = self.archive.look_up(run.slot, wanted).await?;
            Ok(vec![Block::text(json::to_text(&found))])
        })
    }
}
