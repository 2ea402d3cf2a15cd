//! The `chat-completions` wire: any chat model behind an OpenAI-compatible API answers typed questions.
//!
//! | method | calls | source of the distribution |
//! |---|---|---|
//! | `logprobs` | one per question, more if options exceed labels | the log-probabilities of the first token |
//! | `structured` | one for all questions | a JSON object of probabilities, written by the model |
//!
//! Both methods put the state into the prompt as a delimited document that cannot close its delimiter. The `metadata`
//! of an answer names the method. No answer is calibrated.

pub mod answers;
mod attempt;
mod bound;
mod calls;
pub mod labels;
mod memory;
pub mod prompt;
mod provider;
pub mod rounding;
pub mod structured;
pub mod tournament;
mod usage_totals;

pub use provider::ChatCompletionsProvider;
