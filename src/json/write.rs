//! Writes JSON to memory: the same text as serde_json, with a serializer that cannot fail.
//!
//! The error type has no values, so the compiler removes the error checks after every member. Text is scanned eight
//! bytes at a time, because a build for size would otherwise call a function per byte.

use std::fmt::{self, Display, Write};

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::Number;

/// A value as JSON text.
pub(super) fn text_of<T: Serialize + ?Sized>(value: &T) -> String {
    let mut writer = Writer(String::with_capacity(128));
    match value.serialize(&mut writer) {
        Ok(()) => writer.0,
        Err(never) => match never {},
    }
}

/// Appends a number with leading zeros.
pub fn pad(out: &mut String, number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let n_zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let start = n_zeros.min(digits.len().saturating_sub(width.max(1)));
    out.extend(digits.iter().skip(start).map(|digit| char::from(*digit)));
}

struct Writer(String);

impl Writer {
    fn quoted(&mut self, text: &str) {
        self.0.push('"');
        let mut start = 0;
        while let Some(n_plain) = text.as_bytes().get(start..).and_then(first_special) {
            let at = start + n_plain;
            self.0.push_str(text.get(start..at).unwrap_or_default());
            self.escaped(text.as_bytes().get(at).copied().unwrap_or_default());
            start = at + 1;
        }
        self.0.push_str(text.get(start..).unwrap_or_default());
        self.0.push('"');
    }

    fn escaped(&mut self, byte: u8) {
        let short = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'\n' => 'n',
            b'\r' => 'r',
            b'\t' => 't',
            0x08 => 'b',
            0x0c => 'f',
            _ => {
                let hex = |digit: u8| char::from_digit(u32::from(digit), 16).unwrap_or('0');
                self.0.push_str("\\u00");
                self.0.push(hex(byte >> 4));
                return self.0.push(hex(byte & 15));
            }
        };
        self.0.push('\\');
        self.0.push(short);
    }

    fn open(&mut self, begin: &str, end: &'static str) -> Result<MemberWriter<'_>, Never> {
        self.0.push_str(begin);
        Ok(MemberWriter { writer: self, end })
    }

    fn variant(&mut self, name: &str) {
        self.0.push('{');
        self.quoted(name);
        self.0.push(':');
    }

    fn plain(&mut self, value: impl Display) -> Result<(), Never> {
        // Writing to memory cannot fail.
        let _ = write!(self.0, "{value}");
        Ok(())
    }
}

/// The position of the first byte that must be escaped in a string.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    // Marks the bytes below `limit` in a word. The lowest mark is right; marks above it may be wrong.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & (ONES << 7);
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let [quotes, slashes] = [b'"', b'\\'].map(|byte| word ^ (ONES * u64::from(byte)));
        if below(word, 0x20) | below(quotes, 1) | below(slashes, 1) != 0 {
            break;
        }
        at += 8;
    }
    bytes.get(at..)?.iter().position(is_special).map(|place| at + place)
}

/// An error type without values: our own types have string keys, and every value of them can be written.
#[derive(Debug)]
enum Never {}

impl Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for Never {}

impl ser::Error for Never {
    fn custom<T: Display>(_: T) -> Never {
        // An incomplete record must never be stored as a complete one.
        std::process::abort()
    }
}

/// Writes the members between brackets or braces.
struct MemberWriter<'a> {
    writer: &'a mut Writer,
    end: &'static str,
}

impl MemberWriter<'_> {
    fn next(&mut self) {
        // A value never ends with one of these.
        if !self.writer.0.ends_with(['[', '{']) {
            self.writer.0.push(',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        self.next();
        value.serialize(&mut *self.writer)
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Never> {
        self.next();
        self.writer.quoted(name);
        self.writer.0.push(':');
        value.serialize(&mut *self.writer)
    }

    fn close(self) -> Result<(), Never> {
        self.writer.0.push_str(self.end);
        Ok(())
    }
}

macro_rules! items {
    ($($name:ident $method:ident),*) => {$(
        impl ser::$name for MemberWriter<'_> {
            type Ok = ();
            type Error = Never;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
                self.item(value)
            }
            fn end(self) -> Result<(), Never> {
                self.close()
            }
        }
    )*};
}

macro_rules! members {
    ($($name:ident),*) => {$(
        impl ser::$name for MemberWriter<'_> {
            type Ok = ();
            type Error = Never;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Never> {
                self.member(name, value)
            }
            fn end(self) -> Result<(), Never> {
                self.close()
            }
        }
    )*};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);
members!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for MemberWriter<'_> {
    type Ok = ();
    type Error = Never;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Never> {
        self.item(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Never> {
        self.writer.0.push(':');
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Never> {
        self.close()
    }
}

macro_rules! numbers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), Never> {
            self.plain(value)
        }
    )*};
}

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = MemberWriter<'a>;
    type SerializeTuple = MemberWriter<'a>;
    type SerializeTupleStruct = MemberWriter<'a>;
    type SerializeTupleVariant = MemberWriter<'a>;
    type SerializeMap = MemberWriter<'a>;
    type SerializeStruct = MemberWriter<'a>;
    type SerializeStructVariant = MemberWriter<'a>;

    numbers!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64
    );

    fn serialize_f32(self, value: f32) -> Result<(), Never> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Never> {
        match Number::from_f64(value) {
            Some(number) => self.plain(number),
            None => self.serialize_unit(),
        }
    }

    fn serialize_char(self, value: char) -> Result<(), Never> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Never> {
        self.quoted(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Never> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Never> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Never> {
        self.0.push_str("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Never> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        self.variant(name);
        let Ok(()) = value.serialize(&mut *self);
        self.0.push('}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<MemberWriter<'a>, Never> {
        self.open("[", "]")
    }

    fn serialize_tuple(self, _: usize) -> Result<MemberWriter<'a>, Never> {
        self.open("[", "]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<MemberWriter<'a>, Never> {
        self.open("[", "]")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<MemberWriter<'a>, Never> {
        self.variant(name);
        self.open("[", "]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MemberWriter<'a>, Never> {
        self.open("{", "}")
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<MemberWriter<'a>, Never> {
        self.open("{", "}")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<MemberWriter<'a>, Never> {
        self.variant(name);
        self.open("{", "}}")
    }
}
