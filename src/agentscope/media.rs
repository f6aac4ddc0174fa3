//! Media blocks: `image`, `audio`, `video`, and `data` for any file.

use serde_json::{Value, json};

use super::remainder;
use crate::json::{self, Fields, Misread, Object, Read};
use crate::message::{Block, MediaKind, Source};

/// The media type of data without a stated media type.
const BYTES: &str = "application/octet-stream";
/// Our own mark in a `data` block: it is a file, whatever its media type says.
const IS_FILE: &str = "is_file";

/// Reads a block of one of these types.
pub(super) fn read(kind: &str, fields: &Fields<'_>) -> Read<Block> {
    let source = fields.required("source", read_source)?;
    let kind = match kind {
        "data" if fields.value(IS_FILE) == Some(&Value::Bool(true)) => MediaKind::File,
        "data" => kind_of(&source),
        _ => fields.required("type", MediaKind::from_json)?,
    };
    Ok(Block::Media {
        kind,
        source,
        name: fields.optional("name", json::text)?,
        rest: fields.rest(&["type", "source", "name", IS_FILE, remainder::MEMBER]),
    })
}

/// AgentScope's word for a kind.
pub(super) fn word(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::File => "data",
    }
}

/// The members of a block, except its type.
pub(super) fn members(kind: MediaKind, source: &Source, name: Option<&String>) -> Value {
    let mut members = Object::new();
    members.insert("source".into(), source_members(source));
    if let Some(name) = name {
        members.insert("name".into(), json!(name));
    }
    if kind == MediaKind::File && kind_of(source) != MediaKind::File {
        members.insert(IS_FILE.into(), Value::Bool(true));
    }
    Value::Object(members)
}

fn source_members(source: &Source) -> Value {
    match source {
        Source::Url { url, media_type: None } => json!({ "type": "url", "url": url }),
        Source::Url { url, media_type } => {
            json!({ "type": "url", "url": url, "mime_type": media_type })
        }
        Source::Base64 { media_type, data } => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
    }
}

fn read_source(value: &Value) -> Read<Source> {
    let fields = Fields::of(value)?;
    let mut media_type = None;
    for name in ["mime_type", "media_type", "mediaType"] {
        media_type = media_type.or(fields.optional(name, json::text)?);
    }
    match fields.required("type", json::text)?.as_str() {
        "url" => Ok(Source::Url { url: fields.required("url", json::text)?, media_type }),
        "base64" => Ok(Source::Base64 {
            media_type: media_type.unwrap_or_else(|| BYTES.to_owned()),
            data: fields.required("data", json::text)?,
        }),
        _ => Err(Misread::new("a source of type url or base64")),
    }
}

/// The kind of file for a media type.
fn kind_of(source: &Source) -> MediaKind {
    let media_type = match source {
        Source::Url { media_type, .. } => media_type.as_deref().unwrap_or_default(),
        Source::Base64 { media_type, .. } => media_type,
    };
    match media_type.split_once('/') {
        Some(("image", _)) => MediaKind::Image,
        Some(("audio", _)) => MediaKind::Audio,
        Some(("video", _)) => MediaKind::Video,
        _ => MediaKind::File,
    }
}
