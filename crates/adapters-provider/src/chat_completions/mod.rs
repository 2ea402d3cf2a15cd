//! The `chat-completions` wire: any chat model behind an OpenAI-compatible API answers typed questions.
//!
//! | method | calls | where the distribution comes from |
//! |---|---|---|
//! | `logprobs` | one a question, more where a question has more options than labels | the log-probabilities of the first token |
//! | `structured` | one for all questions | what the model states in a JSON object |
//!
//! Either way the state stands in the prompt as a delimited document that cannot close its delimiter. Answers tell
//! how they were made in their `metadata`; nothing of it is calibrated.

pub mod answers;
mod attempt;
mod bound;
mod calls;
pub mod errors;
pub mod labels;
mod lanes;
pub mod logprobs;
pub mod members;
mod memory;
pub mod prompt;
mod provider;
pub mod request;
pub mod response;
pub mod rounding;
pub mod structured;
mod tally;
pub mod tournament;

pub use provider::ChatCompletionsProvider;
