//! A Decisions request in canonical form, and its answer.

use std::sync::Arc;

use super::{Answers, RoutingFunnel};
use crate::guardrail::filter::Finding;
use crate::ids::DecisionId;
use crate::json::Json;
use crate::model::ModelId;
use crate::money::Usd;
use crate::routing::RoutingPreferences;
use crate::usage::{AttemptRecord, TokenSource};

/// A Decisions request whose form has been checked. What a provider gets of it is the [`Inquiry`]; nothing else ever
/// leaves the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRequest {
    /// The model as the caller named it.
    pub model: String,
    /// Models to go on with where no endpoint of those before gave an answer, in order.
    pub fallback_models: Vec<String>,
    /// What is asked about what.
    pub inquiry: Arc<Inquiry>,
    /// How to route.
    pub preferences: RoutingPreferences,
    /// True: questions that no provider answered are told as such instead of failing the whole request.
    pub partial: bool,
    /// Groups requests; at most 256 characters. Never sent to a provider.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object. Never sent to a provider.
    pub trace: Option<Json>,
    /// The end user; at most 256 characters. Never sent to a provider.
    pub user: Option<String>,
}

/// The labels that a caller puts on a request, for its usage record and its trace. No provider receives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestLabels {
    /// Groups requests.
    pub session_id: Option<String>,
    /// Observability metadata: a JSON object.
    pub trace: Option<Json>,
    /// The end user.
    pub user: Option<String>,
}

impl RequestLabels {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.session_id.is_none() && self.trace.is_none() && self.user.is_none()
    }

    /// Bytes of their text.
    pub fn len_bytes(&self) -> usize {
        let texts = [self.session_id.as_deref(), self.trace.as_ref().map(Json::text), self.user.as_deref()];
        texts.into_iter().flatten().map(str::len).sum()
    }
}

/// What a provider gets to see of a request, and all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// What is asked.
    pub questions: Questions,
    /// What it is asked about.
    pub state: Option<Json>,
    /// How `state` is to be read.
    pub state_form: StateForm,
    /// Images and other media beside the text.
    pub attachments: Attachments,
}

impl Inquiry {
    /// Text alone.
    pub fn new(questions: Questions, state: Option<Json>) -> Self {
        Self { questions, state, state_form: StateForm::Plain, attachments: Attachments::None }
    }

    /// The same inquiry with some of its typed questions only, each byte for byte as it was.
    #[must_use]
    pub fn with_questions(&self, questions: Vec<Question>) -> Self {
        // Field by field: a clone of the whole would copy every question for each part of a split.
        Self {
            questions: Questions::of_typed(questions),
            state: self.state.clone(),
            state_form: self.state_form,
            attachments: self.attachments.clone(),
        }
    }

    /// Bytes of all but its questions.
    pub(crate) fn len_bytes_around(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.text().len()) + self.attachments.len_bytes()
    }

    /// Bytes of its JSON and of its attachments: at least what a provider is sent of the caller's.
    pub fn len_bytes(&self) -> usize {
        self.questions.json.text().len() + self.len_bytes_around()
    }
}

/// How the `state` of an [`Inquiry`] is to be read. Every form is JSON and can go as it is to a wire that takes any
/// JSON; a wire that has the form itself gets it back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateForm {
    /// Any JSON value.
    Plain,
    /// The array of input items of the OpenAI Decisions wire.
    OpenAiItems,
    /// The array of input parts of the Gemini Decisions wire.
    GeminiParts,
}

/// Media beside, or inside, the state. They travel only to an endpoint that takes them in the form that they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachments {
    /// None.
    None,
    /// The assets of the System One wire.
    Assets(Vec<Asset>),
    /// The member `images`: an array, byte for byte.
    Images(Json),
    /// Media stand among the items or parts of the state.
    InState,
}

impl Attachments {
    /// Bytes of their text or content.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::None | Self::InState => 0,
            Self::Assets(assets) => assets.iter().map(|asset| asset.entry.text().len() + asset.data.len()).sum(),
            Self::Images(images) => images.text().len(),
        }
    }
}

