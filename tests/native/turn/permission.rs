//! The decision about a permission: values in, a ruling out.

use lockgate::policy::permission::{Policy, Ruling, is_dangerous};
use lockgate::port::{Effect, Opinion, OwnDecision};
use lockgate::state::{Behavior, PermissionContext, PermissionMode, Rule};

use PermissionMode::{AcceptEdits, Bypass, Default as Plain, DontAsk, Explore};

fn rule(behavior: Behavior, content: Option<&str>) -> Rule {
    Rule {
        tool_name: "send".into(),
        rule_content: content.map(str::to_owned),
        behavior,
        source: "test".into(),
        rest: Default::default(),
    }
}

/// A session of this mode with a rule for each word.
fn context(mode: PermissionMode, rules: &str) -> PermissionContext {
    let mut context = PermissionContext { mode, ..PermissionContext::default() };
    for word in rules.split_whitespace() {
        let behavior = match word {
            "deny" => Behavior::Deny,
            "ask" => Behavior::Ask,
            _ => Behavior::Allow,
        };
        context.remember(rule(behavior, None));
    }
    context
}

fn word(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Allow => "allow",
        Ruling::Ask { .. } => "ask",
        Ruling::Deny(_) => "deny",
    }
}

fn own(word: &str) -> OwnDecision {
    match word {
        "allow" => OwnDecision::Allow,
        "ask" => OwnDecision::Ask("it asks".into()),
        "danger" => OwnDecision::Danger("it is dangerous".into()),
        "deny" => OwnDecision::Deny("it refuses".into()),
        _ => OwnDecision::Pass,
    }
}

/// The ruling on a call when the host has switched permissions on.
fn ruled(mode: PermissionMode, rules: &str, says: &str, effect: Effect) -> &'static str {
    let (host, session) = (PermissionContext::default(), context(mode, rules));
    let policy = Policy::of("send", Some(&host), &session);
    let opinion = Opinion { own: own(says), is_edit: effect == Effect::Edits, fits: None };
    word(&policy.rule(effect, &opinion, None))
}

#[test]
fn r39_deny_then_ask_then_the_tool_then_allow_then_the_mode_then_the_default() {
    use Effect::{Acts, Edits, Reads};
    for (mode, rules, says, effect, expected) in [
        (Plain, "deny ask allow", "allow", Acts, "deny"),
        (Bypass, "deny", "allow", Acts, "deny"),
        (Plain, "ask allow", "allow", Acts, "ask"),
        (Bypass, "ask allow", "allow", Acts, "ask"),
        (Plain, "allow", "deny", Acts, "deny"),
        (Bypass, "allow", "deny", Acts, "deny"),
        (Plain, "", "allow", Acts, "allow"),
        (Plain, "allow", "ask", Acts, "allow"),
        (Bypass, "", "ask", Acts, "allow"),
        (Plain, "allow", "danger", Acts, "ask"),
        (Bypass, "", "danger", Acts, "ask"),
        (AcceptEdits, "", "danger", Edits, "ask"),
        (Plain, "", "ask", Acts, "ask"),
        (Plain, "allow", "", Acts, "allow"),
        (Plain, "", "", Acts, "ask"),
        (Plain, "", "", Reads, "ask"),
        (AcceptEdits, "", "", Acts, "ask"),
        (AcceptEdits, "", "", Edits, "allow"),
        (AcceptEdits, "", "", Reads, "allow"),
        (AcceptEdits, "", "ask", Edits, "ask"),
        (Explore, "", "", Reads, "allow"),
        (Explore, "", "ask", Reads, "ask"),
        (Explore, "", "", Edits, "deny"),
        (Explore, "allow", "allow", Acts, "deny"),
        (Explore, "ask", "", Acts, "ask"),
        (Bypass, "", "", Acts, "allow"),
        (DontAsk, "", "", Acts, "deny"),
        (DontAsk, "", "", Reads, "deny"),
        (DontAsk, "allow", "", Acts, "allow"),
        (DontAsk, "ask allow", "", Acts, "deny"),
        (DontAsk, "allow", "danger", Acts, "deny"),
        (DontAsk, "", "allow", Acts, "allow"),
    ] {
        let case = format!("{mode:?}, rules {rules:?}, the tool says {says:?}, {effect:?}");
        assert_eq!(ruled(mode, rules, says, effect), expected, "{case}");
    }
}

