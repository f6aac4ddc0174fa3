//! The dialect of Google's generateContent API.

use serde_json::Value;

use crate::error::Error;
use crate::error::ErrorKind;
use crate::error::Result;
use crate::json::{self, Object};
use crate::message::{Block, Finish, MediaKind, ResultState, Role, Source, ToolResult};
use crate::model::calls::CallNumbers;
use crate::model::partial_arguments::{OpenCall, unreadable};
use crate::model::reply::{Fragment, ReplyDeltas, broken, list_in, number_in, text_in};
use crate::model::request::RenderInput;
use crate::model::transcript::WireTurn;
use crate::model::wire::{
    JsonPart, ToolChoice, add_extra, copy_options, object, option, put, result_text, tool_name,
};
use crate::policy::pattern;
use crate::port::HttpRequest;

/// The documented value for tool calls without a signature, such as those of other models. Gemini 3 requires one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes the request.
#[inline(never)]
pub(super) fn render(input: &RenderInput<'_>) -> HttpRequest {
    let model = input.options.model.as_str();
    let mut body = Object::new();
    if !input.request.system.is_empty() {
        body.insert(
            "systemInstruction".into(),
            object(&mut [("parts", vec![text(input.request.system)].into())]),
        );
    }
    let wants_signatures = pattern::behind("gemini-3", model).is_some();
    let contents: Vec<Value> =
        input.turns.iter().map(|turn| write_turn(turn, wants_signatures)).collect();
    put(&mut body, "contents", contents.into());
    let tools: Vec<Value> = input.tools().into_iter().map(write_tool).collect();
    if !tools.is_empty() {
        let declared = object(&mut [("functionDeclarations", tools.into())]);
        put(&mut body, "tools", vec![declared].into());
        let choice = if input.is_closing() {
            Some(ToolChoice::None)
        } else {
            ToolChoice::of(input.request.generate)
        };
        if let Some(choice) = choice {
            let config = object(&mut [("functionCallingConfig", write_choice(choice).into())]);
            put(&mut body, "toolConfig", config.into());
        }
    }
    put(&mut body, "generationConfig", Value::Object(write_options(input)).into());
    add_extra(input.request.generate, &mut body);
    let name: String = model.chars().flat_map(in_path).collect();
    let folder = if name.contains('/') { "/" } else { "/models/" };
    let method =
        if input.options.streams { ":streamGenerateContent?alt=sse" } else { ":generateContent" };
    HttpRequest {
        path: [folder, &name, method].concat(),
        headers: &[("content-type", "application/json")],
        key_header: ("x-goog-api-key", ""),
        body: json::to_bytes(&body),
    }
}

/// Characters that are allowed in the path. Others are left out; no model has them in its name.
fn in_path(letter: char) -> Option<char> {
    let fits = letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | '/' | '@');
    fits.then_some(letter)
}

fn write_options(input: &RenderInput<'_>) -> Object {
    let generate = input.request.generate;
    let mut config = Object::new();
    let names =
        [("temperature", "temperature"), ("topP", "topP"), ("maxTokens", "maxOutputTokens")];
    copy_options(generate, &names, &mut config);
    if let Some(effort) = option(generate, "reasoningEffort") {
        let counts = pattern::behind("gemini-2", &input.options.model).is_some();
        let level = match (&*effort.as_str().unwrap_or_default().to_owned(), counts) {
            (_, false) => ("thinkingLevel", effort.into()),
            ("none", true) => ("thinkingBudget", 0_u64.into()),
            ("minimal" | "low", true) => ("thinkingBudget", 1_024_u64.into()),
            ("medium", true) => ("thinkingBudget", 8_192_u64.into()),
            (_, true) => ("thinkingBudget", 24_576_u64.into()),
        };
        let thinking = object(&mut [("includeThoughts", true.into()), level]);
        put(&mut config, "thinkingConfig", thinking.into());
    }
    if let Some(form) = input.request.form {
        put(&mut config, "responseMimeType", "application/json".into());
        put(&mut config, "responseJsonSchema", form.clone().into());
    }
    config
}

