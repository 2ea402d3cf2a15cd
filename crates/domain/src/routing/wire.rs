//! The protocols of providers, their limits and forms of media.

use crate::json::{Json, JsonPart};
use crate::question::{ConfidenceSource, Question, QuestionKind, QuestionType, StateForm};
use crate::usage::AnswerMethod;

/// The protocol that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `state` and a map of `noul | choice | score | box` questions over HTTP.
    SystemOne,
    /// `input` and an array of `predicate | choice | score` questions.
    OpenAiDecisions,
    /// `input` and a map of `noul | choice | score` questions with `true_description`.
    GeminiDecisions,
    /// `input` and an array of questions with `id`, `question`, `options`, `levels`.
    SglangDecisions,
    /// Any chat model behind an OpenAI-compatible API; the answers are derived from its completions.
    ChatCompletions,
    /// Answers generated inside this process.
    Sandbox,
}

/// The facts about a wire that routing depends on.
#[derive(Clone, Copy)]
struct WireFacts {
    /// The name in configuration and records.
    name: &'static str,
    /// The questions that the wire carries.
    questions: QuestionSupport,
    /// The default source of `confidence`.
    confidence: ConfidenceSource,
    /// The forms in which it carries media.
    attachments: &'static [AttachmentForm],
    /// The format of a state that contains media, if the wire carries such a state.
    media_state: Option<StateForm>,
    /// The limits in its public specification.
    limits: EndpointLimits,
}

const NO_LIMITS: EndpointLimits = EndpointLimits {
    max_questions: None,
    max_options: None,
    max_levels: None,
    max_body_bytes: None,
    max_input_tokens: None,
};

/// The questions that a wire carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuestionSupport {
    /// The canonical form, opaque questions included. `boxes` is true if `box` questions are among them.
    Canonical { boxes: bool },
    /// Typed questions with instructions. `criteria` is true if yes-or-no questions have criteria.
    Typed { criteria: bool },
    /// Prompts and answers that this service writes itself.
    Emulated,
}

impl Wire {
    /// Every wire.
    pub const ALL: [Self; 6] = [
        Self::SystemOne,
        Self::OpenAiDecisions,
        Self::GeminiDecisions,
        Self::SglangDecisions,
        Self::ChatCompletions,
        Self::Sandbox,
    ];