/// One asset of the System One wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Asset {
    /// The name by which the state refers to it.
    pub name: String,
    /// Its entry as the caller wrote it: a JSON object. With inline data the entry is whole and `data` is empty.
    pub entry: Json,
    /// The content where it came as a part of its own, else empty.
    pub data: Arc<[u8]>,
    /// The media type of that part.
    pub media_type: Option<String>,
}

impl std::fmt::Debug for Asset {
    /// Without the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asset = &mut f.debug_struct("Asset");
        asset.field("bytes", &self.data.len()).field("media_type", &self.media_type).finish_non_exhaustive()
    }
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

impl Questions {
    /// From questions, in canonical form: an object of a member a question.
    pub fn of_typed(questions: Vec<Question>) -> Self {
        let members = questions.iter().map(|question| (question.name.as_str(), question.json.text()));
        Self { json: Json::object(members), typed: Some(questions) }
    }

    /// How many are asked; opaque questions count as one.
    pub fn count(&self) -> usize {
        self.typed.as_ref().map_or(1, Vec::len)
    }
}

/// One typed question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name, unique in the request.
    pub name: String,
    /// The question in System One form: as the caller wrote it, or written by the wire that it came in by.
    pub json: Json,
    /// What to decide: a string, object or array.
    pub instructions: Option<Json>,
    /// What kind of answer it wants.
    pub kind: QuestionKind,
}

impl Question {
    /// Bytes of it as a member of the questions' object, braces and punctuation included: never less than it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        // Two quotes, a colon and a comma or brace; a name that needs escapes may take up to six bytes for one.
        let escaped = |c: char| if c < ' ' || matches!(c, '"' | '\\') { 6 } else { c.len_utf8() };
        self.name.chars().map(escaped).sum::<usize>() + self.json.text().len() + 6
    }
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
        /// The options in order, names unique.
        options: Vec<ChoiceOption>,
    },
    /// A place on a scale of 1 to 10 levels.
    Score {
        /// What each level means, from 0 up.
        levels: Vec<Json>,
    },
    /// A rectangle in an image.
    Box,
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoiceOption {
    /// Its name, unique in the question.
    pub name: String,
    /// The boolean that it stands for, where it came as one: `true` is another option than `"true"`.
    pub boolean: Option<bool>,
    /// What it means.
    pub meaning: Option<Json>,
}

impl ChoiceOption {
    /// An option of that name.
    pub fn new(name: impl Into<String>, meaning: Option<Json>) -> Self {
        Self { name: name.into(), boolean: None, meaning }
    }
}

/// The type of a question, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuestionType {
    /// Yes or no.
    Noul,
    /// One of several options.
    Choice,
    /// A place on a scale.
    Score,
    /// A rectangle in an image.
    Box,
}

impl QuestionType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Noul, Self::Choice, Self::Score, Self::Box];

    /// The value of the member `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Noul => "noul",
            Self::Choice => "choice",
            Self::Score => "score",
            Self::Box => "box",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl QuestionKind {
    /// Its type.
    pub fn question_type(&self) -> QuestionType {
        match self {
            Self::Noul { .. } => QuestionType::Noul,
            Self::Choice { .. } => QuestionType::Choice,
            Self::Score { .. } => QuestionType::Score,
            Self::Box => QuestionType::Box,
        }
    }

    /// The value of its member `type`.
    pub fn as_str(&self) -> &'static str {
        self.question_type().as_str()
    }
}

/// The answer to a Decisions request.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Names the answer; its usage record is found by it.
    pub id: DecisionId,
    /// The questions that were answered, for surfaces that answer in another form than the canonical one.
    pub inquiry: Arc<Inquiry>,
    /// The answers, in the order of the questions.
    pub answers: Answers,
    /// The model that served it; of the first part where several did.
    pub model: ModelId,
    /// The display name of the provider that served it; several are joined by a comma.
    pub provider: String,
    /// Tokens in.
    pub input_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Where the token counts come from.
    pub token_source: TokenSource,
    /// What it cost.
    pub cost: Usd,
    /// Every attempt, in the order in which they began, the ones that answered included.
    pub attempts: Arc<[AttemptRecord]>,
    /// What each step of routing left.
    pub funnel: RoutingFunnel,
    /// What content filters redacted or flagged before anything was sent.
    pub findings: Vec<Finding>,
}
