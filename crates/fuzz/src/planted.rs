//! A fault that is there on purpose: whoever searches and does not find it is blind.

use anyhow::{Result, ensure};
use api_actix::wires::dispatch::{Asked, Entry, read_bytes};
use domain::decision::QuestionKind;

/// Fails on a System One request that has, beside whatever else, a score of more levels than any seed has, or fewer.
pub fn check(body: &[u8]) -> Result<()> {
    let Ok(Asked { draft, .. }) = read_bytes(Entry::Contract, body) else { return Ok(()) };
    let Ok(request) = draft.check() else { return Ok(()) };
    for question in request.provider_input.questions.typed.iter().flatten() {
        if let QuestionKind::Score { levels } = &question.kind {
            ensure!((2..=3).contains(&levels.len()), "the planted fault was found");
        }
    }
    Ok(())
}
