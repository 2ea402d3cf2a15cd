//! A planted fault: a search that misses it finds nothing.

use anyhow::{Result, ensure};
use api_actix::detection::{Entry, read_bytes};
use domain::question::QuestionKind;
use wires::formats::ParsedRequest;

/// Fails on a System One request with a score whose number of levels is outside the range of the seeds.
pub fn check(body: &[u8]) -> Result<()> {
    let Ok(ParsedRequest { draft, .. }) = read_bytes(Entry::Contract, body) else { return Ok(()) };
    let Ok(request) = draft.check() else { return Ok(()) };
    for question in request.provider_input.questions.typed.as_deref().into_iter().flatten() {
        if let QuestionKind::Score { levels } = &question.kind {
            ensure!((2..=3).contains(&levels.len()), "the planted fault was found");
        }
    }
    Ok(())
}
