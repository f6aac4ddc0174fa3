//! Makes inputs: random ones, and valid ones with random damage.

use serde_json::{Map, Number, Value, json};

/// A stream of numbers that depends on its seed alone.
pub struct Chance(u64);

/// Characters that cause trouble in separators, encodings, parsers and file systems.
const LETTERS: &[&str] = &[
    "a", "b", "Z", "0", "9", "-", "--", ".", "..", "/", "\\", "_", "%", "%2e", "*", "**", "?", ":",
    " ", "\t", "\n", "\r", "\0", "\u{7f}", "\"", "'", "{", "}", "[", "]", "(", ")", ",", "~", "#",
    "<", ">", "&", "é", "日", "😀", "\u{301}", "\u{202e}", "\u{feff}", "\u{2024}", "ａ",
    "\u{fffd}",
];

impl Chance {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0f0f_1e1e_2d2d_3c3c)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A random item.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A text, mostly short, of characters that cause trouble.
    pub fn text(&mut self) -> String {
        let n = if self.one_in(20) { 20 + self.below(120) } else { self.below(8) };
        (0..n).map(|_| self.pick(LETTERS)).collect()
    }

    /// A JSON number, sometimes one that other formats cannot hold.
    fn number(&mut self) -> Value {
        match self.below(7) {
            0 => json!(self.below(3)),
            1 => json!(-(self.below(9) as i64)),
            2 => json!(u64::MAX),
            3 => json!(i64::MIN),
            4 => Number::from_f64(1e308).map_or(Value::Null, Value::Number),
            5 => Number::from_f64(-0.0).map_or(Value::Null, Value::Number),
            _ => json!(self.next() as f64 / 7.0),
        }
    }

    /// Random JSON, whose members often have these names.
    pub fn json(&mut self, names: &[&str], depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.one_in(2)),
            2 => self.number(),
            3 | 4 => Value::String(self.word(names)),
            5 | 6 => {
                let n = self.below(4);
                (0..n).map(|_| self.json(names, depth - 1)).collect()
            }
            _ => {
                let n = self.below(5);
                let members = (0..n).map(|_| (self.word(names), self.json(names, depth - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// One of these names, or any text.
    pub fn word(&mut self, names: &[&str]) -> String {
        if names.is_empty() || self.one_in(4) {
            return self.text();
        }
        self.pick(names).to_owned()
    }

    /// The same value with random damage in a few places.
    pub fn spoilt(&mut self, good: &Value, names: &[&str]) -> Value {
        let mut value = good.clone();
        for _ in 0..self.below(4) {
            self.spoil(&mut value, names);
        }
        value
    }

    fn spoil(&mut self, value: &mut Value, names: &[&str]) {
        let deeper = !self.one_in(4);
        match value {
            Value::Object(members) if deeper && !members.is_empty() => {
                let keys: Vec<String> = members.keys().cloned().collect();
                let key = self.pick(&keys);
                match self.below(6) {
                    0 => drop(members.remove(&key)),
                    1 => {
                        let value = members.remove(&key).unwrap_or_default();
                        members.insert(self.word(names), value);
                    }
                    _ => self.spoil(&mut members[&key], names),
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(6) {
                    0 => drop(items.remove(at)),
                    1 => items.insert(at, items[at].clone()),
                    _ => self.spoil(&mut items[at], names),
                }
            }
            _ => *value = self.json(names, 2),
        }
    }

    /// The same bytes with a few of them changed, removed, doubled or added.
    pub fn bent(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] = self.next() as u8,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => {
                    let letters = self.pick(LETTERS);
                    bytes.splice(at..at, letters.bytes());
                }
                3 => bytes.truncate(at),
                _ => {
                    let end = (at + self.below(20)).min(bytes.len());
                    let again = bytes[at..end].to_vec();
                    bytes.splice(at..at, again);
                }
            }
        }
        bytes
    }

    /// The bytes in pieces.
    pub fn cut<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let most = 1 + self.below(40);
            let n = 1 + self.below(rest.len().min(most));
            let (piece, behind) = rest.split_at(n.min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces
    }
}
