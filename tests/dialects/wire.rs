//! The rules of providers, checked on the JSON of a request. Written independently, so that a bug of the
//! renderer or of its validator is found here.

use std::collections::HashSet;

use serde_json::Value;

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.trim().is_empty())
}

/// What OpenAI and strict templates behind compatible servers refuse.
pub fn openai(body: &Value, is_strict: bool) -> Result<(), String> {
    let messages = list(body, "messages");
    let mut open: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if !open.is_empty() && role != "tool" {
            return Err(format!("messages[{index}]: calls {open:?} have no result"));
        }
        match role {
            "system" if index != 0 => {
                return Err(format!("messages[{index}]: system is not first"));
            }
            "system" => continue,
            "tool" => {
                let id = message["tool_call_id"].as_str().ok_or("a result without an id")?;
                let place = open.iter().position(|it| *it == id);
                open.remove(place.ok_or(format!("messages[{index}]: orphan result {id}"))?);
                if is_blank(&message["content"]) {
                    return Err(format!("messages[{index}]: empty result"));
                }
            }
            "assistant" => {
                if before.is_empty() || before == "assistant" {
                    return Err(format!("messages[{index}]: assistant after {before:?}"));
                }
                for call in list(message, "tool_calls") {
                    let id = call["id"].as_str().unwrap();
                    check_id(id, if is_strict { 9 } else { 40 })?;
                    if is_strict && id.len() != 9 {
                        return Err(format!("{id} is not of nine letters"));
                    }
                    if !seen.insert(id) {
                        return Err(format!("messages[{index}]: id {id} twice"));
                    }
                    check_name(&call["function"]["name"])?;
                    let arguments = call["function"]["arguments"].as_str().unwrap();
                    if !serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object()) {
                        return Err(format!("arguments are {arguments}"));
                    }
                    open.push(id);
                }
                if open.is_empty() && is_blank(&message["content"]) {
                    return Err(format!("messages[{index}]: empty answer"));
                }
            }
            "user" => {
                if before == "user" || (is_strict && before == "tool") {
                    return Err(format!("messages[{index}]: user after {before}"));
                }
                let empty = match &message["content"] {
                    Value::Array(parts) => parts.is_empty(),
                    text => is_blank(text),
                };
                if empty {
                    return Err(format!("messages[{index}]: empty question"));
                }
            }
            other => return Err(format!("role {other}")),
        }
        before = role;
    }
    ends(before, &open)?;
    needs_tools(body, !seen.is_empty())
}

/// What Anthropic refuses.
pub fn anthropic(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    let mut before = "";
    for (index, message) in list(body, "messages").iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        if role == before || (before.is_empty() && role != "user") {
            return Err(format!("messages[{index}]: {role} after {before:?}"));
        }
        let parts = list(message, "content");
        if parts.is_empty() {
            return Err(format!("messages[{index}] is empty"));
        }
        let mut words = false;
        for part in parts {
            match part["type"].as_str().unwrap() {
                "tool_result" => {
                    let id = part["tool_use_id"].as_str().unwrap();
                    let place = open.iter().position(|it| *it == id);
                    open.remove(place.ok_or(format!("messages[{index}]: orphan result {id}"))?);
                    if words {
                        return Err(format!("messages[{index}]: words before a result"));
                    }
                    if list(part, "content").is_empty() {
                        return Err(format!("messages[{index}]: empty result"));
                    }
                }
                "text" => {
                    words = true;
                    if is_blank(&part["text"]) {
                        return Err(format!("messages[{index}]: empty text"));
                    }
                }
                "tool_use" => {
                    if role != "assistant" || !part["input"].is_object() {
                        return Err(format!("messages[{index}]: misplaced call"));
                    }
                    let id = part["id"].as_str().unwrap();
                    check_id(id, 64)?;
                    check_name(&part["name"])?;
                    if !seen.insert(id) {
                        return Err(format!("messages[{index}]: id {id} twice"));
                    }
                    open.push(id);
                }
                "thinking" => {
                    if role != "assistant" || is_blank(&part["signature"]) {
                        return Err(format!("messages[{index}]: thought without a proof"));
                    }
                }
                _ => words = true,
            }
        }
        if role == "user" && !open.is_empty() {
            return Err(format!("messages[{index}]: calls {open:?} have no result"));
        }
        before = role;
    }
    ends(before, &open)?;
    needs_tools(body, !seen.is_empty())
}

/// What Gemini refuses.
pub fn gemini(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut called = false;
    let mut before = "";
    for (index, content) in list(body, "contents").iter().enumerate() {
        let role = content["role"].as_str().unwrap();
        let parts = list(content, "parts");
        if parts.is_empty() {
            return Err(format!("contents[{index}] is empty"));
        }
        let named = |kind: &str| -> Vec<&str> {
            parts.iter().filter_map(|part| part[kind]["name"].as_str()).collect()
        };
        let (calls, results) = (named("functionCall"), named("functionResponse"));
        if !open.is_empty() || !results.is_empty() {
            if results != open || results.len() != parts.len() || role != "user" {
                return Err(format!("contents[{index}]: results {results:?} of calls {open:?}"));
            }
        }
        if role == "model" && (before.is_empty() || before == "model") {
            return Err(format!("contents[{index}]: model after {before:?}"));
        }
        for part in parts {
            let signed = part.get("thoughtSignature").is_some();
            if part.get("text").is_some_and(is_blank) && !signed {
                return Err(format!("contents[{index}]: empty text"));
            }
            if let Some(call) = part.get("functionCall") {
                check_name(&call["name"])?;
                if !call["args"].is_object() || role != "model" {
                    return Err(format!("contents[{index}]: misplaced call"));
                }
            }
        }
        called |= !calls.is_empty();
        open = calls;
        before = role;
    }
    ends(if before == "model" { "assistant" } else { before }, &open)?;
    needs_tools(body, called)
}

fn ends(last: &str, open: &[&str]) -> Result<(), String> {
    match last {
        _ if !open.is_empty() => Err(format!("calls {open:?} have no result at the end")),
        "user" | "tool" => Ok(()),
        other => Err(format!("the last is {other:?}")),
    }
}

fn needs_tools(body: &Value, called: bool) -> Result<(), String> {
    if called && list(body, "tools").is_empty() {
        return Err("there are calls and no tools".into());
    }
    Ok(())
}

fn check_id(id: &str, longest: usize) -> Result<(), String> {
    let fits = id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'-');
    if fits && !id.is_empty() && id.len() <= longest { Ok(()) } else { Err(format!("id {id:?}")) }
}

fn check_name(name: &Value) -> Result<(), String> {
    let name = name.as_str().unwrap();
    let first = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    let fits = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b'-');
    if first && fits && name.len() <= 64 { Ok(()) } else { Err(format!("name {name:?}")) }
}
