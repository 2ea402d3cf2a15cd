//! Parser of response bodies.

use domain::pricing::ReportedUsage;

use crate::provider::{BadAnswer, MalformedAnswer, Object, UsageNames, as_text, elements, number, string, usage};
use domain::json::JsonText;

/// The names of the token counts on this wire.
const USAGE: UsageNames = UsageNames { input: "prompt_tokens", output: "completion_tokens" };

/// Rounding may put a log-probability slightly above 0, and the sum of probabilities slightly above 1.
const SLACK: f64 = 0.05;

/// A candidate for the first token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenProbability {
    /// Its text.
    pub token: String,
    /// From 0 to 1.
    pub probability: f64,
}

/// The answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The token counts, if reported.
    pub usage: Option<ReportedUsage>,
    /// True if the model refused or the server filtered the answer.
    pub refused: bool,
    /// True if the answer contains reasoning.
    pub reasoned: bool,
    /// The text; empty if there is none.
    pub content: String,
    /// The probabilities of the first token and its alternatives; `None` if not reported.
    pub first_token: Option<Vec<TokenProbability>>,
}

/// Parses the first choice of a body.
///
/// # Errors
/// The malformed element.
pub fn read(body: &[u8]) -> Result<Reply, BadAnswer> {
    let members = Object::parse(as_text(body)?).ok_or(MalformedAnswer::NotOfItsForm)?;
    let used = usage(members.get("usage")?, USAGE)?;
    reply(&members, used).map_err(|error| BadAnswer { error, usage: used })
}

fn reply(members: &Object<'_>, usage: Option<ReportedUsage>) -> Result<Reply, MalformedAnswer> {
    let choices = members.get("choices")?.and_then(elements).ok_or(MalformedAnswer::NoAnswers)?;
    let choice = choices.first().and_then(|choice| Object::of(*choice)).ok_or(MalformedAnswer::NoAnswers)?;
    let message = choice.get("message")?.and_then(Object::of).ok_or(MalformedAnswer::NoAnswers)?;
    let says = |name| Ok(message.get(name)?.and_then(string).is_some_and(|text| !text.trim().is_empty()));
    let filtered = choice.get("finish_reason")?.and_then(string).as_deref() == Some("content_filter");
    Ok(Reply {
        usage,
        refused: filtered || says("refusal")?,
        reasoned: says("reasoning_content")? || says("reasoning")?,
        content: message.get("content")?.map(content).transpose()?.unwrap_or_default(),
        first_token: choice.get("logprobs")?.map(first_token).transpose()?.flatten(),
    })
}

/// Returns a string, or the joined texts of an array of parts.
fn content(content: JsonText<'_>) -> Result<String, MalformedAnswer> {
    if let Some(text) = string(content) {
        return Ok(text);
    }
    let mut texts = String::new();
    for part in elements(content).ok_or(MalformedAnswer::NotOfItsForm)? {
        let part = Object::of(part).ok_or(MalformedAnswer::NotOfItsForm)?;
        if let Some(text) = part.get("text")?.and_then(string) {
            texts.push_str(&text);
        }
    }
    Ok(texts)
}

/// Reads `content[0].top_logprobs` (an array of tokens), or `top_logprobs[0]` (a map) of older servers. `None` if both
/// are missing.
fn first_token(logprobs: JsonText<'_>) -> Result<Option<Vec<TokenProbability>>, MalformedAnswer> {
    let logprobs = Object::of(logprobs).ok_or(MalformedAnswer::NotOfItsForm)?;
    let first = |name| Ok(logprobs.get(name)?.and_then(elements).and_then(|all| all.first().copied()));
    let tokens = if let Some(token) = first("content")? {
        let token = Object::of(token).ok_or(MalformedAnswer::NotOfItsForm)?;
        of_array(&token)?
    } else if let Some(map) = first("top_logprobs")? {
        let map = Object::of(map).ok_or(MalformedAnswer::NotOfItsForm)?;
        let tokens = map.members().iter().map(|(token, value)| token_probability(token.clone().into_owned(), *value));
        let tokens: Result<Vec<_>, _> = tokens.collect();
        tokens?.into_iter().flatten().collect()
    } else {
        Vec::new()
    };
    if tokens.iter().map(|token| token.probability).sum::<f64>() > 1.0 + SLACK {
        return Err(MalformedAnswer::Answer("its token probabilities exceed 1"));
    }
    Ok((!tokens.is_empty()).then_some(tokens))
}

/// Returns the alternatives, plus the token itself if it is not among them. Empty without alternatives.
fn of_array(token: &Object<'_>) -> Result<Vec<TokenProbability>, MalformedAnswer> {
    let of_token = |token: &Object<'_>| -> Result<Option<TokenProbability>, MalformedAnswer> {
        let text = token.get("token")?.and_then(string).ok_or(MalformedAnswer::NotOfItsForm)?;
        token.get("logprob")?.map_or(Ok(None), |value| token_probability(text, value))
    };
    let mut all = Vec::new();
    for alternative in token.get("top_logprobs")?.and_then(elements).unwrap_or_default() {
        let alternative = Object::of(alternative).ok_or(MalformedAnswer::NotOfItsForm)?;
        all.extend(of_token(&alternative)?);
    }
    if !all.is_empty()
        && let Some(itself) = of_token(token)?
        && !all.iter().any(|other| other.token == itself.token)
    {
        all.push(itself);
    }
    Ok(all)
}

fn token_probability(token: String, value: JsonText<'_>) -> Result<Option<TokenProbability>, MalformedAnswer> {
    if value.get() == "null" {
        return Ok(None);
    }
    let (_, logprob) = number(value).ok_or(MalformedAnswer::Answer("a log-probability is no number"))?;
    if logprob > SLACK {
        return Err(MalformedAnswer::Answer("its token probabilities exceed 1"));
    }
    Ok(Some(TokenProbability { token, probability: logprob.min(0.0).exp() }))
}
