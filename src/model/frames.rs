//! Bytes of an answer become frames: server-sent events, lines of JSON, or one JSON document.
//!
//! Which of them it is tells the first byte, not the content type: servers send event streams as plain text, and
//! answer a request for a stream with a document. Frames are the same however the bytes are cut.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;

/// The longest line, event or document.
const LONGEST: usize = 8 * 1_024 * 1_024;

/// One piece of an answer: JSON, unless the provider is at fault.
pub type Frame = String;

/// An answer being received.
#[derive(Debug, Default)]
pub struct Frames {
    framing: Framing,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The data lines of the event that has not ended yet; of JSON, the document.
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    /// Nothing but blanks has come.
    #[default]
    Unknown,
    Events,
    /// A document on each line, as far as is known.
    Lines,
    /// One document over several lines.
    Document,
}

impl Frames {
    /// Takes bytes, however they are cut, and gives the frames that are whole with them.
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
                let message = format!("the model sent more than {LONGEST} bytes without an end");
                return Err(Error::new(ErrorKind::ModelBadRequest, message)
                    .hint("look at what the base address really serves"));
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

    /// The bytes have ended: what is not whole by the letter of the protocol may still be so by its content.
    pub fn finish(&mut self, out: &mut Vec<Frame>) {
        self.end_line(out);
        if self.framing != Framing::Events {
            self.has_data = !self.data.is_empty();
        }
        self.end_event(out);
    }

    /// Sees what kind of answer it is; false while the byte is to be skipped.
    fn begins(&mut self, byte: u8) -> Result<bool> {
        // The mark at the beginning of some UTF-8, and blanks.
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
            Framing::Lines if serde_json::from_str::<Value>(&text(&line)).is_ok() => {
                out.push(text(&line));
            }
            Framing::Lines | Framing::Document => {
                self.framing = Framing::Document;
                self.data.extend(line);
                self.data.push(b'\n');
            }
        }
    }

    /// Takes note of a data line. Events are told apart by what is in them, so their names do not matter; an error
    /// under a name of its own is data.
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

/// Bytes that are no UTF-8 are replaced: nothing of ours depends on them.
fn text(bytes: &[u8]) -> Frame {
    String::from_utf8_lossy(bytes).into_owned()
}

fn page() -> Error {
    Error::new(ErrorKind::ModelBadRequest, "the provider answered with a page, not with JSON")
        .hint("baseUrl must be the address of the API, often one that ends in /v1")
}