#[test]
fn r39_without_rules_or_modes_only_a_tools_own_opinion_counts() {
    let session = PermissionContext::default();
    let policy = Policy::of("send", None, &session);
    for (says, expected) in
        [("", "allow"), ("ask", "ask"), ("danger", "ask"), ("deny", "deny"), ("allow", "allow")]
    {
        let opinion = Opinion { own: own(says), ..Opinion::default() };
        assert_eq!(word(&policy.rule(Effect::Acts, &opinion, None)), expected, "{says}");
    }
}

#[test]
fn a_05_stored_rules_never_weaken_rules_of_the_host() {
    let stored = context(Bypass, "allow");
    for (host, expected) in [("deny", "deny"), ("ask", "ask"), ("", "allow")] {
        let host = context(Plain, host);
        let policy = Policy::of("send", Some(&host), &stored);
        let ruling = policy.rule(Effect::Acts, &Opinion::default(), None);
        assert_eq!(word(&ruling), expected);
    }
    // Allow rules of the host are only the default of fresh sessions: a session that removed one keeps it removed.
    let (host, narrowed) = (context(Plain, "allow"), context(Plain, ""));
    let policy = Policy::of("send", Some(&host), &narrowed);
    assert_eq!(word(&policy.rule(Effect::Acts, &Opinion::default(), None)), "ask");
}

#[test]
fn a_06_the_tool_compares_rules_with_content_and_an_unknown_result_never_allows() {
    let mut session = PermissionContext::default();
    session.remember(rule(Behavior::Deny, Some("evil")));
    session.remember(rule(Behavior::Ask, Some("odd")));
    session.remember(rule(Behavior::Allow, Some("good")));
    let policy = Policy::of("send", None, &session);
    assert_eq!(policy.contents(), ["evil", "odd", "good"]);
    let rule = |fits: Option<&[bool]>| {
        let opinion = Opinion { fits: fits.map(<[bool]>::to_vec), ..Opinion::default() };
        word(&policy.rule(Effect::Acts, &opinion, None))
    };
    assert_eq!(rule(Some(&[true, true, true])), "deny");
    assert_eq!(rule(Some(&[false, true, true])), "ask");
    assert_eq!(rule(Some(&[false, false, true])), "allow");
    assert_eq!(rule(Some(&[false, false, false])), "ask");
    // A tool that cannot compare, and one that compares only some.
    assert_eq!(rule(None), "deny");
    assert_eq!(rule(Some(&[false, false])), "deny");
    // An allow rule that cannot be compared does not allow.
    let (host, mut session) = (PermissionContext::default(), PermissionContext::default());
    session.remember(self::rule(Behavior::Allow, Some("good")));
    let policy = Policy::of("send", Some(&host), &session);
    assert_eq!(word(&policy.rule(Effect::Acts, &Opinion::default(), None)), "ask");
}

#[test]
fn a_06_rules_of_other_tools_have_no_effect() {
    let mut session = PermissionContext::default();
    for name in ["Send", "send ", "sеnd", "sen", "send(x)", "*"] {
        session.remember(Rule { tool_name: name.into(), ..rule(Behavior::Allow, None) });
    }
    let host = PermissionContext::default();
    for (host, expected) in [(Some(&host), "ask"), (None, "allow")] {
        let policy = Policy::of("send", host, &session);
        assert_eq!(word(&policy.rule(Effect::Acts, &Opinion::default(), None)), expected);
    }
}

