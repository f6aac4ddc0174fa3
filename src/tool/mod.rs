//! The tools of an agent, in the order they were given: prompt caches depend on it.

use std::rc::Rc;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::port::{Tool, ToolSpec};

/// An agent's tools.
#[derive(Default)]
pub struct Registry {
    tools: Vec<Rc<dyn Tool>>,
    specs: Vec<Rc<ToolSpec>>,
}

impl Registry {
    /// The tools; two of one name are refused, and so is a name that no provider takes.
    pub fn new(tools: Vec<Rc<dyn Tool>>) -> Result<Registry> {
        let specs: Vec<Rc<ToolSpec>> = tools.iter().map(|tool| Rc::clone(tool.spec())).collect();
        for (index, spec) in specs.iter().enumerate() {
            let name = &spec.name;
            if !is_name(name) {
                let hint = "a tool's name is 1 to 64 letters, digits, _ or -";
                return Err(Error::new(
                    ErrorKind::Options,
                    format!("\"{name}\" is not a tool's name"),
                )
                .hint(hint));
            }
            if specs.iter().take(index).any(|other| other.name == *name) {
                let hint = "give each tool a name of its own";
                return Err(Error::new(
                    ErrorKind::Options,
                    format!("two tools are named \"{name}\""),
                )
                .hint(hint));
            }
        }
        Ok(Registry { tools, specs })
    }

    /// What a model is told of them.
    pub fn specs(&self) -> &[Rc<ToolSpec>] {
        &self.specs
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&Rc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}
