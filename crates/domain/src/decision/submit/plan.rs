//! Plans sub-requests: assigns questions to endpoints. Pure.

use std::sync::Arc;

use crate::model::ModelId;
use crate::question::{ProviderInput, Question};
use crate::routing::{AttemptFailure, Candidate, Endpoint, UnsupportedQuestions};

/// The most sub-requests of a plan. As many again may replace failed ones.
pub(super) const MAX_SUB_REQUESTS: usize = 64;

/// Questions that are sent together, with the candidates that can answer all of them, in order.
#[derive(Debug)]
pub(in crate::decision) struct SubRequest {
    /// Its number within the call, which assigns it.
    pub(super) number: u32,
    pub(super) input: Arc<ProviderInput>,
    /// The questions that no earlier stage has accepted, for endpoints that answer each question by itself; `None` if
    /// these are all.
    open: Option<Arc<ProviderInput>>,
    pub(super) candidates: Vec<Candidate>,
    /// Candidates that need smaller sub-requests. These are made if all `candidates` fail.
    pub(super) others: Vec<Candidate>,
    /// The failures before this sub-request.
    pub(super) inherited: Vec<(Arc<Endpoint>, AttemptFailure)>,
}

impl SubRequest {
    fn new(input: Arc<ProviderInput>, able: &[Candidate]) -> Self {
        let (candidates, others) = able.iter().cloned().partition(|candidate| fits(&candidate.endpoint, &input));
        Self { number: 0, input, open: None, candidates, others, inherited: Vec::new() }
    }

    /// Keeps the open questions for endpoints that answer each question by itself. Returns false if no question of the
    /// sub-request is open.
    pub(super) fn keep_open(&mut self, is_open: impl Fn(&Question) -> bool) -> bool {
        let questions = self.input.questions.typed.as_deref().unwrap_or_default();
        let open: Vec<Question> = questions.iter().filter(|question| is_open(question)).cloned().collect();
        let (is_any, is_all) = (!open.is_empty(), open.len() == questions.len());
        self.open = (is_any && !is_all).then(|| Arc::new(self.input.with_questions(open)));
        is_any
    }

    /// Returns what is sent to an endpoint.
    pub(super) fn input_for(&self, endpoint: &Endpoint) -> &Arc<ProviderInput> {
        self.open.as_ref().filter(|_| endpoint.independent_questions).unwrap_or(&self.input)
    }

    /// Appends candidates.
    pub(super) fn then(mut self, candidates: &[Candidate]) -> Self {
        let after = Self::new(Arc::clone(&self.input), candidates);
        self.candidates.extend(after.candidates);
        self.others.extend(after.others);
        self
    }

    /// Returns the same questions in smaller sub-requests, for the other candidates. `None` if these cannot
    /// answer all of them.
    pub(super) fn smaller(&self, failures: &[(Arc<Endpoint>, AttemptFailure)]) -> Option<Vec<Self>> {
        if self.others.is_empty() {
            return None;
        }
        let mut smaller = plan(&self.input, &self.others, Precedence::default()).ok()?;
        if let Some(open) = self.open.as_ref().and_then(|open| open.questions.typed.as_deref()) {
            smaller.retain_mut(|part| part.keep_open(|question| open.iter().any(|open| open.name == question.name)));
        }
        for part in &mut smaller {
            part.inherited = failures.to_vec();
        }
        Some(smaller)
    }
}

/// Preferences that take precedence over fewer calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Precedence {
    /// The client chose the first endpoint: it is tried first, even if it needs several calls and another one only one.
    pub(super) first_endpoint: bool,
    /// The candidates of all models are in one order. Otherwise, a model is tried only if the models before it cannot
    /// answer, in one call or in several.
    pub(super) across_models: bool,
}

/// Plans one sub-request if any candidate can answer everything. Otherwise splits the questions: each goes to the first
/// candidate that can answer it, in as many calls as its limits require.
///
/// # Errors
/// A question that no candidate can answer.
pub(super) fn plan(
    provider_input: &Arc<ProviderInput>,
    candidates: &[Candidate],
    precedence: Precedence,
) -> Result<Vec<SubRequest>, UnsupportedQuestions> {
    let is_one_model = candidates.windows(2).all(|pair| pair[0].model == pair[1].model);
    if precedence.across_models || is_one_model {
        return plan_at_once(provider_input, candidates, precedence.first_endpoint);
    }
    let mut models: Vec<&ModelId> = Vec::new();
    for candidate in candidates {
        if !models.contains(&&candidate.model) {
            models.push(&candidate.model);
        }
    }
    let mut fault = UnsupportedQuestions::Size;
    for count in 1..=models.len() {
        let (near, far): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().cloned().partition(|candidate| models[..count].contains(&&candidate.model));
        match plan_at_once(provider_input, &near, precedence.first_endpoint) {
            Ok(parts) => return Ok(parts.into_iter().map(|part| part.then(&far)).collect()),
            Err(unsupported) => fault = unsupported,
        }
    }
    Err(fault)
}

