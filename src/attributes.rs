//! Values that a caller passes to the tools and hooks of one call. They are never stored, and other calls cannot see
//! them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use crate::json::Object;

/// Values for one call, by name or by type.
#[derive(Clone, Default)]
pub struct Attributes {
    named: Object,
    typed: HashMap<TypeId, Rc<dyn Any>>,
}

impl Attributes {
    /// Adds a value under a name.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.named.insert(name.into(), value);
    }

    /// Adds a value that is found again by its type.
    pub fn put<T: 'static>(&mut self, value: T) {
        self.typed.insert(TypeId::of::<T>(), Rc::new(value));
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.named.get(name)
    }

    /// The value of this type.
    pub fn of<T: 'static>(&self) -> Option<Rc<T>> {
        self.typed.get(&TypeId::of::<T>()).and_then(|value| Rc::clone(value).downcast().ok())
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} named, {} typed", self.named.len(), self.typed.len())
    }
}