fn text(text: &str) -> Value {
    object(&mut [("text", text.into())])
}

fn write_tool((name, description, schema): (String, &str, Value)) -> Value {
    object(&mut [
        ("name", name.into()),
        ("description", description.into()),
        ("parametersJsonSchema", schema.into()),
    ])
}

fn write_choice(choice: ToolChoice<'_>) -> Value {
    let mode = |word: &'static str| ("mode", word.into());
    match choice {
        ToolChoice::Auto => object(&mut [mode("AUTO")]),
        ToolChoice::None => object(&mut [mode("NONE")]),
        ToolChoice::Required => object(&mut [mode("ANY")]),
        ToolChoice::Named(name) => object(&mut [
            mode("ANY"),
            ("allowedFunctionNames", vec![Value::String(tool_name(name))].into()),
        ]),
    }
}

fn write_turn(turn: &WireTurn<'_>, wants_signatures: bool) -> Value {
    let mut parts: Vec<Value> = turn.blocks.iter().filter_map(|block| write_block(block)).collect();
    // Of parallel calls only the first is signed.
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(first) = first.filter(|_| wants_signatures).and_then(Value::as_object_mut)
        && !first.contains_key("thoughtSignature")
    {
        first.insert("thoughtSignature".into(), NO_SIGNATURE.into());
    }
    let role = if turn.role == Role::Assistant { "model" } else { "user" };
    object(&mut [("role", role.into()), ("parts", parts.into())])
}

fn write_block(block: &Block) -> Option<Value> {
    let (mut part, provider) = match block {
        Block::Text { text: words, provider, .. } => (text(words), provider),
        Block::ToolUse(call) => {
            let mut written =
                [("name", tool_name(&call.name).into()), ("args", call.input.clone().into())];
            (object(&mut [("functionCall", object(&mut written).into())]), &call.provider)
        }
        Block::ToolResult(result) => (write_result(result), &None),
        Block::Media { kind, source, .. } => (write_file(*kind, source), &None),
        Block::Thinking { .. } | Block::Other(_) => return None,
    };
    let signature = provider.as_ref().and_then(|provider| provider.get("thoughtSignature"));
    if let (Some(signature), Some(part)) = (signature, part.as_object_mut()) {
        part.insert("thoughtSignature".into(), signature.clone());
    }
    Some(part)
}

fn write_result(result: &ToolResult) -> Value {
    let name = if result.state == ResultState::Success { "output" } else { "error" };
    let response = object(&mut [(name, result_text(result).into())]);
    let mut written = [("name", tool_name(&result.name).into()), ("response", response.into())];
    object(&mut [("functionResponse", object(&mut written).into())])
}

fn write_file(kind: MediaKind, source: &Source) -> Value {
    match source {
        Source::Base64 { media_type, data } => {
            let mut data =
                [("mimeType", media_type.as_str().into()), ("data", data.as_str().into())];
            object(&mut [("inlineData", object(&mut data).into())])
        }
        Source::Url { url, media_type } => {
            let guess = match kind {
                MediaKind::Image => "image/jpeg",
                MediaKind::Audio => "audio/mpeg",
                MediaKind::Video => "video/mp4",
                MediaKind::File => "application/pdf",
            };
            let media_type = media_type.as_deref().unwrap_or(guess);
            let mut data = [("mimeType", media_type.into()), ("fileUri", url.as_str().into())];
            object(&mut [("fileData", object(&mut data).into())])
        }
    }
}

/// The tool calls of one reply.
#[derive(Debug, Default)]
pub(super) struct GeminiCalls {
    numbers: CallNumbers,
    /// The call whose arguments arrive in pieces.
    open: Option<OpenCall>,
}

