//! `session_list`, `session_history` and `session_search`: the model reads earlier sessions of its user.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::error::Result;
use crate::future::Local;
use crate::json::to_text;
use crate::message::Block;
use crate::port::{Effect, SessionQuery, SessionReader, Tool, ToolRun, ToolSpec};

/// Most sessions that are listed.
const SESSIONS: usize = 50;

/// What a session tool does.
#[derive(Clone, Copy)]
enum SessionAction {
    List,
    History,
    Search,
}

/// Names, descriptions and input schemas of the tools. (A schema as text takes a third of the code.)
const TOOLS: &[(SessionAction, &str, &str, &str)] = &[
    (
        SessionAction::List,
        "session_list",
        "Lists the conversations with this user, newest first.",
        r#"{"type":"object","properties":{}}"#,
    ),
    (
        SessionAction::History,
        "session_history",
        "Shows the last messages of a conversation with this user. Long ones are cut.",
        r#"{"type":"object","properties":{"sessionId":{"type":"string"},"lastN":{"type":"integer","minimum":1,"maximum":200,"default":20}},"required":["sessionId"]}"#,
    ),
    (
        SessionAction::Search,
        "session_search",
        "Finds messages of this and earlier conversations with this user by their words.",
        r#"{"type":"object","properties":{"query":{"type":"string"},"maxResults":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}"#,
    ),
];

/// A tool that reads sessions.
pub struct SessionTool {
    spec: Rc<ToolSpec>,
    kind: SessionAction,
    reader: Rc<dyn SessionReader>,
}

/// The three tools. If `agents` are named, the tools can also read the sessions of these agents.
pub fn session_tools(reader: &Rc<dyn SessionReader>, agents: &[String]) -> Vec<Rc<dyn Tool>> {
    let made = TOOLS.iter().map(|(kind, name, description, schema)| {
        let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get_mut("properties")
            && !agents.is_empty()
        {
            let named = format!("Read the sessions of another agent: {}.", agents.join(", "));
            let property = json!({ "type": "string", "description": named });
            properties.insert("agentId".to_owned(), property);
        }
        let spec = ToolSpec::new(*name, *description, schema);
        let spec = Rc::new(ToolSpec { effect: Effect::Notes, ..spec });
        Rc::new(SessionTool { spec, kind: *kind, reader: Rc::clone(reader) }) as Rc<dyn Tool>
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
            SessionAction::List => SessionQuery::Sessions(SESSIONS),
            SessionAction::History => SessionQuery::History(text("sessionId"), number("lastN", 20)),
            SessionAction::Search => SessionQuery::Hits(text("query"), number("maxResults", 10)),
        };
        // Some models shorten the name of the argument.
        let agent = ["agentId", "agent"].into_iter().map(text).find(|name| !name.is_empty());
        Box::pin(async move {
            let found = self.reader.look_up(run.slot, agent, wanted).await?;
            Ok(vec![Block::text(to_text(&found))])
        })
    }
}
