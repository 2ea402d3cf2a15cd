//! Prompts -> request bodies.

use domain::decision::{Attachments, ProviderInput, Question, QuestionKind, QuestionType};
use domain::json::Json;

use super::members::{Member, Members};
use super::prompt::{Prompt, outcomes};
use crate::wire::{Uncarried, object};

/// What is wanted of the model beside the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// One token, and how probable others would have been.
    Label {
        /// For how many tokens.
        top_logprobs: usize,
    },
    /// A JSON object by a schema.
    Object {
        /// The schema.
        schema: Json,
        /// Most tokens of it.
        max_tokens: usize,
    },
}

/// Checks that a chat model can be asked all of it.
///
/// # Errors
/// What cannot be put into a prompt.
pub fn check(provider_input: &ProviderInput) -> Result<&[Question], Uncarried> {
    let typed = provider_input.questions.typed.as_deref().ok_or(Uncarried::OpaqueQuestions)?;
    if provider_input.attachments != Attachments::None {
        return Err(Uncarried::Attachments);
    }
    let has_box = typed.iter().any(|question| question.kind == QuestionKind::Box);
    if has_box { Err(Uncarried::QuestionType(QuestionType::Box)) } else { Ok(typed) }
}

/// The body: the model's name at the provider, where it has one there, the two messages, and how to answer. The
/// members of `left_out` are left out.
///
/// The answer is bounded by `max_tokens`, which most servers know; `max_completion_tokens` stands in for it where it
/// is left out. It counts reasoning as well, which `max_tokens` does not have to.
pub fn body(model: Option<&str>, prompt: &Prompt, wanted: &Wanted, left_out: Members) -> String {
    let model = model.map(Json::string);
    let messages = messages(prompt);
    let mut members: Vec<(&str, &str)> = Vec::new();
    members.extend(model.iter().map(|model| ("model", model.text())));
    members.push(("messages", &messages));
    let may = |member: Member| !left_out.has(member);
    if may(Member::Temperature) {
        members.push((Member::Temperature.name(), "0"));
    }
    let (count, format) = match wanted {
        Wanted::Label { top_logprobs } => ([1, *top_logprobs].map(|count| count.to_string()), None),
        Wanted::Object { schema, max_tokens } => {
            ([max_tokens.to_string(), String::new()], Some(response_format(schema)))
        }
    };
    let bound = [Member::MaxTokens, Member::MaxCompletionTokens].into_iter().find(|member| may(*member));
    members.extend(bound.map(|member| (member.name(), count[0].as_str())));
    match &format {
        None => members.extend([("logprobs", "true"), ("top_logprobs", count[1].as_str())]),
        Some(format) if may(Member::ResponseFormat) => members.push((Member::ResponseFormat.name(), format.text())),
        Some(_) => {}
    }
    if may(Member::ReasoningEffort) {
        members.push((Member::ReasoningEffort.name(), "\"none\""));
    }
    if may(Member::ChatTemplateKwargs) {
        members.push((Member::ChatTemplateKwargs.name(), r#"{"enable_thinking":false}"#));
    }
    object(members)
}

/// The member to leave out where a server objects to `member`: itself, or the other name of the bound where that is
/// what was sent. `None` where a body of this kind, without `left_out`, does not have it or cannot do without: an
/// answer that is one label stays bounded.
pub fn to_leave_out(wanted: &Wanted, left_out: Members, member: Member) -> Option<Member> {
    let member = match member {
        Member::MaxTokens | Member::MaxCompletionTokens if left_out.has(Member::MaxTokens) => {
            Member::MaxCompletionTokens
        }
        Member::MaxCompletionTokens => Member::MaxTokens,
        other => other,
    };
    let kind = Kind::of(wanted);
    (kind.can_spare(member) && !left_out.has(member)).then_some(member)
}

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One label.
    Label,
    /// An object.
    Object,
}

impl Kind {
    /// That of what is wanted.
    pub fn of(wanted: &Wanted) -> Self {
        match wanted {
            Wanted::Label { .. } => Self::Label,
            Wanted::Object { .. } => Self::Object,
        }
    }

    fn can_spare(self, member: Member) -> bool {
        self == Self::Object || !matches!(member, Member::MaxCompletionTokens | Member::ResponseFormat)
    }

    /// How many members can still be left out, where these are already.
    pub fn spare(self, left_out: Members) -> usize {
        Member::ALL.into_iter().filter(|member| self.can_spare(*member) && !left_out.has(*member)).count()
    }
}

fn messages(prompt: &Prompt) -> String {
    let message = |role: &str, content: &str| object([("role", role), ("content", Json::string(content).text())]);
    format!("[{},{}]", message("\"system\"", &prompt.system), message("\"user\"", &prompt.user))
}

fn response_format(schema: &Json) -> Json {
    let named = [("name", "\"probabilities\""), ("strict", "true"), ("schema", schema.text())];
    let named = Json::object(named);
    Json::object([("type", "\"json_schema\""), ("json_schema", named.text())])
}

/// Tokens that a model which cannot help thinking may think before it states anything.
const ROOM_TO_THINK: usize = 4096;
/// Tokens of one stated probability, with its key and punctuation.
const TOKENS_A_PROBABILITY: usize = 16;

/// All questions as one object of stated probabilities.
pub fn stated(questions: &[Question]) -> Wanted {
    let number = Json::object([("type", "\"number\"")]);
    let members: Vec<(String, Json)> = questions
        .iter()
        .enumerate()
        .map(|(place, question)| {
            let schema = match &question.kind {
                QuestionKind::Noul { .. } => number.clone(),
                kind => {
                    let options = (0..outcomes(kind)).map(|option| (format!("o{option}"), number.clone()));
                    object_schema(&options.collect::<Vec<_>>())
                }
            };
            (format!("q{place}"), schema)
        })
        .collect();
    let stated: usize = questions.iter().map(|question| outcomes(&question.kind) + 1).sum();
    Wanted::Object { schema: object_schema(&members), max_tokens: ROOM_TO_THINK + TOKENS_A_PROBABILITY * stated }
}

/// An object of exactly these members.
fn object_schema(members: &[(String, Json)]) -> Json {
    let properties = Json::object(members.iter().map(|(name, schema)| (name.as_str(), schema.text())));
    let names: Vec<Json> = members.iter().map(|(name, _)| Json::string(name)).collect();
    let required = Json::array(names.iter().map(Json::text));
    Json::object([
        ("type", "\"object\""),
        ("properties", properties.text()),
        ("required", required.text()),
        ("additionalProperties", "false"),
    ])
}
