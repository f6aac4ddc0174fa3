//! Permission: whether a tool call runs, is asked about, or is refused.
//!
//! The order is: a bar on the call, deny rules, ask rules, the tool's own opinion, allow rules, the mode. Deny and ask
//! rules of the host apply in every session. Rules stored in a session cannot allow what the host denies or asks about.
//!
//! A rule that allows only ever removes questions: one more of them never makes a call ask that ran without a question.

use crate::spec::{Effect, Opinion, OwnDecision};
use crate::state::{Behavior, PermissionContext, PermissionMode, Rule};

/// The decision about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask {
        /// Why.
        why: String,
        /// Whether an allow rule would prevent this question.
        rule_would_allow: bool,
    },
    /// It does not run.
    Deny(String),
}

/// The rules and the mode that hold for calls of one tool in one session.
pub struct Policy<'a> {
    tool: &'a str,
    deny: Vec<&'a Rule>,
    ask: Vec<&'a Rule>,
    allow: Vec<&'a Rule>,
    mode: PermissionMode,
    /// Whether calls that no rule matches are asked about. If not, only the tools themselves ask.
    asks_by_default: bool,
}

impl<'a> Policy<'a> {
    /// Combines the rules of the host with the rules stored in the session.
    pub fn of(
        tool: &'a str,
        host: Option<&'a PermissionContext>,
        session: &'a PermissionContext,
    ) -> Policy<'a> {
        let about = |rules: &'a [Rule]| rules.iter().filter(move |rule| rule.tool_name == tool);
        let of_host = |pick: fn(&PermissionContext) -> &[Rule]| host.map_or(&[][..], pick);
        let deny = about(of_host(|host| &host.deny_rules)).chain(about(&session.deny_rules));
        let ask = about(of_host(|host| &host.ask_rules)).chain(about(&session.ask_rules));
        Policy {
            tool,
            deny: deny.collect(),
            ask: ask.collect(),
            allow: about(&session.allow_rules).collect(),
            mode: session.mode,
            asks_by_default: host.is_some() || session.narrows(),
        }
    }

    /// The contents of the rules about the tool. The tool compares them with its input, in this order.
    pub fn contents(&self) -> Vec<&'a str> {
        let rules = self.deny.iter().chain(&self.ask).chain(&self.allow);
        rules.filter_map(|rule| content(rule)).collect()
    }

    /// Decides about a call of the tool. `barred` is the reason why no call may run at the moment, regardless of the rules.
    pub fn rule(&self, effect: Effect, opinion: &Opinion, barred: Option<&str>) -> Ruling {
        if let Some(why) = barred {
            return Ruling::Deny(why.to_owned());
        }
        let n_contents = self.contents().len();
        if opinion.fits.as_ref().is_some_and(|fits| fits.len() != n_contents) {
            return Ruling::Deny("its rules could not be compared with what it was given".into());
        }
        let (n_deny, n_ask) = (n_with_content(&self.deny), n_with_content(&self.ask));
        if let Some(rule) = first_match(&self.deny, opinion, 0, true) {
            return Ruling::Deny(self.says("forbids", rule));
        }
        let ruling = match first_match(&self.ask, opinion, n_deny, true) {
            Some(rule) => {
                Ruling::Ask { why: self.says("asks about", rule), rule_would_allow: false }
            }
            None => {
                let is_allowed = first_match(&self.allow, opinion, n_deny + n_ask, false).is_some();
                self.without_rules(effect, opinion, is_allowed)
            }
        };
        match ruling {
            Ruling::Ask { why, .. } if self.mode == PermissionMode::DontAsk => {
                Ruling::Deny(format!("{why}, and the mode dont_ask turns questions into denials"))
            }
            ruling => ruling,
        }
    }

    /// Decides without deny and ask rules: by the tool's own opinion, then by allow rules, then by the mode.
    fn without_rules(&self, effect: Effect, opinion: &Opinion, is_allowed: bool) -> Ruling {
        let is_read_only = effect.is_read_only();
        let ask =
            |why: &str, rule_would_allow| Ruling::Ask { why: why.to_owned(), rule_would_allow };
        let asks = match &opinion.own {
            OwnDecision::Deny(why) => return Ruling::Deny(why.clone()),
            _ if self.mode == PermissionMode::Explore && !is_read_only => {
                return Ruling::Deny("the mode explore denies tools that may change things".into());
            }
            OwnDecision::Danger(why) => return ask(why, false),
            OwnDecision::Allow => return Ruling::Allow,
            OwnDecision::Ask(why) => Some(why),
            OwnDecision::Pass => None,
        };
        if is_allowed || self.mode == PermissionMode::Bypass {
            return Ruling::Allow;
        }
        if let Some(why) = asks {
            return ask(why, true);
        }
        let may = match self.mode {
            PermissionMode::Explore => is_read_only,
            PermissionMode::AcceptEdits => is_read_only || opinion.is_edit,
            PermissionMode::Default | PermissionMode::DontAsk | PermissionMode::Bypass => false,
        };
        if may || !self.asks_by_default {
            return Ruling::Allow;
        }
        ask("no rule allows it", true)
    }

    fn says(&self, what: &str, rule: &Rule) -> String {
        match content(rule) {
            Some(content) => format!("a rule {what} {}({content})", self.tool),
            None => format!("a rule {what} {}", self.tool),
        }
    }
}