    /// Returns the wire with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.as_str() == name)
    }

    /// Returns the method of an answer. Those of chat models name it in their metadata; one without metadata was not drawn
    /// from label probabilities.
    pub fn method_of(self, answer: &Json) -> AnswerMethod {
        if self != Self::ChatCompletions {
            return AnswerMethod::Native;
        }
        let named = member(answer.as_part(), "metadata").and_then(|metadata| member(metadata, "method"));
        match named.and_then(JsonPart::as_str).as_deref() {
            Some("logprobs") => AnswerMethod::LabelProbabilities,
            _ => AnswerMethod::Stated,
        }
    }

    const fn facts(self) -> WireFacts {
        match self {
            Self::SystemOne => WireFacts {
                name: "system-one",
                questions: QuestionSupport::Canonical { boxes: true },
                confidence: ConfidenceSource::SystemOne,
                attachments: &[AttachmentForm::Assets, AttachmentForm::Images],
                media_state: None,
                limits: NO_LIMITS,
            },
            Self::OpenAiDecisions => WireFacts {
                name: "openai-decisions",
                questions: QuestionSupport::Typed { criteria: false },
                confidence: ConfidenceSource::Computed,
                attachments: &[AttachmentForm::InState],
                media_state: Some(StateForm::OpenAiItems),
                limits: EndpointLimits { max_questions: Some(400), ..NO_LIMITS },
            },
            Self::GeminiDecisions => WireFacts {
                name: "gemini-decisions",
                questions: QuestionSupport::Typed { criteria: true },
                confidence: ConfidenceSource::Computed,
                attachments: &[AttachmentForm::InState],
                media_state: Some(StateForm::GeminiParts),
                limits: EndpointLimits { max_questions: Some(1000), ..NO_LIMITS },
            },
            Self::SglangDecisions => WireFacts {
                name: "sglang-decisions",
                questions: QuestionSupport::Typed { criteria: true },
                confidence: ConfidenceSource::Computed,
                attachments: &[AttachmentForm::Images],
                media_state: None,
                limits: EndpointLimits { max_options: Some(26), ..NO_LIMITS },
            },
            Self::ChatCompletions => WireFacts {
                name: "chat-completions",
                questions: QuestionSupport::Emulated,
                confidence: ConfidenceSource::Computed,
                attachments: &[],
                media_state: None,
                // Each question may need a separate call that repeats the whole state.
                limits: EndpointLimits { max_questions: Some(64), ..NO_LIMITS },
            },
            Self::Sandbox => WireFacts {
                name: "sandbox",
                questions: QuestionSupport::Canonical { boxes: false },
                confidence: ConfidenceSource::SystemOne,
                attachments: &[],
                media_state: None,
                limits: NO_LIMITS,
            },
        }
    }

    /// Returns its name in configuration and records.
    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// Returns true if opaque questions (of a form that this service does not parse) can be sent verbatim.
    pub fn supports_opaque_questions(self) -> bool {
        matches!(self.facts().questions, QuestionSupport::Canonical { .. })
    }

    /// Returns the default source of `confidence` for this wire.
    pub fn confidence(self) -> ConfidenceSource {
        self.facts().confidence
    }

    /// Returns the limits in the public specification of this wire. Lower limits of a vendor are configured with its
    /// endpoint.
    pub const fn limits(self) -> EndpointLimits {
        self.facts().limits
    }

    /// Returns true if the wire supports questions of this type.
    pub fn supports_type(self, question_type: QuestionType) -> bool {
        match question_type {
            QuestionType::Noul | QuestionType::Choice | QuestionType::Score => true,
            QuestionType::Box => self.facts().questions == QuestionSupport::Canonical { boxes: true },
        }
    }

    /// Returns true if the wire can carry media in this form.
    pub fn carries(self, form: AttachmentForm) -> bool {
        form == AttachmentForm::None || self.facts().attachments.contains(&form)
    }

    /// Returns true if the wire can carry a state of this form that contains media.
    pub fn carries_media_in(self, form: StateForm) -> bool {
        self.facts().media_state == Some(form)
    }

    /// Returns true if the wire supports the question natively: no criteria moved into its instructions, no generated
    /// instructions, and no emulated answer.
    pub fn supports_natively(self, question: &Question) -> bool {
        let has_criteria = match self.facts().questions {
            QuestionSupport::Canonical { .. } => return true,
            QuestionSupport::Emulated => return false,
            QuestionSupport::Typed { criteria } => criteria,
        };
        let is_whole = match &question.kind {
            QuestionKind::Noul { when_true: None, when_false: None } => true,
            QuestionKind::Noul { .. } => has_criteria,
            QuestionKind::Choice { options } => options.len() > 1,
            QuestionKind::Score { levels } => levels.len() > 1,
            QuestionKind::Box => false,
        };
        question.instructions.is_some() && is_whole
    }
}

/// The limits of an endpoint per request; `None` means only the limits of the canonical form apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndpointLimits {
    /// The most questions.
    pub max_questions: Option<usize>,
    /// The most options of a `choice`.
    pub max_options: Option<usize>,
    /// The most levels of a `score`.
    pub max_levels: Option<usize>,
    /// The most bytes of state and questions together.
    pub max_body_bytes: Option<usize>,
    /// The most tokens of state and questions together. Checked against their bytes: a token takes at least one byte.
    pub max_input_tokens: Option<usize>,
}

fn member<'a>(object: JsonPart<'a>, name: &str) -> Option<JsonPart<'a>> {
    object.iter_members()?.flatten().find(|member| member.name == name).map(|member| member.value)
}

impl EndpointLimits {
    /// Returns each limit, or the one of `other` where it is `None`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_questions: self.max_questions.or(other.max_questions),
            max_options: self.max_options.or(other.max_options),
            max_levels: self.max_levels.or(other.max_levels),
            max_body_bytes: self.max_body_bytes.or(other.max_body_bytes),
            max_input_tokens: self.max_input_tokens.or(other.max_input_tokens),
        }
    }
}

named_enum! {
    /// The form in which an endpoint accepts images and other media.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AttachmentForm {
        /// No media.
        None = "none",
        /// The member `assets` of the System One wire.
        Assets = "assets",
        /// A member `images` beside the state.
        Images = "images",
        /// Items or parts of the input.
        InState = "input",
    }
}
