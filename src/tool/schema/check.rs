//! Checks a value against the rules of a schema.

use serde_json::{Number, Value};

use super::rule::{
    Bound, Contains, CountedPart, Id, Items, JsonType, MembersRule, Names, ROOT, SchemaRule,
};
use super::{Problem, Schema, messages, number};
use crate::json::Object;

/// Most problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// Most schemas inside each other: a `$ref` may refer to itself.
pub(super) const MAX_DEPTH: usize = 128;

/// The maximum number of steps. References can double the work at each level.
const MAX_STEPS: usize = 1_000_000;

/// A value that is being checked.
pub(super) struct Check<'a> {
    schema: &'a Schema,
    pub(super) path: String,
    problems: Vec<Problem>,
    max_problems: usize,
    depth: usize,
    n_steps: usize,
    /// How often a rule that is not supported was skipped. If it is not 0, a fit is not certain.
    pub(super) n_skipped: usize,
    /// Set when the work exceeds the limit; from then on no problems are reported.
    given_up: Option<Problem>,
}

impl<'a> Check<'a> {
    pub(super) fn new(schema: &'a Schema) -> Self {
        Check {
            schema,
            path: String::new(),
            problems: Vec::new(),
            max_problems: MAX_PROBLEMS,
            depth: 0,
            n_steps: 0,
            n_skipped: 0,
            given_up: None,
        }
    }

