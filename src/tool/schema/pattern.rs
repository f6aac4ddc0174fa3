//! Patterns: rewrites regular expressions of ECMAScript for `regex-lite`.
//!
//! Most syntax is the same. Syntax with another meaning is rewritten here. Syntax without a counterpart (look-around,
//! back-references, `\p{…}`) is not supported.

use std::str::Chars;

use regex_lite::{Regex, RegexBuilder};

/// Memory limit of a pattern: `a{9999}{9999}` is refused.
const MAX_BYTES: usize = 1 << 20;

const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";
const SPACE: &str = concat!(
    r"\x{9}-\x{D}\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}",
    r"\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}",
);
const NO_SPACE: &str = concat!(
    r"\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}",
    r"\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}",
    r"\x{3001}-\x{FEFE}\x{FF00}-\x{10FFFF}",
);

/// The compiled pattern; `None` if it is not supported.
pub(super) fn regex(pattern: &str) -> Option<Regex> {
    let text = PatternReader { rest: pattern.chars() }.pattern()?;
    RegexBuilder::new(&text).size_limit(MAX_BYTES).build().ok()
}

struct PatternReader<'a> {
    rest: Chars<'a>,
}

/// One element of a class such as `[\w-]`.
enum Element {
    Char(char),
    Set(&'static str),
}

impl PatternReader<'_> {
    fn pattern(mut self) -> Option<String> {
        let mut out = String::new();
        while let Some(next) = self.rest.next() {
            match next {
                '.' => out.push_str(NO_LINE_END),
                '[' => self.class(&mut out)?,
                '\\' => self.escape(&mut out)?,
                '(' if self.sees("?") && !self.is_plain_group() => return None,
                other => out.push(other),
            }
        }
        Some(out)
    }

    fn sees(&self, text: &str) -> bool {
        self.rest.as_str().starts_with(text)
    }

    fn is_plain_group(&self) -> bool {
        let is_look_behind = self.sees("?<=") || self.sees("?<!");
        self.sees("?:") || (self.sees("?<") && !is_look_behind)
    }

    fn escape(&mut self, out: &mut String) -> Option<()> {
        match self.rest.clone().next()? {
            // `\b{start}` exists only in `regex-lite`.
            'b' if self.sees("b{") => return None,
            edge @ ('b' | 'B') => {
                self.rest.next();
                out.extend(['\\', edge]);
            }
            _ => {
                out.push('[');
                self.element('\\')?.write(out);
                out.push(']');
            }
        }
        Some(())
    }

    fn class(&mut self, out: &mut String) -> Option<()> {
        out.push('[');
        if self.sees("^") {
            self.rest.next();
            out.push('^');
        }
        if self.sees("]") {
            return None;
        }
        loop {
            let first = match self.rest.next()? {
                ']' => break,
                next => self.element(next)?,
            };
            first.write(out);
            // A set cannot begin a range: the dash after it is a plain dash.
            let is_range = matches!(first, Element::Char(_)) && self.sees("-") && !self.sees("-]");
            if is_range {
                self.rest.next();
                let next = self.rest.next()?;
                let last = self.element(next)?;
                out.push_str(if matches!(last, Element::Char(_)) { "-" } else { r"\-" });
                last.write(out);
            }
        }
        out.push(']');
        Some(())
    }

    fn element(&mut self, next: char) -> Option<Element> {
        if next != '\\' {
            return Some(Element::Char(next));
        }
        Some(match self.rest.next()? {
            'd' => Element::Set(r"\d"),
            'D' => Element::Set(r"\D"),
            'w' => Element::Set(r"\w"),
            'W' => Element::Set(r"\W"),
            's' => Element::Set(SPACE),
            'S' => Element::Set(NO_SPACE),
            't' => Element::Char('\t'),
            'n' => Element::Char('\n'),
            'r' => Element::Char('\r'),
            'v' => Element::Char('\x0B'),
            'f' => Element::Char('\x0C'),
            'b' => Element::Char('\x08'),
            '0' if !self.rest.as_str().starts_with(|next: char| next.is_ascii_digit()) => {
                Element::Char('\0')
            }
            'c' => Element::Char(self.control()?),
            'x' => Element::Char(char::from_u32(self.hex(2)?)?),
            'u' => Element::Char(self.unicode()?),
            other if other.is_ascii_alphanumeric() => return None,
            other => Element::Char(other),
        })
    }

    fn control(&mut self) -> Option<char> {
        let letter = self.rest.next().filter(char::is_ascii_alphabetic)?;
        char::from_u32(u32::from(letter) % 32)
    }

    fn hex(&mut self, n_digits: usize) -> Option<u32> {
        let (digits, rest) = self.rest.as_str().split_at_checked(n_digits)?;
        self.rest = rest.chars();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    }

    /// `\u0041`, `\u{41}`, or a pair of surrogates.
    fn unicode(&mut self) -> Option<char> {
        if self.sees("{") {
            let (digits, _) = self.rest.as_str().get(1..)?.split_once('}')?;
            self.rest.next();
            let code = self.hex(digits.len())?;
            self.rest.next();
            return char::from_u32(code);
        }
        let first = self.hex(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        let is_pair = self.rest.next() == Some('\\') && self.rest.next() == Some('u');
        let second = self.hex(4).filter(|code| is_pair && (0xDC00..0xE000).contains(code))?;
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }
}

impl Element {
    fn write(&self, out: &mut String) {
        match self {
            Element::Char(char) => out.push_str(&format!(r"\x{{{:X}}}", u32::from(*char))),
            Element::Set(set) => out.push_str(set),
        }
    }
}
