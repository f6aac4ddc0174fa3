//! Makes rules of the keywords of a schema object. The order here is the order in which problems are reported.
//!
//! The form of every keyword is checked first, so that reading a keyword cannot fail.

use serde_json::Value;

use super::compile::{Compiler, SchemaPlace, malformed, under};
use super::pattern;
use super::rule::{Bound, Contains, CountedPart, Items, MembersRule, OtherMembers, SchemaRule};
use super::vocabulary::{self, Standing, count};
use crate::error::Result;
use crate::json;

impl<'a> Compiler<'a> {
    /// Makes the rules of a schema object.
    pub(super) fn read(&mut self, place: &SchemaPlace<'a>) -> Result<()> {
        self.forms(place)?;
        self.values(place);
        self.numbers(place);
        self.sizes(place);
        self.objects(place);
        self.members(place);
        self.lists(place);
        self.logic(place);
        self.identity(place);
        self.reference(place)
    }

    fn forms(&mut self, place: &SchemaPlace<'a>) -> Result<()> {
        for (keyword, value) in place.object {
            match vocabulary::standing(keyword) {
                Standing::Known(form) if form.holds(value) => {}
                Standing::Known(form) => {
                    return Err(malformed(&place.under(keyword), form.wanted()));
                }
                Standing::Unknown => self.report(&place.under(keyword)),
                Standing::Unsupported => self.skip(&place.under(keyword)),
            }
        }
        Ok(())
    }

    fn values(&mut self, place: &SchemaPlace<'a>) {
        let values = place.get("enum").and_then(Value::as_array);
        self.add(place.get("type").and_then(vocabulary::kinds).map(SchemaRule::Type));
        self.add(values.map(|values| SchemaRule::Enum(values.clone())));
        self.add(place.get("const").map(|value| SchemaRule::Enum(vec![value.clone()])));
    }

    fn numbers(&mut self, place: &SchemaPlace<'a>) {
        let bounds = [
            ("minimum", Bound::Least),
            ("maximum", Bound::Most),
            ("exclusiveMinimum", Bound::Above),
            ("exclusiveMaximum", Bound::Below),
        ];
        for (keyword, bound) in bounds {
            match place.get(keyword) {
                Some(Value::Number(number)) => {
                    self.add(Some(SchemaRule::Bound(bound, number.clone())))
                }
                // Draft 4 wrote `exclusiveMinimum: true` beside `minimum`.
                Some(_) => self.skip(&place.under(keyword)),
                None => {}
            }
        }
        let divisor = place.get("multipleOf").and_then(Value::as_number);
        self.add(divisor.map(|number| SchemaRule::MultipleOf(number.clone())));
    }

    fn sizes(&mut self, place: &SchemaPlace<'a>) {
        let parts = [
            ("minLength", "maxLength", CountedPart::Characters),
            ("minItems", "maxItems", CountedPart::Items),
            ("minProperties", "maxProperties", CountedPart::Properties),
        ];
        for (least, most, part) in parts {
            self.add(place.get(least).and_then(count).map(|n| SchemaRule::AtLeast(part, n)));
            self.add(place.get(most).and_then(count).map(|n| SchemaRule::AtMost(part, n)));
        }
        if let Some(text) = place.text("pattern") {
            match pattern::regex(text) {
                Some(regex) => self.add(Some(SchemaRule::Pattern(regex, text.to_owned()))),
                None => self.skip(&place.under("pattern")),
            }
        }
    }

    fn objects(&mut self, place: &SchemaPlace<'a>) {
        let names = |value| json::texts(value).unwrap_or_default();
        self.add(place.get("required").map(|value| SchemaRule::Required(names(value))));
        if let Some(lists) = place.get("dependentRequired").and_then(Value::as_object) {
            let lists = lists.iter().map(|(name, list)| (name.clone(), names(list)));
            self.add(Some(SchemaRule::DependentRequired(lists.collect())));
        }
        let name = self.child(place, "propertyNames");
        self.add(name.map(SchemaRule::PropertyNames));
        let dependent = self.named(place, "dependentSchemas");
        self.add(Some(SchemaRule::DependentSchemas(dependent)));
    }

