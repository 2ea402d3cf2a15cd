//! Meanings of chat server errors that say more than their status.
//!
//! Servers accept different members and report rejections differently. An error that names an optional member is an
//! objection to it. Only the beginning of the error's own text is searched, not the parts that repeat the request. None
//! of the text is kept.

use domain::routing::{AttemptFailure, AttemptFailureKind};

use super::members::Member;
use crate::provider::{ErrorMeaning, Object, account, as_text, elements, number, string};
use domain::json::JsonText;

/// Bytes that are searched of each text.
const SEARCHED_BYTES: usize = 4096;

/// The part of a request that a server rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objection {
    /// A member that can be left out.
    Member(Member),
    /// Log-probabilities.
    Logprobs,
}

/// Words in an error text, and the objection that each one indicates.
const OBJECTION_NAMES: [(&str, Objection); 12] = [
    ("reasoning_effort", Objection::Member(Member::ReasoningEffort)),
    ("reasoning.effort", Objection::Member(Member::ReasoningEffort)),
    ("reasoning effort", Objection::Member(Member::ReasoningEffort)),
    ("chat_template_kwargs", Objection::Member(Member::ChatTemplateKwargs)),
    ("enable_thinking", Objection::Member(Member::ChatTemplateKwargs)),
    ("temperature", Objection::Member(Member::Temperature)),
    ("max_tokens", Objection::Member(Member::MaxTokens)),
    ("max_completion_tokens", Objection::Member(Member::MaxCompletionTokens)),
    ("response_format", Objection::Member(Member::ResponseFormat)),
    ("json_schema", Objection::Member(Member::ResponseFormat)),
    ("top_logprobs", Objection::Logprobs),
    ("logprobs", Objection::Logprobs),
];

impl Objection {
    /// Returns the sentence that identifies the objection in a failure.
    fn detail(self) -> &'static str {
        match self {
            Self::Member(Member::ReasoningEffort) => "the provider does not accept reasoning_effort",
            Self::Member(Member::ChatTemplateKwargs) => "the provider does not accept chat_template_kwargs",
            Self::Member(Member::Temperature) => "the provider does not accept this temperature",
            Self::Member(Member::MaxTokens) => "the provider does not accept max_tokens",
            Self::Member(Member::MaxCompletionTokens) => "the provider does not accept max_completion_tokens",
            Self::Member(Member::ResponseFormat) => "the provider does not accept this response_format",
            Self::Logprobs => "the provider does not support log-probabilities for this model",
        }
    }

    /// Returns the objection that a failure describes, if any.
    pub fn of(failure: &AttemptFailure) -> Option<Self> {
        let all = Member::ALL.into_iter().map(Self::Member).chain([Self::Logprobs]);
        all.into_iter().find(|objection| objection.detail() == failure.detail)
    }
}

/// Reads an error. Servers reject a member with 400 or 422. For log-probabilities some answer "not allowed" or "not
/// implemented".
pub fn read(status: u16, body: &[u8]) -> Option<ErrorMeaning> {
    let objection = match status {
        400 | 422 => objection(body)?,
        403 | 501 => objection(body).filter(|objection| *objection == Objection::Logprobs)?,
        _ => return None,
    };
    let kind = AttemptFailureKind::RejectedByProvider;
    Some(ErrorMeaning { kind, cause: None, retry_after: None, detail: objection.detail() })
}

/// Reads an error in a response with status 200: `{"error": {"code": 503, ..}}`.
pub fn read_error_in_answer(body: &[u8]) -> Option<AttemptFailure> {
    let status = status_in_answer(body)?;
    Some(account::refine(AttemptFailure::from_status(status, None), body))
}

fn status_in_answer(body: &[u8]) -> Option<u16> {
    let members = Object::parse(as_text(body).ok()?)?;
    let error = Object::of(members.get("error").ok()??)?;
    let (_, code) = error.get("code").ok()?.and_then(number)?;
    (400..600_u16).find(|status| (f64::from(*status) - code).abs() < 0.5)
}

/// Returns the first objection that the error's own text names. A member `param` takes precedence over texts.
pub fn objection(body: &[u8]) -> Option<Objection> {
    let text = as_text(body).ok()?;
    let Some(members) = Object::parse(text) else { return first_named(text) };
    let member = |object: &Object<'_>, name: &str| object.get(name).ok().flatten().and_then(string);
    let error = members.get("error").ok().flatten();
    let inner = error.and_then(Object::of);
    let param = inner.as_ref().and_then(|error| member(error, "param")).or_else(|| member(&members, "param"));
    let mut texts: Vec<String> = param.into_iter().collect();
    texts.extend(inner.as_ref().and_then(|error| member(error, "message")));
    texts.extend(error.and_then(string));
    texts.extend(member(&members, "message"));
    texts.extend(members.get("detail").ok().flatten().map(error_texts).unwrap_or_default());
    texts.iter().find_map(|text| first_named(text))
}

/// Returns the error texts: a sentence, or an array of errors with locations and sentences.
fn error_texts(detail: JsonText<'_>) -> Vec<String> {
    if let Some(text) = string(detail) {
        return vec![text];
    }
    let mut texts = Vec::new();
    for error in elements(detail).unwrap_or_default().into_iter().filter_map(Object::of) {
        let place = error.get("loc").ok().flatten().and_then(elements).unwrap_or_default();
        texts.extend(place.into_iter().filter_map(string));
        texts.extend(error.get("msg").ok().flatten().and_then(string));
    }
    texts
}

/// Returns the objection that a text names first, ignoring case.
fn first_named(text: &str) -> Option<Objection> {
    let searched = text.as_bytes().iter().take(SEARCHED_BYTES).copied().collect::<Vec<u8>>();
    let searched = String::from_utf8_lossy(&searched).to_ascii_lowercase();
    let places = OBJECTION_NAMES.iter().filter_map(|(name, objection)| Some((searched.find(name)?, *objection)));
    places.min_by_key(|(place, _)| *place).map(|(_, objection)| objection)
}
