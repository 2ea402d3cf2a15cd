//! The `chat-completions` wire: any chat model behind an OpenAI-compatible API.
