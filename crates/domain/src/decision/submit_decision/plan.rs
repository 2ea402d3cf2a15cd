//! Split and merge: which questions go where.

use std::sync::Arc;

use crate::decision::{Inquiry, Question};
use crate::routing::{Candidate, Endpoint, Incapable};

/// Most calls that one request is split into.
const MAX_PARTS: usize = 64;

/// Questions that are asked in one call, and who can answer all of them, in order.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) inquiry: Arc<Inquiry>,
    pub(super) candidates: Vec<Candidate>,
}

/// One part where any candidate can answer everything; it is then asked of those who can. Else the questions are
/// split: each goes to the first candidate that can answer it, in as many calls as that one's limits demand.
///
/// # Errors
/// A question that nobody can answer.
pub(super) fn plan(inquiry: &Arc<Inquiry>, candidates: &[Candidate]) -> Result<Vec<Part>, Incapable> {
    let whole: Vec<Candidate> =
        candidates.iter().filter(|candidate| fits(&candidate.endpoint, inquiry)).cloned().collect();
    if !whole.is_empty() {
        return Ok(vec![Part { inquiry: Arc::clone(inquiry), candidates: whole }]);
    }
    let Some(questions) = &inquiry.questions.typed else { return Err(Incapable::Size) };
    let mut parts = Vec::new();
    for (able, group) in groups(inquiry, questions, candidates)? {
        let able: Vec<Candidate> = able.into_iter().map(|place| candidates[place].clone()).collect();
        for questions in chunks(inquiry, group, &able[0].endpoint) {
            let inquiry = Arc::new(inquiry.with_questions(questions));
            let candidates = able.iter().filter(|candidate| fits(&candidate.endpoint, &inquiry)).cloned().collect();
            parts.push(Part { inquiry, candidates });
        }
    }
    if parts.len() > MAX_PARTS { Err(Incapable::Parts(parts.len())) } else { Ok(parts) }
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