/// Reads one frame of a reply, or a whole reply.
#[inline(never)]
pub(super) fn read(frame: &Value, calls: &mut GeminiCalls, reply: &mut ReplyDeltas) -> Result<()> {
    if frame.get("error").is_some_and(|error| !error.is_null()) {
        return Err(broken(frame));
    }
    let candidate = list_in(frame, "candidates").first().unwrap_or(&Value::Null);
    for part in
        candidate.get("content").map(|content| list_in(content, "parts")).unwrap_or_default()
    {
        read_part(part, calls, reply)?;
    }
    if let Some(usage) = frame.get("usageMetadata") {
        let sum = |one: &str, other: &str| match (number_in(usage, one), number_in(usage, other)) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        };
        let input = sum("promptTokenCount", "toolUsePromptTokenCount");
        let output = sum("candidatesTokenCount", "thoughtsTokenCount");
        reply.usage(input, output, number_in(usage, "cachedContentTokenCount"));
    }
    let blocked = frame.get("promptFeedback").and_then(|it| text_in(it, "blockReason"));
    if blocked.is_some() {
        reply.finished(Finish::Filter);
    }
    match text_in(candidate, "finishReason") {
        Some(reason) => read_finish(reason, calls, reply),
        None => Ok(()),
    }
}

fn read_part(part: &Value, calls: &mut GeminiCalls, reply: &mut ReplyDeltas) -> Result<()> {
    let signature = part.get("thoughtSignature").map(|it| ("thoughtSignature", it.clone().into()));
    let words = text_in(part, "text");
    if let Some(call) = part.get("functionCall") {
        return read_call(call, signature.into_iter().collect(), calls, reply);
    }
    if part.get("thought") == Some(&Value::Bool(true)) {
        reply.thought(words.unwrap_or_default(), None, Vec::new());
    } else if let Some(words) = words {
        reply.text(words);
        if let Some(signature) = signature {
            reply.sign(signature);
        }
    }
    Ok(())
}

/// Reads a whole tool call, or a part of one: its name, pieces of its arguments, or its end without either.
fn read_call(
    call: &Value,
    signature: Vec<(&str, JsonPart<'_>)>,
    calls: &mut GeminiCalls,
    reply: &mut ReplyDeltas,
) -> Result<()> {
    let (id, name) = (text_in(call, "id"), text_in(call, "name").filter(|it| !it.is_empty()));
    let arguments = call.get("args").and_then(Value::as_object);
    let continues = call.get("willContinue") == Some(&Value::Bool(true));
    let pieces = list_in(call, "partialArgs");
    if name.is_some() && calls.open.is_some() {
        return Err(unreadable("was not complete when the next one began"));
    }
    if calls.open.is_none() {
        let is_whole = !continues && pieces.is_empty();
        let whole = arguments.filter(|_| is_whole).map(json::to_text).unwrap_or_default();
        if is_whole && name.is_none() && whole.is_empty() {
            return Ok(());
        }
        let number = calls.numbers.next();
        reply.call(number, Fragment { id, name, arguments: whole }, signature);
        if is_whole {
            return Ok(());
        }
        calls.open = Some(OpenCall::new(number));
    } else if let Some(open) = calls.open.as_ref().filter(|_| !signature.is_empty()) {
        reply.call(open.number(), Fragment::default(), signature);
    }
    if let (Some(open), Some(arguments)) = (calls.open.as_mut(), arguments) {
        open.merge(arguments);
    }
    for piece in pieces {
        calls.open.as_mut().map_or(Ok(()), |open| open.add(piece))?;
    }
    if let Some(open) = calls.open.take_if(|_| !continues) {
        open.finish(reply);
    }
    Ok(())
}

fn read_finish(reason: &str, calls: &mut GeminiCalls, reply: &mut ReplyDeltas) -> Result<()> {
    match calls.open.take() {
        Some(_) if reason == "STOP" => {
            return Err(unreadable("was not complete when the answer ended"));
        }
        Some(open) => open.cut_off(reply),
        None => {}
    }
    let finish = match reason {
        "STOP" if calls.numbers.are_there() => Finish::ToolCalls,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
            Finish::Filter
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
            let message = "the model wrote a tool call that its provider cannot read";
            return Err(Error::new(ErrorKind::ModelTruncated, message).hint("ask again"));
        }
        _ => Finish::Stop,
    };
    reply.finished(finish);
    Ok(())
}