    pub(super) fn run(mut self, value: &Value) -> Result<(), Vec<Problem>> {
        self.fit(ROOT, value);
        self.problems.extend(self.given_up);
        self.problems.truncate(MAX_PROBLEMS);
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    /// Whether the value fits one of the schemas, as far as it is known.
    pub(super) fn accepts(&mut self, id: Id, value: &Value) -> bool {
        self.first_problem(id, value).is_none()
    }

    /// Checks the value against a schema.
    pub(super) fn fit(&mut self, id: Id, value: &Value) {
        if self.is_done() {
            return;
        }
        if self.depth == MAX_DEPTH || self.n_steps > MAX_STEPS {
            self.given_up = Some(self.problem(messages::too_deep(MAX_DEPTH)));
            return;
        }
        self.depth += 1;
        self.n_steps += weight(value);
        let schema = self.schema;
        for rule in schema.rules(id) {
            if !self.is_done() {
                self.apply(rule, value);
            }
        }
        self.depth -= 1;
    }

    fn apply(&mut self, rule: &SchemaRule, value: &Value) {
        match (rule, value) {
            (SchemaRule::Never, _) => self.complain("is not allowed".into()),
            (SchemaRule::Type(kinds), _) => self.kind(kinds, value),
            (SchemaRule::Enum(values), _) => self.one_of_values(values, value),
            (SchemaRule::Bound(bound, limit), Value::Number(number)) => {
                self.bound(*bound, limit, number)
            }
            (SchemaRule::MultipleOf(divisor), Value::Number(number)) => {
                self.multiple(divisor, number)
            }
            (SchemaRule::AtLeast(part, limit), _) => self.at_least(*part, *limit, value),
            (SchemaRule::AtMost(part, limit), _) => self.at_most(*part, *limit, value),
            (SchemaRule::Pattern(regex, source), Value::String(text)) if !regex.is_match(text) => {
                self.complain(messages::no_match(source, value));
            }
            (SchemaRule::Unique, Value::Array(items)) => self.unique(items),
            (SchemaRule::Items(rule), Value::Array(items)) => self.items(rule, items),
            (SchemaRule::Contains(rule), Value::Array(items)) => self.contains(rule, items),
            (SchemaRule::Members(rule), Value::Object(object)) => self.members(rule, object),
            (SchemaRule::Required(names), Value::Object(object)) => self.required(names, object),
            (SchemaRule::PropertyNames(id), Value::Object(object)) => self.names(*id, object),
            (SchemaRule::DependentRequired(rules), Value::Object(object)) => {
                self.dependent(rules, object);
            }
            (SchemaRule::DependentSchemas(rules), Value::Object(object)) => {
                let ids = object.keys().filter_map(|name| rules.get(name));
                ids.for_each(|id| self.fit(id, value));
            }
            (SchemaRule::AllOf(ids), _) => ids.iter().for_each(|id| self.fit(*id, value)),
            (SchemaRule::AnyOf(ids), _) => self.any_of(ids, value),
            (SchemaRule::OneOf(ids), _) => self.one_of(ids, value),
            (SchemaRule::Not(id), _) => self.not(*id, value),
            (SchemaRule::If(test, then, otherwise), _) => {
                self.branch(*test, [*then, *otherwise], value)
            }
            (SchemaRule::Ref(fragment), _) => {
                self.schema.place(fragment).into_iter().for_each(|id| self.fit(id, value));
            }
            (SchemaRule::Unsupported, _) => self.n_skipped += 1,
            _ => {}
        }
    }

    fn kind(&mut self, kinds: &[JsonType], value: &Value) {
        if !kinds.iter().any(|kind| kind.holds(value)) {
            self.complain(messages::wrong_kind(kinds, value));
        }
    }

    fn one_of_values(&mut self, values: &[Value], value: &Value) {
        if !values.iter().any(|allowed| number::same(allowed, value)) {
            self.complain(messages::wrong_value(values, value));
        }
    }

    fn bound(&mut self, bound: Bound, limit: &Number, number: &Number) {
        let order = number::order(number, limit);
        let fits = match bound {
            Bound::Least => order.is_ge(),
            Bound::Most => order.is_le(),
            Bound::Above => order.is_gt(),
            Bound::Below => order.is_lt(),
        };
        if !fits {
            self.complain(messages::out_of_bound(bound, limit, number));
        }
    }

    fn multiple(&mut self, divisor: &Number, number: &Number) {
        if !number::is_multiple(number, divisor) {
            self.complain(format!("must be a multiple of {divisor}, but is {number}"));
        }
    }

    fn at_least(&mut self, part: CountedPart, limit: u64, value: &Value) {
        if let Some(n) = part.count(value).filter(|n| *n < limit) {
            self.complain(messages::too_few(part, limit, n));
        }
    }

    fn at_most(&mut self, part: CountedPart, limit: u64, value: &Value) {
        if let Some(n) = part.count(value).filter(|n| *n > limit) {
            self.complain(messages::too_many(part, limit, n));
        }
    }

    fn unique(&mut self, items: &[Value]) {
        // The members of objects are sorted by name, so equal values have equal text.
        let mut seen = Names::default();
        for (index, item) in items.iter().enumerate() {
            let text = number::plain(item).to_string();
            if let Some(other) = seen.get(&text) {
                let message = format!("must not repeat items, but [{other}] equals [{index}]");
                return self.complain(message);
            }
            seen.insert(&text, index);
        }
    }

    fn items(&mut self, rule: &Items, items: &[Value]) {
        for (index, item) in items.iter().enumerate() {
            let Some(id) = rule.at(index) else { return };
            self.within(&format!("[{index}]"), |check| check.fit(id, item));
        }
    }

    fn contains(&mut self, rule: &Contains, items: &[Value]) {
        let before = self.n_skipped;
        let n = items.iter().filter(|item| self.accepts(rule.id, item)).count() as u64;
        let too_many = rule.max.filter(|max| n > *max && before == self.n_skipped);
        if n < rule.min {
            self.complain(messages::few_fit(rule.min, n));
        } else if let Some(max) = too_many {
            self.complain(messages::many_fit(max, n));
        }
    }

    fn members(&mut self, rule: &MembersRule, object: &Object) {
        let mut unknown = Vec::new();
        for (name, member) in object {
            match rule.of(name) {
                None => unknown.push(name.as_str()),
                Some(ids) => {
                    let step = messages::step(name, self.path.is_empty());
                    self.within(&step, |check| ids.iter().for_each(|id| check.fit(*id, member)));
                }
            }
        }
        if !unknown.is_empty() {
            self.complain(messages::unknown(&unknown, &rule.declared));
        }
    }

    fn required(&mut self, names: &[String], object: &Object) {
        let missing: Vec<&str> = absent(names, object);
        if !missing.is_empty() {
            self.complain(messages::missing(&missing));
        }
    }

    fn names(&mut self, id: Id, object: &Object) {
        for name in object.keys() {
            if let Some(problem) = self.first_problem(id, &Value::String(name.clone())) {
                self.complain(messages::wrong_name(name, &problem.message));
            }
        }
    }

    fn dependent(&mut self, rules: &[(String, Vec<String>)], object: &Object) {
        for (name, others) in rules.iter().filter(|(name, _)| object.contains_key(name)) {
            let missing = absent(others, object);
            if !missing.is_empty() {
                self.complain(messages::missing_beside(name, &missing));
            }
        }
    }

    /// The first problem of the value with this schema. It is not reported.
    pub(super) fn first_problem(&mut self, id: Id, value: &Value) -> Option<Problem> {
        let problems = std::mem::take(&mut self.problems);
        let max_problems = std::mem::replace(&mut self.max_problems, 1);
        self.fit(id, value);
        self.max_problems = max_problems;
        std::mem::replace(&mut self.problems, problems).into_iter().next()
    }

    fn within(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        look(self);
        self.path.truncate(length);
    }

    fn is_done(&self) -> bool {
        self.given_up.is_some() || self.problems.len() >= self.max_problems
    }

    pub(super) fn complain(&mut self, message: String) {
        let problem = self.problem(message);
        if !self.is_done() && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn problem(&self, message: String) -> Problem {
        Problem { path: self.path.clone(), message }
    }
}

/// Estimated work of one rule with a value.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.len(),
        Value::Object(object) => 1 + object.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

fn absent<'n>(names: &'n [String], object: &Object) -> Vec<&'n str> {
    names.iter().filter(|name| !object.contains_key(*name)).map(String::as_str).collect()
}
