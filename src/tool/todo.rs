//! `todo_write`: the model's list of tasks. If the tool refuses an input, the model can read why.

use std::rc::Rc;

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::future::Local;
use crate::json;
use crate::message::Block;
use crate::port::{Effect, Host, Tool, ToolRun, ToolSpec};
use crate::state::{Task, TaskState};
use crate::store::id;

const WHAT: &str = "Writes your list of tasks for a job of several steps. The list is the whole list: \
tasks that are not in it are gone. Keep the words of a task as they are while it goes on. At most one task is in progress; \
say so when you begin it, and mark it completed as soon as it is done.";

const SCHEMA: &str = r#"{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string","enum":["pending","in_progress","completed"],"default":"pending"},"priority":{"type":"string","enum":["high","medium","low"]}},"required":["content"]}}},"required":["todos"]}"#;

/// The tool that replaces the list.
pub struct TodoWrite {
    spec: Rc<ToolSpec>,
    host: Rc<dyn Host>,
}

impl TodoWrite {
    /// The tool. The host makes the ids of new tasks.
    pub fn new(host: Rc<dyn Host>) -> TodoWrite {
        let spec =
            ToolSpec::new("todo_write", WHAT, serde_json::from_str(SCHEMA).unwrap_or_default());
        TodoWrite {
            spec: Rc::new(ToolSpec { parallel: false, effect: Effect::Notes, ..spec }),
            host,
        }
    }

    fn write(&self, run: ToolRun<'_>) -> Result<Vec<Block>> {
        let todos = run.input.get("todos").and_then(Value::as_array).map(Vec::as_slice);
        let mut known = run.desk.facts().tasks_context.tasks;
        let todos = todos.unwrap_or_default().iter().enumerate();
        let tasks = todos.map(|(index, todo)| self.task(index, todo, &mut known));
        let tasks = tasks.collect::<Result<Vec<Task>>>()?;
        let n = tasks.iter().filter(|task| task.state == TaskState::InProgress).count();
        if n > 1 {
            return Err(unchanged(&format!("{n} tasks are in progress, and one at most may be")));
        }
        run.desk.change(&mut |facts| facts.tasks_context.tasks.clone_from(&tasks));
        let text =
            if tasks.is_empty() { "The list is empty now.".to_owned() } else { checklist(&tasks) };
        Ok(vec![Block::text(text)])
    }

    /// One task of the list. A task with the same text keeps its id.
    fn task(&self, index: usize, todo: &Value, known: &mut Vec<Task>) -> Result<Task> {
        let text = |name| todo.get(name).and_then(Value::as_str);
        let subject = text("content").unwrap_or_default().trim();
        if subject.is_empty() {
            return Err(unchanged(&format!("todos[{index}] has no content")));
        }
        let same = known.iter().position(|task| task.subject == subject);
        let same = same.map(|place| known.remove(place));
        let state = todo.get("status").and_then(|status| TaskState::from_json(status).ok());
        Ok(Task {
            state: state.unwrap_or(TaskState::Pending),
            priority: text("priority").map(str::to_owned),
            ..same.unwrap_or_else(|| Task {
                id: id::random_id(&*self.host),
                subject: subject.to_owned(),
                state: TaskState::Pending,
                priority: None,
                rest: json::Object::new(),
            })
        })
    }
}

impl Tool for TodoWrite {
    fn spec(&self) -> &Rc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, run: ToolRun<'a>) -> Local<'a, Result<Vec<Block>>> {
        Box::pin(std::future::ready(self.write(run)))
    }
}

/// The list as text.
pub fn checklist(tasks: &[Task]) -> String {
    let line = |task: &Task| {
        let mark = match task.state {
            TaskState::Pending => "[ ] ",
            TaskState::InProgress => "[~] ",
            TaskState::Completed => "[x] ",
        };
        let priority = task.priority.as_ref().map(|priority| [" (", priority, ")"].concat());
        [mark, &task.subject, &priority.unwrap_or_default()].concat()
    };
    tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cold]
fn unchanged(why: &str) -> Error {
    Error::new(ErrorKind::InputInvalid, format!("{why}. The list is as it was."))
}
