//! Conversion of prompts to request bodies.

use domain::json::Json;
use domain::question::{Attachments, ProviderInput, Question, QuestionKind, QuestionType};

use super::members::{Member, Members};
use crate::provider::{UnsupportedByWire, object};

/// The two messages of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The system message. It contains no text of the caller.
    pub system: String,
    /// The user message.
    pub user: String,
}

/// The output that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedOutput {
    /// One token with the probabilities of alternatives.
    Label {
        /// The number of alternatives.
        top_logprobs: usize,
    },
    /// A JSON object that follows a schema.
    Object {
        /// The schema.
        schema: Json,
        /// The token limit.
        max_tokens: usize,
    },
}

/// Checks that a chat model can answer the questions.
///
/// # Errors
/// The feature that prompts do not support.
pub fn check(provider_input: &ProviderInput) -> Result<&[Question], UnsupportedByWire> {
    let typed = provider_input.questions.typed.as_deref().ok_or(UnsupportedByWire::OpaqueQuestions)?;
    if provider_input.attachments != Attachments::None {
        return Err(UnsupportedByWire::Attachments);
    }
    let has_box = typed.iter().any(|question| question.kind == QuestionKind::Box);
    if has_box { Err(UnsupportedByWire::QuestionType(QuestionType::Box)) } else { Ok(typed) }
}

/// Builds the body: the model's name if given, the two messages, and the output settings. Omits the members in
/// `omitted`.
///
/// The output is limited by `max_tokens`, which most servers accept, or by `max_completion_tokens` if that is omitted.
/// The latter includes reasoning tokens.
pub fn body(model: Option<&str>, prompt: &Prompt, output: &RequestedOutput, omitted: Members) -> String {
    let model = model.map(Json::string);
    let messages = messages(prompt);
    let mut members: Vec<(&str, &str)> = Vec::new();
    members.extend(model.iter().map(|model| ("model", model.text())));
    members.push(("messages", &messages));
    let may = |member: Member| !omitted.has(member);
    if may(Member::Temperature) {
        members.push((Member::Temperature.as_str(), "0"));
    }
    let (count, format) = match output {
        RequestedOutput::Label { top_logprobs } => ([1, *top_logprobs].map(|count| count.to_string()), None),
        RequestedOutput::Object { schema, max_tokens } => {
            ([max_tokens.to_string(), String::new()], Some(response_format(schema)))
        }
    };
    let bound = [Member::MaxTokens, Member::MaxCompletionTokens].into_iter().find(|member| may(*member));
    members.extend(bound.map(|member| (member.as_str(), count[0].as_str())));
    match &format {
        None => members.extend([("logprobs", "true"), ("top_logprobs", count[1].as_str())]),
        Some(format) if may(Member::ResponseFormat) => members.push((Member::ResponseFormat.as_str(), format.text())),
        Some(_) => {}
    }
    if may(Member::ReasoningEffort) {
        members.push((Member::ReasoningEffort.as_str(), "\"none\""));
    }
    if may(Member::ChatTemplateKwargs) {
        members.push((Member::ChatTemplateKwargs.as_str(), r#"{"enable_thinking":false}"#));
    }
    object(members)
}

/// Returns the member to omit if a server rejects `member`: the member itself, or the other name of the token limit if
/// that was sent. `None` if the body does not contain the member or needs it: an answer of one label always has a
/// limit.
pub fn member_to_omit(output: &RequestedOutput, omitted: Members, member: Member) -> Option<Member> {
    let member = match member {
        Member::MaxTokens | Member::MaxCompletionTokens if omitted.has(Member::MaxTokens) => {
            Member::MaxCompletionTokens
        }
        Member::MaxCompletionTokens => Member::MaxTokens,
        other => other,
    };
    let kind = OutputKind::of(output);
    (kind.is_optional(member) && !omitted.has(member)).then_some(member)
}

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// One label.
    Label,
    /// An object.
    Object,
}

impl OutputKind {
    /// Returns the kind of a requested output.
    pub fn of(output: &RequestedOutput) -> Self {
        match output {
            RequestedOutput::Label { .. } => Self::Label,
            RequestedOutput::Object { .. } => Self::Object,
        }
    }

    fn is_optional(self, member: Member) -> bool {
        self == Self::Object || !matches!(member, Member::MaxCompletionTokens | Member::ResponseFormat)
    }

    /// Returns how many further members can be omitted.
    pub fn count_optional(self, omitted: Members) -> usize {
        Member::ALL.into_iter().filter(|member| self.is_optional(*member) && !omitted.has(*member)).count()
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