/// Plans as if all candidates were of one model.
fn plan_at_once(
    provider_input: &Arc<ProviderInput>,
    candidates: &[Candidate],
    keep_first: bool,
) -> Result<Vec<SubRequest>, UnsupportedQuestions> {
    let Some(whole) = candidates.iter().position(|candidate| fits(&candidate.endpoint, provider_input)) else {
        return split(provider_input, candidates);
    };
    let first_can_split = || {
        let first = candidates.get(..1).unwrap_or_default();
        provider_input
            .questions
            .typed
            .as_ref()
            .is_some_and(|questions| groups(provider_input, questions, first).is_ok())
    };
    if whole > 0 && keep_first && first_can_split() {
        // If the split needs too many calls, the candidate that supports the whole input comes first.
        if let Ok(split) = split(provider_input, candidates) {
            return Ok(split);
        }
    }
    Ok(vec![SubRequest::new(Arc::clone(provider_input), candidates)])
}

/// Sends each question to the first candidate that can answer it.
fn split(
    provider_input: &Arc<ProviderInput>,
    candidates: &[Candidate],
) -> Result<Vec<SubRequest>, UnsupportedQuestions> {
    let Some(questions) = &provider_input.questions.typed else { return Err(UnsupportedQuestions::Size) };
    let mut sub_requests = Vec::new();
    let mut count = 0;
    for (able, group) in groups(provider_input, questions, candidates)? {
        let able: Vec<Candidate> = able.into_iter().map(|place| candidates[place].clone()).collect();
        for questions in chunks(provider_input, group, &able[0].endpoint) {
            count += 1;
            // Sub-requests above the limit are only counted.
            if count <= MAX_SUB_REQUESTS {
                sub_requests.push(SubRequest::new(Arc::new(provider_input.with_questions(questions)), &able));
            }
        }
    }
    if count > MAX_SUB_REQUESTS { Err(UnsupportedQuestions::SubRequests(count)) } else { Ok(sub_requests) }
}

/// Returns true if an endpoint can answer everything in one call.
fn fits(endpoint: &Endpoint, provider_input: &ProviderInput) -> bool {
    let typed = provider_input.questions.typed.as_deref().into_iter().flatten();
    endpoint.limits().max_questions.is_none_or(|max| provider_input.questions.count() <= max)
        && endpoint.has_room_for(provider_input.len_bytes())
        && endpoint.check_input(provider_input).is_ok()
        && typed.into_iter().all(|question| endpoint.check_question(question).is_ok())
}

type Group<'a> = (Vec<usize>, Vec<&'a Question>);

/// Groups questions by the positions of the candidates that can answer them, in the order of the first of each.
fn groups<'a>(
    provider_input: &ProviderInput,
    questions: &'a [Question],
    candidates: &[Candidate],
) -> Result<Vec<Group<'a>>, UnsupportedQuestions> {
    let around = provider_input.len_bytes_without_questions();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for question in questions {
        let mut fault = UnsupportedQuestions::Size;
        let mut able = Vec::new();
        for (place, Candidate { endpoint, .. }) in candidates.iter().enumerate() {
            match endpoint.check_question(question) {
                // An endpoint without questions gets no sub-request.
                Ok(()) if endpoint.limits().max_questions == Some(0) => {}
                Ok(()) if endpoint.has_room_for(around + question.len_bytes()) => able.push(place),
                Ok(()) => {}
                Err(unsupported) => fault = unsupported,
            }
        }
        if able.is_empty() {
            return Err(fault);
        }
        match groups.iter_mut().find(|(others, _)| *others == able) {
            Some((_, group)) => group.push(question),
            None => groups.push((able, vec![question])),
        }
    }
    Ok(groups)
}

/// Splits a group into pieces that an endpoint takes in one call each.
fn chunks(provider_input: &ProviderInput, group: Vec<&Question>, endpoint: &Endpoint) -> Vec<Vec<Question>> {
    let around = provider_input.len_bytes_without_questions();
    let most = endpoint.limits().max_questions.unwrap_or(usize::MAX).max(1);
    let mut chunks: Vec<Vec<Question>> = Vec::new();
    let mut bytes = 0;
    for question in group {
        let more = question.len_bytes();
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < most && endpoint.has_room_for(around + bytes + more) => {
                chunk.push(question.clone());
                bytes += more;
            }
            _ => {
                chunks.push(vec![question.clone()]);
                bytes = more;
            }
        }
    }
    chunks
}

#[cfg(test)]
mod tests;
