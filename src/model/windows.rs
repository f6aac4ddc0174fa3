//! Context windows of known models, by the beginning of their names. Other models have an unknown window.

/// The longest matching beginning is used.
const WINDOWS: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("codestral", 256_000),
    ("command-a", 256_000),
    ("command-r", 128_000),
    ("deepseek", 128_000),
    ("devstral", 128_000),
    ("gemini", 1_048_576),
    ("gemma", 8_192),
    ("gemma-3", 128_000),
    ("gemma3", 128_000),
    ("glm-4", 128_000),
    ("glm-4.6", 200_000),
    ("glm-4.7", 200_000),
    ("glm-5", 200_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-oss", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("grok-4-fast", 2_000_000),
    ("grok-code-fast", 256_000),
    ("kimi-k2", 262_144),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("magistral", 128_000),
    ("minimax-m2", 204_800),
    ("mistral-large", 128_000),
    ("mistral-medium", 128_000),
    ("mistral-small", 128_000),
    ("moonshot-v1-128k", 131_072),
    ("moonshot-v1-32k", 32_768),
    ("moonshot-v1-8k", 8_192),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("qwen-flash", 1_000_000),
    ("qwen-max", 32_768),
    ("qwen-plus", 1_000_000),
    ("qwen-turbo", 1_000_000),
    ("qwen3-coder-flash", 1_000_000),
    ("qwen3-coder-plus", 1_000_000),
    ("qwen3-max", 262_144),
];

/// The context window of a model, if it is known. The prefix of a gateway, as in `vendor/model`, is ignored.
pub fn window_of(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let fitting = WINDOWS.iter().filter(|(start, _)| name.starts_with(start));
    fitting.max_by_key(|(start, _)| start.len()).map(|(_, window)| *window)
}