impl PermissionContext {
    /// Whether anything here narrows what tools may do. A rule that allows does not.
    pub fn narrows(&self) -> bool {
        let has_rules = !self.ask_rules.is_empty() || !self.deny_rules.is_empty();
        has_rules || self.mode != PermissionMode::Default
    }

    /// Adds a rule to the list of its behaviour, unless the list has it.
    pub fn remember(&mut self, rule: Rule) {
        let rules = match rule.behavior {
            Behavior::Allow => &mut self.allow_rules,
            Behavior::Ask => &mut self.ask_rules,
            Behavior::Deny => &mut self.deny_rules,
        };
        if !has(rules, &rule) {
            rules.push(rule);
        }
    }

    /// Makes these permissions of a subagent no wider than those of its parent. `host` are the permissions of the host.
    pub fn limit(&mut self, parent: &PermissionContext, host: Option<&PermissionContext>) {
        if host.is_none() && !parent.narrows() {
            // Nothing limits the parent. What it need not ask about, its child need not ask about either.
            parent.allow_rules.iter().for_each(|rule| self.remember(rule.clone()));
            return;
        }
        // A child that narrows nothing itself takes over what its parent may do.
        if !self.narrows() {
            *self = parent.clone();
            return;
        }
        for rule in parent.deny_rules.iter().chain(&parent.ask_rules) {
            self.remember(rule.clone());
        }
        self.allow_rules = parent.allow_rules.clone();
        self.working_directories = parent.working_directories.clone();
        self.mode = stricter(self.mode, parent.mode);
    }
}

fn stricter(one: PermissionMode, other: PermissionMode) -> PermissionMode {
    let rank = |mode| match mode {
        PermissionMode::Explore => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::Bypass => 4,
    };
    if rank(other) < rank(one) { other } else { one }
}

fn has(rules: &[Rule], rule: &Rule) -> bool {
    let about = |it: &Rule| (it.tool_name.clone(), it.rule_content.clone());
    rules.iter().any(|it| about(it) == about(rule))
}

/// The first rule that matches. With `narrows`, a rule that cannot be compared matches too, so that doubt never allows
/// a call.
fn first_match<'a>(
    rules: &[&'a Rule],
    opinion: &Opinion,
    first: usize,
    narrows: bool,
) -> Option<&'a Rule> {
    let mut index = first;
    let fits = |rule: &&&'a Rule| {
        if content(rule).is_none() {
            return true;
        }
        index += 1;
        let fits = opinion.fits.as_ref().map(|fits| fits.get(index - 1).copied());
        fits.flatten().unwrap_or(narrows)
    };
    rules.iter().find(fits).copied()
}

fn n_with_content(rules: &[&Rule]) -> usize {
    rules.iter().filter(|rule| content(rule).is_some()).count()
}

/// The inputs that a rule applies to; `None` means all inputs.
fn content(rule: &Rule) -> Option<&str> {
    rule.rule_content.as_deref().filter(|content| !content.is_empty())
}

const FOLDERS: &[&str] = &[".git", ".vscode", ".idea", ".ssh"];
const FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".env",
    "authorized_keys",
];

/// Whether the path is the configuration of other programs or contains secrets. The path has no `.` or `..` in it.
pub fn is_dangerous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let mut names = path.split('/');
    let name = names.next_back().unwrap_or_default();
    let is_secret = FILES.contains(&name) || name.starts_with(".env.") || FOLDERS.contains(&name);
    is_secret || names.any(|folder| FOLDERS.contains(&folder))
}