    fn members(&mut self, place: &SchemaPlace<'a>) {
        let declared = self.named(place, "properties");
        let mut rest = match place.get("additionalProperties") {
            Some(Value::Bool(false)) => OtherMembers::Closed,
            _ => self
                .child(place, "additionalProperties")
                .map_or(OtherMembers::Open, OtherMembers::Fits),
        };
        let mut patterns = Vec::new();
        let mut is_partial = false;
        let by_pattern = self.named(place, "patternProperties");
        for text in by_pattern.names() {
            match pattern::regex(text) {
                Some(regex) => patterns.extend(by_pattern.get(text).map(|id| (regex, id))),
                None => {
                    self.skip(&under(&place.under("patternProperties"), text));
                    is_partial = true;
                }
            }
        }
        // If a pattern is not supported, it is unknown which properties are additional.
        if is_partial && !matches!(rest, OtherMembers::Open) {
            self.skip(&place.under("additionalProperties"));
            rest = OtherMembers::Open;
        }
        self.add(Some(SchemaRule::Members(MembersRule { declared, patterns, rest })));
    }

    fn lists(&mut self, place: &SchemaPlace<'a>) {
        let first = self.children(place, "prefixItems").unwrap_or_default();
        let rest = match place.get("items") {
            // Before 2020-12, a list under `items` was what `prefixItems` is now.
            Some(Value::Array(_)) => {
                self.skip(&place.under("items"));
                None
            }
            _ => self.child(place, "items"),
        };
        self.add(Some(SchemaRule::Items(Items { first, rest })));
        let min = place.get("minContains").and_then(count).unwrap_or(1);
        let max = place.get("maxContains").and_then(count);
        let contains = self.child(place, "contains").map(|id| Contains { id, min, max });
        self.add(contains.map(SchemaRule::Contains));
        let is_unique = place.get("uniqueItems").and_then(Value::as_bool) == Some(true);
        self.add(is_unique.then_some(SchemaRule::Unique));
    }

    fn logic(&mut self, place: &SchemaPlace<'a>) {
        let (all, any) = (self.children(place, "allOf"), self.children(place, "anyOf"));
        let (one, not) = (self.children(place, "oneOf"), self.child(place, "not"));
        let (then, otherwise) = (self.child(place, "then"), self.child(place, "else"));
        let test = self.child(place, "if");
        self.add(all.map(SchemaRule::AllOf));
        self.add(any.map(SchemaRule::AnyOf));
        self.add(one.map(SchemaRule::OneOf));
        self.add(not.map(SchemaRule::Not));
        self.add(test.map(|test| SchemaRule::If(test, then, otherwise)));
    }

    fn identity(&mut self, place: &SchemaPlace<'a>) {
        // Definitions make no rules. They are still read, to report errors in them.
        self.named(place, "$defs");
        self.named(place, "definitions");
        let id = place.text("$id");
        // Up to draft 7, an `$id` of `#name` was what `$anchor` is now.
        let old = id.and_then(|id| id.strip_prefix('#')).filter(|name| vocabulary::is_anchor(name));
        for name in [old, place.text("$anchor"), place.text("$dynamicAnchor")].into_iter().flatten()
        {
            self.anchor(place, name);
        }
        if place.get("$dynamicAnchor").is_some() {
            self.report(&place.under("$dynamicAnchor"));
        }
        if id.is_some() && old.is_none() && !place.at.is_empty() {
            self.report(&place.under("$id"));
        }
        if place.text("$schema").is_some_and(|draft| !vocabulary::is_known_draft(draft)) {
            self.report(&place.under("$schema"));
        }
    }
}
