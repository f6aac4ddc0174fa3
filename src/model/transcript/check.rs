//! Finds what a provider would refuse in a conversation.

use std::collections::HashMap;

use serde::Serialize;

use crate::message::{Block, Role};
use crate::model::dialect::Dialect;
use crate::model::transcript::WireTurn;
use crate::model::transcript::pairs::is_wire_id;

/// Something that a provider would refuse.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The rule that is broken.
    pub rule: &'static str,
    /// The message that breaks it.
    pub message_id: Option<String>,
    /// A sentence about it.
    pub message: String,
}

/// Everything that a provider would refuse, in order.
pub fn check(turns: &[WireTurn<'_>], dialect: Dialect) -> Vec<Violation> {
    let mut checking = Checking { dialect, found: Vec::new(), known: HashMap::new() };
    for (index, turn) in turns.iter().enumerate() {
        checking.turn(turn);
        let before = index.checked_sub(1).and_then(|index| turns.get(index));
        // Consecutive messages with results count as one turn.
        if turn.role == Role::Assistant {
            let after = turns.get(index + 1..).unwrap_or_default();
            let next: Vec<&WireTurn<'_>> =
                after.iter().take_while(|it| it.results().next().is_some()).collect();
            checking.results_of(turn, &next);
        }
        let follows =
            before.is_some_and(|it| it.role == Role::Assistant || it.results().next().is_some());
        if turn.results().next().is_some() && !follows {
            checking.orphans(turn, &[]);
        }
    }
    checking.ends(turns);
    checking.found
}

struct Checking<'a> {
    dialect: Dialect,
    found: Vec<Violation>,
    /// The ids of calls. A map instead of a set, because the wasm contains this type of map already.
    known: HashMap<&'a str, usize>,
}

impl<'a> Checking<'a> {
    fn say(&mut self, rule: &'static str, turn: Option<&WireTurn<'_>>, message: &str) {
        let message_id = turn.and_then(|turn| turn.message).map(|message| message.id.clone());
        self.found.push(Violation { rule, message_id, message: message.to_owned() });
    }

    /// Checks one turn by itself.
    fn turn(&mut self, turn: &'a WireTurn<'a>) {
        let lenient = self.dialect == Dialect::OpenAi;
        if turn.blocks.is_empty() {
            self.say("message-empty", Some(turn), "the message has no content");
        }
        if turn.role == Role::System && !lenient {
            self.say(
                "role-misplaced",
                Some(turn),
                "instructions stand apart from the conversation",
            );
        }
        let has_results = turn.results().next().is_some();
        for block in &turn.blocks {
            match &**block {
                Block::ToolUse(call) => {
                    if turn.role != Role::Assistant {
                        self.say("role-misplaced", Some(turn), "only the assistant calls tools");
                    }
                    if self.known.insert(&call.id, 0).is_some() {
                        self.say("call-id-twice", Some(turn), "two tool calls share an id");
                    }
                    if !is_wire_id(&call.id, false) && self.dialect != Dialect::Gemini {
                        self.say(
                            "id-alphabet",
                            Some(turn),
                            "an id is 1 to 40 letters, digits, _ or -",
                        );
                    }
                    if !call.input.is_object() {
                        self.say(
                            "input-not-object",
                            Some(turn),
                            "the input of a call is an object",
                        );
                    }
                }
                Block::ToolResult(result) => {
                    let has_file = result.output.iter().any(|it| matches!(it, Block::Media { .. }));
                    if has_file && self.dialect != Dialect::Anthropic {
                        self.say("file-in-result", Some(turn), "a result takes words only");
                    }
                }
                Block::Text { text, provider, .. } => {
                    if text.trim().is_empty() && provider.is_none() && !lenient {
                        self.say("text-empty", Some(turn), "words are empty");
                    }
                    if has_results && self.dialect == Dialect::Gemini {
                        self.say(
                            "result-beside-words",
                            Some(turn),
                            "results stand in a turn of their own",
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks that each call of a turn has exactly one result directly after it, and that there are no other results.
    fn results_of(&mut self, turn: &WireTurn<'_>, next: &[&WireTurn<'_>]) {
        for call in turn.calls() {
            let n = next.iter().flat_map(|it| it.results()).filter(|it| it.id == call.id).count();
            match n {
                0 => self.say(
                    "call-without-result",
                    Some(turn),
                    "a tool call has no result right after it",
                ),
                1 => {}
                _ => self.say("result-twice", Some(turn), "a tool call has several results"),
            }
        }
        let ids: Vec<&str> = turn.calls().map(|call| call.id.as_str()).collect();
        next.iter().for_each(|it| self.orphans(it, &ids));
    }

    fn orphans(&mut self, turn: &WireTurn<'_>, calls: &[&str]) {
        for _ in turn.results().filter(|result| !calls.contains(&result.id.as_str())) {
            self.say("result-without-call", Some(turn), "a result does not follow its tool call");
        }
    }

    /// Checks the first and the last turn.
    fn ends(&mut self, turns: &[WireTurn<'_>]) {
        let of_model = |turn: &&WireTurn<'_>| turn.role == Role::Assistant;
        if self.dialect == Dialect::OpenAi {
            return;
        }
        if let Some(first) = turns.first().filter(of_model) {
            self.say("first-not-user", Some(first), "a conversation begins with its user");
        }
        if let Some(last) = turns.last().filter(of_model) {
            self.say(
                "last-not-user",
                Some(last),
                "a conversation ends with its user or with results",
            );
        }
    }
}
