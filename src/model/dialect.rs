//! The dialects of providers, and the flavours of OpenAI's dialect.

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Chat completions, of OpenAI and compatible providers.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's generateContent.
    Gemini,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Dialect] = &[Dialect::OpenAi, Dialect::Anthropic, Dialect::Gemini];

    /// The dialect with this name.
    pub fn named(name: &str) -> Option<Dialect> {
        match name {
            "openai" => Some(Dialect::OpenAi),
            "anthropic" => Some(Dialect::Anthropic),
            "gemini" => Some(Dialect::Gemini),
            _ => None,
        }
    }
}

/// How a provider differs from OpenAI's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Any compatible server.
    Compatible,
    /// OpenAI itself.
    OpenAi,
    /// Mistral: ids of nine characters, and an assistant message between tool results and a user message.
    Mistral,
    /// OpenRouter: `reasoning` is an object.
    OpenRouter,
    /// DashScope: thinking is a flag.
    DashScope,
    /// Zhipu's GLM: thinking is an object, and tools are never forced.
    Glm,
    /// Ollama's own API, with one JSON document per line.
    Ollama,
}

impl Flavour {
    /// The flavour with this name; `Compatible` for unknown names.
    pub fn named(name: &str) -> Flavour {
        match name {
            "openai" => Flavour::OpenAi,
            "mistral" => Flavour::Mistral,
            "openrouter" => Flavour::OpenRouter,
            "dashscope" => Flavour::DashScope,
            "glm" => Flavour::Glm,
            "ollama" => Flavour::Ollama,
            _ => Flavour::Compatible,
        }
    }
}
