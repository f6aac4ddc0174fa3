//! Rules that try several schemas on a value. They report a problem only if it is certain.

use serde_json::Value;

use super::check::Check;
use super::messages;
use super::rule::Id;

impl Check<'_> {
    pub(super) fn any_of(&mut self, ids: &[Id], value: &Value) {
        let mut problems = Vec::new();
        for id in ids {
            let Some(problem) = self.first_problem(*id, value) else { return };
            problems.push(problem);
        }
        self.complain(messages::none_fits(&self.path, &problems));
    }

    pub(super) fn one_of(&mut self, ids: &[Id], value: &Value) {
        let before = self.n_skipped;
        let mut problems = Vec::new();
        let mut fitting = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            match self.first_problem(*id, value) {
                Some(problem) => problems.push(problem),
                None => fitting.push(index + 1),
            }
        }
        if fitting.is_empty() {
            self.complain(messages::none_fits(&self.path, &problems));
        } else if fitting.len() > 1 && before == self.n_skipped {
            self.complain(messages::several_fit(&fitting));
        }
    }

    pub(super) fn not(&mut self, id: Id, value: &Value) {
        let before = self.n_skipped;
        if self.accepts(id, value) && before == self.n_skipped {
            self.complain("must not fit the schema under \"not\", but does".into());
        }
    }

    pub(super) fn branch(&mut self, test: Id, [then, otherwise]: [Option<Id>; 2], value: &Value) {
        let before = self.n_skipped;
        let next = match self.accepts(test, value) {
            true if before == self.n_skipped => then,
            true => None,
            false => otherwise,
        };
        next.into_iter().for_each(|id| self.fit(id, value));
    }
}
