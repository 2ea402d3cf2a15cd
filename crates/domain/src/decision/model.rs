//! A Decisions request in canonical form, and its answer.

use crate::ids::DecisionId;
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::usage::TokenSource;

/// A Decisions request whose form has been checked. What a provider gets of it is `questions` and `state`, byte for
/// byte; nothing else ever leaves the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The model as the caller named it.
    pub model: String,
    /// What is asked.
    pub questions: Questions,
    /// What it is asked about.
    pub state: Option<Json>,
    /// How to route.
    pub preferences: RoutingPreferences,
    /// Groups requests; at most 256 characters. Never sent to a provider.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object. Never sent to a provider.
    pub trace: Option<Json>,
    /// The end user; at most 256 characters. Never sent to a provider.
    pub user: Option<String>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// As the caller wrote it.
    pub json: Json,
    /// The questions where they are typed, in their order; `None` where they are opaque and go as they are to a wire
    /// that takes them.
    pub typed: Option<Vec<Question>>,
}

/// One typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name, unique in the request.
    pub name: String,
    /// What to decide: a string, object or array.
    pub instructions: Option<Json>,
    /// What kind of answer it wants.
    pub kind: QuestionKind,
}

/// The kind of a typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionKind {
    /// Yes or no, answered by the probability of yes.
    Noul {
        /// What speaks for yes.
        when_true: Option<Json>,
        /// What speaks for no.
        when_false: Option<Json>,
    },
    /// One of 1 to 255 options.
    Choice {
        /// Their names, in order, and what each means.
        options: Vec<(String, Option<Json>)>,
    },
    /// A place on a scale of 1 to 10 levels.
    Score {
        /// What each level means, from 0 up.
        levels: Vec<Json>,
    },
}

impl QuestionKind {
    /// The value of its member `type`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Noul { .. } => "noul",
            Self::Choice { .. } => "choice",
            Self::Score { .. } => "score",
        }
    }
}

/// How the caller wants the request routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingPreferences {
    /// False: only the first candidate is tried.
    pub allow_fallbacks: bool,
}

impl Default for RoutingPreferences {
    fn default() -> Self {
        Self { allow_fallbacks: true }
    }
}

/// The answer to a Decisions request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Names the answer; its usage record is found by it.
    pub id: DecisionId,
    /// The answers as the provider gave them: a JSON object.
    pub answers: Json,
    /// The model that served it.
    pub model: ModelId,
    /// The display name of the provider that served it.
    pub provider: String,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: TokenSource,
    /// What it cost.
    pub cost: Usd,
    /// How many endpoints were tried, the one that answered included.
    pub attempts: usize,
}