#[test]
fn a_rule_that_allows_one_tool_makes_no_other_tool_ask() {
    let mut session = PermissionContext::default();
    session.remember(Rule { tool_name: "other".into(), ..rule(Behavior::Allow, None) });
    session.remember(Rule { tool_name: "other".into(), ..rule(Behavior::Allow, Some("x")) });
    for (says, expected) in [("", "allow"), ("ask", "ask"), ("danger", "ask"), ("deny", "deny")] {
        let opinion = Opinion { own: own(says), ..Opinion::default() };
        let policy = Policy::of("send", None, &session);
        assert_eq!(word(&policy.rule(Effect::Acts, &opinion, None)), expected, "{says}");
    }
}

#[test]
fn a_child_keeps_its_rules_and_gets_those_of_a_parent_that_nothing_limits() {
    let mut parent = PermissionContext::default();
    parent.remember(Rule { tool_name: "look".into(), ..rule(Behavior::Allow, None) });
    let mut child = context(Plain, "allow");
    child.limit(&parent, None);
    let tools: Vec<_> = child.allow_rules.iter().map(|rule| &*rule.tool_name).collect();
    assert_eq!(tools, ["send", "look"]);
    // If the host has set permissions, the parent asks by default, so the child has the rules of the parent alone.
    child.limit(&parent, Some(&PermissionContext::default()));
    assert_eq!(child, parent);
}

#[test]
fn a_rule_of_its_own_that_allows_does_not_take_the_mode_of_its_parent_from_a_child() {
    let parent = context(AcceptEdits, "allow");
    let mut child = context(Plain, "allow");
    child.limit(&parent, None);
    assert_eq!(child, parent);
}

#[test]
fn a_12_a_child_has_no_wider_permissions_than_its_parent() {
    for mode in [Plain, AcceptEdits, Explore, Bypass, DontAsk] {
        for rules in ["", "deny", "ask", "deny ask", "allow"] {
            let parent = context(mode, rules);
            let mut child = context(Bypass, "allow");
            child.limit(&parent, None);
            let rule = |context| {
                let policy = Policy::of("send", None, context);
                policy.rule(Effect::Acts, &Opinion::default(), None)
            };
            let (of_parent, of_child) = (rule(&parent), rule(&child));
            let refused = matches!(of_parent, Ruling::Deny(_));
            assert!(!refused || word(&of_child) == "deny", "{mode:?} {rules}");
            let asked = rules.contains("ask") && word(&of_parent) == "ask";
            assert!(!asked || word(&of_child) != "allow", "{mode:?} {rules}");
            child.limit(&parent, None);
            assert!(child.deny_rules.len() <= 1, "a rule is there once");
        }
    }
}

#[test]
fn a_12_a_child_that_loses_its_own_rules_takes_over_those_of_its_parent() {
    let parent = context(AcceptEdits, "");
    let mut child = context(Plain, "allow");
    child.limit(&parent, None);
    let policy = Policy::of("send", None, &child);
    assert_eq!(word(&policy.rule(Effect::Acts, &Opinion::default(), None)), "ask");
}

#[test]
fn a_12_a_parent_without_rules_leaves_the_rules_of_its_child() {
    let own = context(Plain, "ask");
    let mut child = own.clone();
    child.limit(&PermissionContext::default(), None);
    assert_eq!(child, own);
}

#[test]
fn a_barred_tool_is_denied_against_every_rule() {
    let session = context(Bypass, "allow");
    let policy = Policy::of("send", None, &session);
    let opinion = Opinion { own: OwnDecision::Allow, ..Opinion::default() };
    let ruling = policy.rule(Effect::Acts, &opinion, Some("a plan is being made"));
    assert_eq!(ruling, Ruling::Deny("a plan is being made".into()));
}

#[test]
fn a_06_dangerous_paths_are_recognised_in_every_spelling() {
    for path in [
        ".env",
        ".ENV",
        "app/.env.local",
        ".git/config",
        "a/.GIT/hooks/x",
        ".ssh/id",
        ".npmrc",
        "home/.Bashrc",
        ".ssh",
        ".vscode/settings.json",
        "x/authorized_keys",
        ".netrc",
    ] {
        assert!(is_dangerous(path), "{path}");
    }
    for path in ["env", "notes/env.md", "git/config", "a.env", "environment", ".gitignore", ""] {
        assert!(!is_dangerous(path), "{path}");
    }
}
