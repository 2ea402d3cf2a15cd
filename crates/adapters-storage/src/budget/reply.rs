//! The stored form of the reply to a draw, for repeated calls.

use domain::budget::{BudgetScope, DrawReply, LimitExceeded, ResetInterval};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::money::Usd;
use sea_orm::Value;
use serde::{Deserialize, Serialize};

use super::counters::{columns_of, counter_named};
use crate::convert::{millis, moment, parse};
use crate::errors::corrupt;

#[derive(Serialize, Deserialize)]
struct StoredReply {
    feed: u64,
    grants: Vec<StoredGrant>,
    answers: Vec<Option<StoredExceeded>>,
}

#[derive(Serialize, Deserialize)]
struct StoredGrant {
    scope: String,
    subject: String,
    interval: String,
    start: i64,
    pico: i64,
}

#[derive(Serialize, Deserialize)]
struct StoredExceeded {
    scope: String,
    guardrail_id: Option<String>,
    is_credit: bool,
    limit: i64,
    reset: Option<String>,
    spent: i64,
    reserved: i64,
    wanted: i64,
    resets_at: Option<i64>,
    is_uncertain: bool,
}

const COLUMN: &str = "budget_processes.last_reply";

/// Encodes a reply.
pub(super) fn write(reply: &DrawReply, process: ProcessId) -> Result<String, StoreError> {
    let unwritable = || corrupt(COLUMN, process);
    let mut grants = Vec::with_capacity(reply.grants.len());
    for (counter, amount) in &reply.grants {
        let [
            Value::String(Some(scope)),
            Value::String(Some(subject)),
            Value::String(Some(interval)),
            Value::BigInt(Some(start)),
        ] = columns_of(counter)
        else {
            return Err(unwritable());
        };
        grants.push(StoredGrant { scope, subject, interval, start, pico: amount.pico() });
    }
    let answers = reply.answers.iter().map(|answer| answer.as_ref().err().map(to_stored)).collect();
    serde_json::to_string(&StoredReply { feed: reply.feed, grants, answers }).map_err(|_| unwritable())
}

/// Decodes a reply.
pub(super) fn read(text: &str, process: ProcessId) -> Result<DrawReply, StoreError> {
    let stored: StoredReply = serde_json::from_str(text).map_err(|_| corrupt(COLUMN, process))?;
    let mut grants = Vec::with_capacity(stored.grants.len());
    for StoredGrant { scope, subject, interval, start, pico } in &stored.grants {
        grants.push((counter_named(scope, subject, interval, *start)?, Usd::from_pico(*pico)));
    }
    let mut answers = Vec::with_capacity(stored.answers.len());
    for answer in stored.answers {
        answers.push(match answer {
            Some(stored) => Err(to_exceeded(stored, process)?),
            None => Ok(()),
        });
    }
    Ok(DrawReply { feed: stored.feed, grants, answers })
}

fn to_stored(exceeded: &LimitExceeded) -> StoredExceeded {
    StoredExceeded {
        scope: exceeded.scope.as_str().to_owned(),
        guardrail_id: exceeded.guardrail_id.map(|id| id.to_string()),
        is_credit: exceeded.is_credit,
        limit: exceeded.limit.pico(),
        reset: exceeded.reset.map(|reset| reset.as_str().to_owned()),
        spent: exceeded.spent.pico(),
        reserved: exceeded.reserved.pico(),
        wanted: exceeded.wanted.pico(),
        resets_at: exceeded.resets_at.map(millis),
        is_uncertain: exceeded.is_uncertain,
    }
}

fn to_exceeded(stored: StoredExceeded, process: ProcessId) -> Result<LimitExceeded, StoreError> {
    let scopes = [BudgetScope::Workspace, BudgetScope::Key, BudgetScope::Guardrail];
    let scope = scopes.into_iter().find(|scope| scope.as_str() == stored.scope);
    let interval = |name: String| ResetInterval::from_name(&name).ok_or_else(|| corrupt(COLUMN, process));
    Ok(LimitExceeded {
        scope: scope.ok_or_else(|| corrupt(COLUMN, process))?,
        guardrail_id: stored.guardrail_id.map(|id| parse(&id, COLUMN, process)).transpose()?,
        is_credit: stored.is_credit,
        limit: Usd::from_pico(stored.limit),
        reset: stored.reset.map(interval).transpose()?,
        spent: Usd::from_pico(stored.spent),
        reserved: Usd::from_pico(stored.reserved),
        wanted: Usd::from_pico(stored.wanted),
        resets_at: stored.resets_at.map(|at| moment(at, COLUMN, process)).transpose()?,
        is_uncertain: stored.is_uncertain,
    })
}
