//! Excerpts: the part of a message that shows why it was found.

use crate::store::search::terms::{QueryTerm, each_term};

/// Length of an excerpt in bytes, and how much of it is before the hit.
const LENGTH: usize = 240;
const BEFORE: usize = 60;

/// The part of a text that contains most terms of the query. `None`: the text contains none of them.
pub fn excerpt(text: &str, asked: &[QueryTerm]) -> Option<String> {
    let mut hits: Vec<(usize, usize)> = Vec::new();
    each_term(text, &mut |term, at| {
        let meant = asked.iter().position(|asked| asked.means(term.as_bytes()));
        hits.extend(meant.map(|meant| (at, meant)));
    });
    let within = |from: usize| {
        let near = hits.iter().filter(|(at, _)| (from..from + LENGTH - BEFORE).contains(at));
        let mut seen: Vec<usize> = Vec::new();
        for (_, meant) in near {
            if !seen.contains(meant) {
                seen.push(*meant);
            }
        }
        seen.len()
    };
    // In a text with very many hits the first ones are enough.
    let mut best = (hits.first()?.0, 0);
    for (at, _) in hits.iter().take(100) {
        let n_meant = within(*at);
        if n_meant > best.1 {
            best = (*at, n_meant);
        }
    }
    Some(cut(text, best.0))
}

/// The text around a position, cut between characters and if possible between words.
fn cut(text: &str, at: usize) -> String {
    let start = border(text, at.saturating_sub(BEFORE));
    let end = border(text, (start + LENGTH).min(text.len()));
    let part = text.get(start..end).unwrap_or_default();
    let lead = text.get(start..at).and_then(|lead| lead.split_once(char::is_whitespace));
    let skipped = lead.filter(|_| start > 0).map_or(0, |(half, _)| half.len());
    let shown = part.get(skipped..).unwrap_or(part).trim();
    let [before, after] = [start > 0, end < text.len()].map(|cut| if cut { "…" } else { "" });
    format!("{before}{shown}{after}")
}

/// The last character boundary at or before a position.
fn border(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
