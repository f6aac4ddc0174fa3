//! Permission: whether a tool call runs, is asked about, or is refused.
//!
//! The order is: what bars it, rules that deny, rules that ask, what the tool says itself, rules that allow, the mode.
//! Rules of the host that deny or ask count in every session, whatever is stored there; what is stored can allow only
//! what they leave open.

use crate::spec::{Effect, Opinion, Own};
use crate::state::{Behavior, PermissionContext, PermissionMode, Rule};

/// What becomes of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask {
        /// Why.
        why: String,
        /// Whether a rule that allows it would have settled it.
        settles: bool,
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
    /// Whether anybody has said anything about permissions: where nobody has, only tools themselves ask.
    is_set: bool,
}

impl<'a> Policy<'a> {
    /// What the host says, over what the session has stored.
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
            is_set: host.is_some() || !session.is_trivial(),
        }
    }

    /// What the tool is to compare the input with: the contents of its rules, in the order that its opinion answers in.
    pub fn contents(&self) -> Vec<&'a str> {
        let rules = self.deny.iter().chain(&self.ask).chain(&self.allow);
        rules.filter_map(|rule| content(rule)).collect()
    }

    /// What becomes of a call of the tool. `barred`: why no such call may run now, whatever the rules say.
    pub fn rule(&self, effect: Effect, opinion: &Opinion, barred: Option<&str>) -> Ruling {
        if let Some(why) = barred {
            return Ruling::Deny(why.to_owned());
        }
        let n_contents = self.contents().len();
        if opinion.fits.as_ref().is_some_and(|fits| fits.len() != n_contents) {
            return Ruling::Deny("its rules could not be compared with what it was given".into());
        }
        let (n_deny, n_ask) = (n_with_content(&self.deny), n_with_content(&self.ask));
        if let Some(rule) = hit(&self.deny, opinion, 0, true) {
            return Ruling::Deny(self.says("forbids", rule));
        }
        let ruling = match hit(&self.ask, opinion, n_deny, true) {
            Some(rule) => Ruling::Ask { why: self.says("asks about", rule), settles: false },
            None => {
                let is_allowed = hit(&self.allow, opinion, n_deny + n_ask, false).is_some();
                self.without_rules(effect, opinion, is_allowed)
            }
        };
        match ruling {
            Ruling::Ask { why, .. } if self.mode == PermissionMode::DontAsk => {
                Ruling::Deny(format!("{why}, and this session asks nobody"))
            }
            ruling => ruling,
        }
    }

    /// What the tool says, then rules that allow, then the mode.
    fn without_rules(&self, effect: Effect, opinion: &Opinion, is_allowed: bool) -> Ruling {
        let is_read_only = effect.is_read_only();
        let ask = |why: &str, settles| Ruling::Ask { why: why.to_owned(), settles };
        let asks = match &opinion.own {
            Own::Deny(why) => return Ruling::Deny(why.clone()),
            _ if self.mode == PermissionMode::Explore && !is_read_only => {
                return Ruling::Deny(
                    "this session only looks, and the tool may change things".into(),
                );
            }
            Own::Danger(why) => return ask(why, false),
            Own::Allow => return Ruling::Allow,
            Own::Ask(why) => Some(why),
            Own::Pass => None,
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
        if may || !self.is_set {
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
    /// Whether nobody has said anything.
    pub fn is_trivial(&self) -> bool {
        let no_rules =
            [&self.allow_rules, &self.ask_rules, &self.deny_rules].iter().all(|it| it.is_empty());
        no_rules && self.mode == PermissionMode::Default
    }

    /// Adds a rule to those of its behaviour, once.
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

    /// Makes this no wider than a parent: its rules that deny or ask hold here too, and nothing is allowed here that it
    /// would be asked about.
    pub fn narrow(&mut self, parent: &PermissionContext) {
        for rule in parent.deny_rules.iter().chain(&parent.ask_rules) {
            self.remember(rule.clone());
        }
        if !parent.is_trivial() && parent.mode != PermissionMode::Bypass {
            self.allow_rules.retain(|rule| has(&parent.allow_rules, rule));
        }
        let is_wide = |mode| matches!(mode, PermissionMode::AcceptEdits | PermissionMode::Bypass);
        self.mode = match parent.mode {
            PermissionMode::Bypass => self.mode,
            PermissionMode::AcceptEdits if self.mode != PermissionMode::Bypass => self.mode,
            PermissionMode::Default if parent.is_trivial() || !is_wide(self.mode) => self.mode,
            stricter => stricter,
        };
    }
}

fn has(rules: &[Rule], rule: &Rule) -> bool {
    let about = |it: &Rule| (it.tool_name.clone(), it.rule_content.clone());
    rules.iter().any(|it| about(it) == about(rule))
}

/// The first rule that fits. `narrows`: one that nobody can compare fits too, so that a doubt never lets anything run.
fn hit<'a>(rules: &[&'a Rule], opinion: &Opinion, first: usize, narrows: bool) -> Option<&'a Rule> {
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

/// Which inputs a rule is about; none is all.
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

/// Whether a path leads to what configures other programs or keeps secrets. It has no `.` or `..` in it.
pub fn is_dangerous(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let mut names = path.split('/');
    let name = names.next_back().unwrap_or_default();
    let is_secret = FILES.contains(&name) || name.starts_with(".env.") || FOLDERS.contains(&name);
    is_secret || names.any(|folder| FOLDERS.contains(&folder))
}
