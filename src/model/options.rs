//! The options of a provider's model: dialect, name, context window.

use serde_json::Value;

use crate::json::{self, Fields, Misread, Read};
use crate::model::dialect::{Dialect, Flavour};
use crate::model::transcript::Recipient;
use crate::model::windows::window_of;

/// The options of a provider's model.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// The dialect of the provider.
    pub dialect: Dialect,
    /// The provider's name for the model.
    pub model: String,
    /// The context window in tokens, if the options set it.
    pub window: Option<u64>,
    /// Whether replies are streamed.
    pub streams: bool,
    /// The flavour of the provider, for OpenAI's dialect.
    pub flavour: Flavour,
}

impl ProviderOptions {
    /// The default options of a model.
    pub fn new(dialect: Dialect, model: &str) -> ProviderOptions {
        let model = model.to_owned();
        ProviderOptions {
            dialect,
            model,
            window: None,
            streams: true,
            flavour: Flavour::Compatible,
        }
    }

    /// Reads the options as TypeScript writes them.
    pub fn from_json(value: &Value) -> Read<ProviderOptions> {
        let fields = Fields::of(value)?;
        let dialect = fields.required("dialect", |value| {
            let named = value.as_str().and_then(Dialect::named);
            named.ok_or_else(|| Misread::new("openai, anthropic or gemini"))
        })?;
        let flavour = fields.or_default("flavour", json::text)?;
        Ok(ProviderOptions {
            window: fields.optional("contextWindow", json::count)?,
            streams: fields.optional("stream", json::boolean)?.unwrap_or(true),
            flavour: Flavour::named(&flavour),
            ..ProviderOptions::new(dialect, &fields.required("model", json::text)?)
        })
    }

    /// The recipient of a conversation.
    pub fn reader(&self) -> Recipient<'_> {
        let is_strict = self.flavour == Flavour::Mistral;
        Recipient { dialect: self.dialect, model: Some(&self.model), is_strict }
    }

    /// The context window in tokens, if it is known.
    pub fn window(&self) -> Option<u64> {
        self.window.or_else(|| window_of(&self.model))
    }
}
