//! Patterns from the model, for paths and for text. Searching takes linear time, and large patterns are refused.

use regex_lite::{Regex, RegexBuilder};

use crate::error::Result;
use crate::tool::workspace::refused;

/// Longest pattern, in bytes.
const LONGEST: usize = 1_000;

/// Memory limits of a pattern: the first that is tried, and the largest.
const MEMORY: (usize, usize) = (1 << 9, 1 << 13);

/// Limit for the memory of a pattern times the bytes that it searches: at worst some seconds, because a search cannot be
/// stopped.
const MOST_WORK: usize = 1 << 30;

/// A regular expression, and how many bytes it may search. At worst each byte takes as many steps as the expression has
/// states.
pub(super) fn regex(pattern: &str) -> Result<(Regex, usize)> {
    check_length(pattern)?;
    let mut memory = MEMORY.0;
    loop {
        match build(pattern, memory) {
            Err(_) if memory < MEMORY.1 => memory *= 2,
            built => return built.map(|regex| (regex, MOST_WORK / memory)),
        }
    }
}

/// A pattern of paths, as a regular expression. Braces are not expanded, so they cannot explode.
pub(super) fn glob(pattern: &str) -> Result<Regex> {
    check_length(pattern)?;
    let mut out = String::from(if pattern.contains('/') { "^" } else { "^(?:.*/)?" });
    let mut rest = pattern;
    let mut n_open = 0_usize;
    while let Some(next) = rest.chars().next() {
        let (text, n_bytes) = match next {
            _ if rest.starts_with("**/") => ("(?:.*/)?", 3),
            _ if rest.starts_with("**") => (".*", 2),
            '*' => ("[^/]*", 1),
            '?' => ("[^/]", 1),
            '{' => ("(?:", 1),
            '}' if n_open > 0 => (")", 1),
            ',' if n_open > 0 => ("|", 1),
            other => ("", other.len_utf8()),
        };
        n_open = (n_open + usize::from(next == '{')).saturating_sub(usize::from(next == '}'));
        let (taken, behind) = rest.split_at_checked(n_bytes).unwrap_or((rest, ""));
        out.push_str(&if text.is_empty() { regex_lite::escape(taken) } else { text.to_owned() });
        rest = behind;
    }
    out.push('$');
    build(&out, MEMORY.1)
}

fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() <= LONGEST { Ok(()) } else { Err(refused("The pattern is too long.")) }
}

fn build(expression: &str, memory: usize) -> Result<Regex> {
    let built = RegexBuilder::new(expression).size_limit(memory).build();
    built.map_err(|error| refused(format!("The pattern cannot be used: {error}.")))
}
