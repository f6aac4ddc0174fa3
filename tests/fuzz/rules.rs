//! Permission rules: for any rules, one more deny rule never allows more, and one more allow rule never allows less.

use lockgate::policy::permission::{Policy, Ruling};
use lockgate::port::{Effect, Opinion, OwnDecision};
use lockgate::state::{Behavior, PermissionContext, PermissionMode, Rule};

use crate::each;
use crate::make::Chance;

const MODES: &[PermissionMode] = &[
    PermissionMode::Default,
    PermissionMode::Explore,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
    PermissionMode::Bypass,
];

const EFFECTS: &[Effect] = &[Effect::Acts, Effect::Reads, Effect::Edits, Effect::Notes];

const TOOL: &str = "t";

fn rule(chance: &mut Chance, behavior: Behavior) -> Rule {
    let content = (!chance.one_in(3)).then(|| chance.word(&["a/**", "", "b"]));
    Rule {
        tool_name: chance.pick(&[TOOL, TOOL, "other"]).to_owned(),
        rule_content: content,
        behavior,
        source: String::new(),
        rest: Default::default(),
    }
}

fn rules(chance: &mut Chance, behavior: Behavior) -> Vec<Rule> {
    (0..chance.below(4)).map(|_| rule(chance, behavior)).collect()
}

fn permissions(chance: &mut Chance) -> PermissionContext {
    PermissionContext {
        mode: chance.pick(MODES),
        allow_rules: rules(chance, Behavior::Allow),
        ask_rules: rules(chance, Behavior::Ask),
        deny_rules: rules(chance, Behavior::Deny),
        ..PermissionContext::default()
    }
}

/// The same, often without a kind of rules and in the default mode.
fn sparse(chance: &mut Chance) -> PermissionContext {
    let mut context = permissions(chance);
    if chance.one_in(2) {
        context.mode = PermissionMode::Default;
    }
    for rules in [&mut context.allow_rules, &mut context.ask_rules, &mut context.deny_rules] {
        if chance.one_in(2) {
            rules.clear();
        }
    }
    context
}

fn own_decision(chance: &mut Chance) -> OwnDecision {
    match chance.below(5) {
        0 => OwnDecision::Allow,
        1 => OwnDecision::Ask("w".into()),
        2 => OwnDecision::Deny("w".into()),
        3 => OwnDecision::Danger("w".into()),
        _ => OwnDecision::Pass,
    }
}

/// The tool's opinion: equal contents always get the same answer.
fn opinion(
    policy: &Policy<'_>,
    own: &OwnDecision,
    fits: &dyn Fn(&str) -> bool,
    blind: bool,
) -> Opinion {
    let fits = policy.contents().into_iter().map(fits).collect();
    Opinion { own: own.clone(), fits: (!blind).then_some(fits), ..Opinion::default() }
}

/// The rank of a ruling: deny, ask, allow.
fn width(ruling: &Ruling) -> u8 {
    match ruling {
        Ruling::Deny(_) => 0,
        Ruling::Ask { .. } => 1,
        Ruling::Allow => 2,
    }
}

#[test]
fn a_new_deny_rule_never_allows_more_and_every_matching_deny_rule_denies() {
    each("a_new_deny_rule", |chance| {
        let (mut session, host) = (permissions(chance), permissions(chance));
        let host = (!chance.one_in(3)).then_some(host);
        let (effect, own) = (chance.pick(EFFECTS), own_decision(chance));
        let (fitting, blind) = (chance.pick(&["a/**", "b", ""]), chance.one_in(6));
        let fits = |content: &str| content == fitting;
        let ruled = |session: &PermissionContext, barred: Option<&str>| {
            let policy = Policy::of(TOOL, host.as_ref(), session);
            policy.rule(effect, &opinion(&policy, &own, &fits, blind), barred)
        };
        let before = ruled(&session, None);
        assert!(matches!(ruled(&session, Some("no")), Ruling::Deny(_)));
        if session.mode == PermissionMode::DontAsk {
            assert!(!matches!(before, Ruling::Ask { .. }), "{session:?}");
        }
        let denies = |rule: &Rule| {
            let about = rule.rule_content.as_deref().unwrap_or_default();
            rule.tool_name == TOOL && (about.is_empty() || blind || fits(about))
        };
        let of_host = host.iter().flat_map(|host| &host.deny_rules);
        if session.deny_rules.iter().chain(of_host).any(denies) {
            assert!(matches!(before, Ruling::Deny(_)), "{session:?} {host:?}");
        }
        session.deny_rules.push(rule(chance, Behavior::Deny));
        assert!(width(&ruled(&session, None)) <= width(&before), "{session:?} {host:?}");
    });
}

#[test]
fn a_new_allow_rule_never_makes_a_call_ask_or_denies_it_in_a_session_or_its_subagents() {
    each("a_new_allow_rule", |chance| {
        let host = (!chance.one_in(3)).then(|| permissions(chance));
        let (parent, own) = (sparse(chance), sparse(chance));
        let (effect, decision) = (chance.pick(EFFECTS), own_decision(chance));
        let (fitting, blind) = (chance.pick(&["a/**", "b", ""]), chance.one_in(6));
        let is_edit = chance.one_in(2);
        let fits = |content: &str| content == fitting;
        let ruled = |of: &PermissionContext| {
            let policy = Policy::of(TOOL, host.as_ref(), of);
            let opinion = Opinion { is_edit, ..opinion(&policy, &decision, &fits, blind) };
            width(&policy.rule(effect, &opinion, None))
        };
        let of_child = |parent: &PermissionContext, own: &PermissionContext| {
            let mut child = own.clone();
            child.limit(parent, host.as_ref());
            ruled(&child)
        };
        let more = |context: &PermissionContext, added: &Rule| {
            let mut more = context.clone();
            more.remember(added.clone());
            more
        };
        let added = rule(chance, Behavior::Allow);
        let (more_parent, more_own) = (more(&parent, &added), more(&own, &added));
        let case = format!("{added:?} {parent:?} {own:?} {host:?}");
        assert!(ruled(&more_parent) >= ruled(&parent), "a session: {case}");
        let before = of_child(&parent, &own);
        assert!(of_child(&more_parent, &own) >= before, "a rule of the parent: {case}");
        assert!(of_child(&parent, &more_own) >= before, "a rule of the subagent: {case}");
    });
}

#[test]
fn a_child_is_allowed_only_what_its_parent_is_allowed() {
    each("a_child_is_allowed", |chance| {
        let (parent, own) = (sparse(chance), sparse(chance));
        let host = chance.one_in(3).then(|| permissions(chance));
        let mut child = own.clone();
        child.limit(&parent, host.as_ref());
        let fits = |content: &str| content == "b";
        let ruled = |of: &PermissionContext| {
            let policy = Policy::of(TOOL, host.as_ref(), of);
            policy.rule(Effect::Acts, &opinion(&policy, &OwnDecision::Pass, &fits, false), None)
        };
        // A rule that asks comes before the mode, so a child may ask where its parent is denied.
        let is_allowed = ruled(&parent) == Ruling::Allow;
        assert!(is_allowed || ruled(&child) != Ruling::Allow, "{parent:?} {own:?}");
        let again = child.clone();
        child.limit(&parent, host.as_ref());
        assert_eq!(child, again, "a second limit by the same parent changes nothing");
    });
}
