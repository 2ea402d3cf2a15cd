//! Split and merge: which questions go where.

use std::sync::Arc;

use crate::decision::{Inquiry, Question};
use crate::model::ModelId;
use crate::routing::{AttemptFailure, Candidate, Endpoint, Incapable};

/// Most parts that one request is split into at first. As many again may stand in for those that fail.
pub(super) const MAX_PARTS: usize = 64;

/// Questions that are asked in one call, and who can answer all of them, in order.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) inquiry: Arc<Inquiry>,
    pub(super) candidates: Vec<Candidate>,
    /// Who could answer them in smaller parts only: asked so where all candidates failed.
    pub(super) others: Vec<Candidate>,
    /// What already failed on the way to this part.
    pub(super) inherited: Vec<(Arc<Endpoint>, AttemptFailure)>,
}

impl Part {
    fn new(inquiry: Arc<Inquiry>, able: &[Candidate]) -> Self {
        let (candidates, others) = able.iter().cloned().partition(|candidate| fits(&candidate.endpoint, &inquiry));
        Self { inquiry, candidates, others, inherited: Vec::new() }
    }

    /// These come after all others.
    pub(super) fn then(mut self, candidates: &[Candidate]) -> Self {
        let after = Self::new(Arc::clone(&self.inquiry), candidates);
        self.candidates.extend(after.candidates);
        self.others.extend(after.others);
        self
    }

    /// The same questions in smaller parts, for those who could not take them together. `None` where they cannot
    /// answer all of them.
    pub(super) fn smaller(&self, failures: &[(Arc<Endpoint>, AttemptFailure)]) -> Option<Vec<Self>> {
        if self.others.is_empty() {
            return None;
        }
        let mut parts = plan(&self.inquiry, &self.others, Precedence::default()).ok()?;
        for part in &mut parts {
            part.inherited = failures.to_vec();
        }
        Some(parts)
    }
}

/// What must not be given up for an answer in fewer calls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Precedence {
    /// The caller has said which endpoint comes first, so that one is asked first even where it takes several calls and
    /// another would take one.
    pub(super) first_endpoint: bool,
    /// The candidates of all models stand in one order; otherwise a model is only asked where those before it cannot
    /// answer, in one call or in several.
    pub(super) across_models: bool,
}

/// One part where any candidate can answer everything; it is then asked of those who can. Else the questions are
/// split: each goes to the first candidate that can answer it, in as many calls as that one's limits demand.
///
/// # Errors
/// A question that nobody can answer.
pub(super) fn plan(
    inquiry: &Arc<Inquiry>,
    candidates: &[Candidate],
    precedence: Precedence,
) -> Result<Vec<Part>, Incapable> {
    let is_one_model = candidates.windows(2).all(|pair| pair[0].model == pair[1].model);
    if precedence.across_models || is_one_model {
        return plan_at_once(inquiry, candidates, precedence.first_endpoint);
    }
    let mut models: Vec<&ModelId> = Vec::new();
    for candidate in candidates {
        if !models.contains(&&candidate.model) {
            models.push(&candidate.model);
        }
    }
    let mut fault = Incapable::Size;
    for count in 1..=models.len() {
        let (near, far): (Vec<Candidate>, Vec<Candidate>) =
            candidates.iter().cloned().partition(|candidate| models[..count].contains(&&candidate.model));
        match plan_at_once(inquiry, &near, precedence.first_endpoint) {
            Ok(parts) => return Ok(parts.into_iter().map(|part| part.then(&far)).collect()),
            Err(incapable) => fault = incapable,
        }
    }
    Err(fault)
}

/// As if all candidates were of one model.
fn plan_at_once(inquiry: &Arc<Inquiry>, candidates: &[Candidate], keep_first: bool) -> Result<Vec<Part>, Incapable> {
    let Some(whole) = candidates.iter().position(|candidate| fits(&candidate.endpoint, inquiry)) else {
        return split(inquiry, candidates);
    };
    let first_takes_parts = || {
        let first = candidates.get(..1).unwrap_or_default();
        inquiry.questions.typed.as_ref().is_some_and(|questions| groups(inquiry, questions, first).is_ok())
    };
    if whole > 0 && keep_first && first_takes_parts() {
        // Too many calls are none at all: then who takes it whole comes first after all.
        if let Ok(parts) = split(inquiry, candidates) {
            return Ok(parts);
        }
    }
    Ok(vec![Part::new(Arc::clone(inquiry), candidates)])
}

/// Each question to the first candidate that can answer it.
fn split(inquiry: &Arc<Inquiry>, candidates: &[Candidate]) -> Result<Vec<Part>, Incapable> {
    let Some(questions) = &inquiry.questions.typed else { return Err(Incapable::Size) };
    let mut parts = Vec::new();
    let mut count = 0;
    for (able, group) in groups(inquiry, questions, candidates)? {
        let able: Vec<Candidate> = able.into_iter().map(|place| candidates[place].clone()).collect();
        for questions in chunks(inquiry, group, &able[0].endpoint) {
            count += 1;
            // What is refused in the end is counted and not built.
            if count <= MAX_PARTS {
                parts.push(Part::new(Arc::new(inquiry.with_questions(questions)), &able));
            }
        }
    }
    if count > MAX_PARTS { Err(Incapable::Parts(count)) } else { Ok(parts) }
}

/// Whether an endpoint can answer all of it in one call.
fn fits(endpoint: &Endpoint, inquiry: &Inquiry) -> bool {
    let typed = inquiry.questions.typed.iter().flatten();
    endpoint.limits().max_questions.is_none_or(|max| inquiry.questions.count() <= max)
        && endpoint.room_for(inquiry.len_bytes())
        && endpoint.takes(inquiry).is_ok()
        && typed.into_iter().all(|question| endpoint.can_ask(question).is_ok())
}

type Group<'a> = (Vec<usize>, Vec<&'a Question>);

/// Questions by who can answer them (places of candidates), in the order in which the first of each stands.
fn groups<'a>(
    inquiry: &Inquiry,
    questions: &'a [Question],
    candidates: &[Candidate],
) -> Result<Vec<Group<'a>>, Incapable> {
    let around = inquiry.len_bytes_around();
    let mut groups: Vec<Group<'a>> = Vec::new();
    for question in questions {
        let mut fault = Incapable::Size;
        let mut able = Vec::new();
        for (place, Candidate { endpoint, .. }) in candidates.iter().enumerate() {
            match endpoint.can_ask(question) {
                // Who takes no question at all cannot be asked in parts either.
                Ok(()) if endpoint.limits().max_questions == Some(0) => {}
                Ok(()) if endpoint.room_for(around + question.len_bytes()) => able.push(place),
                Ok(()) => {}
                Err(incapable) => fault = incapable,
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

/// Pieces of a group that an endpoint takes in one call each.
fn chunks(inquiry: &Inquiry, group: Vec<&Question>, endpoint: &Endpoint) -> Vec<Vec<Question>> {
    let around = inquiry.len_bytes_around();
    let most = endpoint.limits().max_questions.unwrap_or(usize::MAX).max(1);
    let mut chunks: Vec<Vec<Question>> = Vec::new();
    let mut bytes = 0;
    for question in group {
        let more = question.len_bytes();
        match chunks.last_mut() {
            Some(chunk) if chunk.len() < most && endpoint.room_for(around + bytes + more) => {
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
