//! Splits the bytes of a reply into frames: server-sent events, lines of JSON, or one JSON document.
//!
//! The first byte decides which, not the content type: some servers send event streams as plain text, or answer a request
//! for a stream with one document. The frames do not depend on how the bytes arrive in chunks.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::halves;

/// Longest line, event or document, in bytes.
const LONGEST: usize = 8 * 1_024 * 1_024;

/// One part of a reply. It is JSON, unless the provider makes a mistake.
pub type Frame = String;

/// The framing of a reply that is being received.
#[derive(Debug, Default)]
pub struct Frames {
    framing: Framing,
    /// The unfinished line.
    line: Vec<u8>,
    /// The data of the unfinished event, or the unfinished JSON document.
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    /// Only white space has arrived.
    #[default]
    Unknown,
    Events,
    /// One document per line, until a line is not a document.
    Lines,
    /// One document over several lines.
    Document,
}

impl Frames {
    /// Takes the next bytes, and appends the frames that they complete to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Frame>) -> Result<()> {
        let mut rest = bytes;
        while self.framing == Framing::Unknown
            && let Some((first, behind)) = rest.split_first()
        {
            if !self.begins(*first)? {
                rest = behind;
            }
        }
        while let Some((first, behind)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = behind;
                continue;
            }
            let n = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (line, behind) = rest.split_at(n.unwrap_or(rest.len()));
            if self.line.len() + self.data.len() + line.len() > LONGEST {
                let message =
                    format!("the model sent a line or event of more than {LONGEST} bytes");
                return Err(Error::new(ErrorKind::ModelBadRequest, message)
                    .hint("check what baseUrl really serves"));
            }
            self.line.extend_from_slice(line);
            rest = behind;
            if let Some((end, behind)) = behind.split_first() {
                self.after_cr = *end == b'\r';
                self.end_line(out);
                rest = behind;
            }
        }
        Ok(())
    }

    /// Takes the end of the bytes. An event without its final blank line is still a frame.
    pub fn finish(&mut self, out: &mut Vec<Frame>) {
        self.end_line(out);
        if self.framing != Framing::Events {
            self.has_data = !self.data.is_empty();
        }
        self.end_event(out);
    }

    /// Decides the framing by the first byte. `false`: the byte is skipped.
    fn begins(&mut self, byte: u8) -> Result<bool> {
        // The byte order mark of UTF-8, and white space.
        if matches!(byte, 0xef | 0xbb | 0xbf | b' ' | b'\t' | b'\r' | b'\n') {
            return Ok(false);
        }
        self.framing = match byte {
            b'{' | b'[' => Framing::Lines,
            b'<' => return Err(page()),
            _ => Framing::Events,
        };
        Ok(true)
    }

    fn end_line(&mut self, out: &mut Vec<Frame>) {
        let line = std::mem::take(&mut self.line);
        match self.framing {
            Framing::Unknown => {}
            Framing::Events if line.is_empty() => self.end_event(out),
            Framing::Events => self.field(&line),
            Framing::Lines if line.is_empty() => {}
            Framing::Lines if is_json(&text(&line)) => {
                out.push(text(&line));
            }
            Framing::Lines | Framing::Document => {
                self.framing = Framing::Document;
                self.data.extend(line);
                self.data.push(b'\n');
            }
        }
    }

    /// Takes a field of an event. The names of events are ignored, because their data says what they are. A field `error`
    /// is treated as data.
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if name != b"data" && name != b"error" {
            return;
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        if name == b"error" {
            self.data.extend(b"{\"error\":");
        }
        self.data.extend(value);
        if name == b"error" {
            self.data.push(b'}');
        }
    }

    fn end_event(&mut self, out: &mut Vec<Frame>) {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            out.push(text(&data));
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(&halves::replaced(text)).is_ok()
}

/// Bytes that are not UTF-8 are replaced.
fn text(bytes: &[u8]) -> Frame {
    String::from_utf8_lossy(bytes).into_owned()
}

fn page() -> Error {
    Error::new(ErrorKind::ModelBadRequest, "the provider answered with a page, not with JSON")
        .hint("baseUrl must be the address of the API, often one that ends in /v1")
}
