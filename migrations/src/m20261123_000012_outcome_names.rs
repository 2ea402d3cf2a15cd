//! New names for outcomes of attempts and sources of token counts.
//!
//! `broken` had three causes. The stored attempt decides: a 2xx status or a reported usage is an invalid response, any
//! other status an HTTP error, and no status a failed connection. A trace in the outbox contains several attempts in
//! one text, so the first matching rule applies to all of them.
//!
//! `reported` was also used for attempts without token counts; these become `none`. The reverse migration merges the
//! names.

use sea_orm_migration::prelude::*;

use crate::older_data::holds_older_data;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const RECORDS: &str = "usage_records";

/// Outcomes that only change their name.
const OUTCOMES: [(&str, &str); 4] = [
    ("unauthorised", "provider_auth_failed"),
    ("refused", "rejected_by_provider"),
    ("not_answered", "no_usable_answer"),
    ("caller_gone", "client_disconnected"),
];
/// Selects rows with an explicit outcome or source. Most rows omit the usual values.
const NAMES_SOMETHING: &str = "token_source IS NOT NULL OR outcome <> 'completed' OR attempts LIKE '%\"r\"%' OR \
                               attempts LIKE '%\"t\"%' OR attempts LIKE '%\"outcome\"%'";
/// The new names for `broken`.
const BROKEN: [&str; 2] = ["http_error", "invalid_response"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let renamed = "CASE token_source WHEN 'bound' THEN 'upper_bound' ELSE token_source END";
        let unused = "token_source IS NULL AND outcome <> 'completed' AND input_tokens = 0 AND output_tokens = 0";
        rewrite(
            manager,
            &format!(
                "UPDATE {RECORDS} SET attempts = {}, token_source = CASE WHEN {unused} THEN 'none' ELSE {renamed} END \
                 WHERE {NAMES_SOMETHING}",
                attempts(&renamed_attempt())
            ),
        )
        .await?;
        run(manager, &format!("ALTER TABLE {RECORDS} RENAME COLUMN token_source TO usage_source")).await?;
        rewrite_payloads(manager, upgraded_payload()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        rewrite_payloads(manager, downgraded_payload()).await?;
        run(manager, &format!("ALTER TABLE {RECORDS} RENAME COLUMN usage_source TO token_source")).await?;
        let source = "CASE token_source WHEN 'upper_bound' THEN 'bound' WHEN 'none' THEN NULL ELSE token_source END";
        rewrite(
            manager,
            &format!(
                "UPDATE {RECORDS} SET attempts = {}, token_source = {source} WHERE {NAMES_SOMETHING}",
                attempts(&former_attempt())
            ),
        )
        .await
    }
}

/// Returns the column of attempts with each element replaced. A column that is no array of objects stays unchanged.
fn attempts(element: &str) -> String {
    format!(
        "CASE WHEN NOT json_valid(attempts) THEN attempts WHEN json_type(attempts) <> 'array' \
         OR EXISTS (SELECT 1 FROM json_each(attempts) WHERE type <> 'object') THEN attempts \
         ELSE (SELECT json_group_array(json({element})) FROM json_each(attempts) AS attempt) END"
    )
}

/// Returns a member of an attempt, by its short name or by the long one of older rows.
fn member(short: &str, long: &str) -> String {
    format!("COALESCE(json_extract(attempt.value, '$.{short}'), json_extract(attempt.value, '$.{long}'))")
}

fn outcome() -> String {
    member("r", "outcome")
}

fn source() -> String {
    member("t", "token_source")
}

/// Returns whether the tokens of an attempt were counted. Omitted members are those of the record for the answered
/// attempt, else zero.
fn is_counted() -> String {
    format!("(COALESCE({}, 0) > 0 OR COALESCE({}, 0) > 0)", member("i", "input_tokens"), member("o", "output_tokens"))
}

/// Returns the attempt with its outcome and source renamed. Omitted members follow from the record.
fn renamed_attempt() -> String {
    let (outcome, source, status) = (outcome(), source(), member("s", "upstream_status"));
    let is_reported = format!("COALESCE({source}, {RECORDS}.token_source, 'reported') = 'reported'");
    let is_counted = is_counted();
    let broken = format!(
        "CASE WHEN {status} BETWEEN 200 AND 299 THEN 'invalid_response' WHEN {status} IS NOT NULL THEN 'http_error' \
         WHEN {is_reported} AND {is_counted} THEN 'invalid_response' ELSE 'connect_error' END"
    );
    let names: String = OUTCOMES.map(|(from, to)| format!("WHEN '{from}' THEN '{to}' ")).concat();
    let renamed = format!("CASE {outcome} WHEN 'broken' THEN {broken} {names}ELSE {outcome} END");
    let is_unused =
        format!("COALESCE({outcome}, {RECORDS}.outcome) <> 'completed' AND {is_reported} AND NOT {is_counted}");
    let new_source =
        format!("CASE WHEN {is_unused} THEN 'none' WHEN {source} = 'bound' THEN 'upper_bound' ELSE {source} END");
    let with_outcome = replaced("attempt.value", ["r", "outcome"], &renamed);
    // An omitted member is added only if it no longer follows from the record.
    let key = "CASE WHEN json_type(attempt.value, '$.latency_us') IS NULL THEN '$.t' ELSE '$.token_source' END";
    format!(
        "CASE WHEN {is_unused} THEN json_set({with_outcome}, {key}, 'none') ELSE {} END",
        replaced(&with_outcome, ["t", "token_source"], &new_source)
    )
}

/// The inverse of [`renamed_attempt`].
fn former_attempt() -> String {
    let (outcome, source) = (outcome(), source());
    let names: String = OUTCOMES.map(|(from, to)| format!("WHEN '{to}' THEN '{from}' ")).concat();
    let broken = BROKEN.map(|name| format!("WHEN '{name}' THEN 'broken' ")).concat();
    let former = format!("CASE {outcome} {names}{broken}ELSE {outcome} END");
    let former_source =
        format!("CASE {source} WHEN 'upper_bound' THEN 'bound' WHEN 'none' THEN 'reported' ELSE {source} END");
    replaced(&replaced("attempt.value", ["r", "outcome"], &former), ["t", "token_source"], &former_source)
}

/// Replaces a member under either of its names, if it exists.
fn replaced(object: &str, [short, long]: [&str; 2], value: &str) -> String {
    format!("json_replace({object}, '$.{short}', {value}, '$.{long}', {value})")
}

/// Rewrites the traces in the outbox.
async fn rewrite_payloads(manager: &SchemaManager<'_>, steps: Vec<String>) -> Result<(), DbErr> {
    for payload in steps {
        let traces = "payload LIKE '%\"tollgate.attempt.outcome\"%'";
        rewrite(manager, &format!("UPDATE outbox SET payload = {payload} WHERE {traces}")).await?;
    }
    Ok(())
}

/// Returns a span attribute as encoded in a payload. Quotes in texts of callers are escaped, so they never match.
fn attribute(key: &str, value: &str) -> String {
    format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}")
}

fn substitute(payload: &str, from: &str, to: &str) -> String {
    format!("replace({payload}, '{from}', '{to}')")
}

/// Replaces an outcome everywhere in a payload. `to` is an SQL expression.
fn payload_outcome(from: &str, to: &str) -> String {
    let marker = "@outcome@";
    let mut payload = "payload".to_owned();
    for form in [
        attribute("tollgate.attempt.outcome", marker),
        attribute("error.type", marker),
        format!("\"status\":{{\"code\":2,\"message\":\"{marker}\"}}"),
        format!("\"message\":\"every attempt failed; the last one: {marker}\""),
    ] {
        let old = form.replace(marker, from);
        let (before, after) = form.split_once(marker).unwrap_or((&form, ""));
        payload = format!("replace({payload}, '{old}', '{before}' || {to} || '{after}')");
    }
    payload
}

/// Returns the sequential expressions that upgrade a payload: nested in one they would exceed the parser's depth.
fn upgraded_payload() -> Vec<String> {
    let ok = "'%\"http.response.status_code\",\"value\":{\"intValue\":\"200\"%'";
    let any = "'%\"http.response.status_code\"%'";
    let broken = format!(
        "CASE WHEN payload LIKE {ok} THEN 'invalid_response' WHEN payload LIKE {any} THEN 'http_error' \
         ELSE 'connect_error' END"
    );
    let mut steps = vec![payload_outcome("broken", &broken)];
    steps.extend(OUTCOMES.map(|(from, to)| payload_outcome(from, &format!("'{to}'"))));
    for (old, new) in SOURCE_KEYS {
        let bound = substitute("payload", &attribute(old, "bound"), &attribute(new, "upper_bound"));
        steps.push(substitute(&bound, &attribute(old, "reported"), &attribute(new, "reported")));
    }
    steps
}

/// The inverse of [`upgraded_payload`].
fn downgraded_payload() -> Vec<String> {
    let mut steps: Vec<String> = BROKEN.map(|name| payload_outcome(name, "'broken'")).into();
    steps.extend(OUTCOMES.map(|(from, to)| payload_outcome(to, &format!("'{from}'"))));
    for (old, new) in SOURCE_KEYS {
        for (from, to) in [("upper_bound", "bound"), ("reported", "reported"), ("none", "reported")] {
            steps.push(substitute("payload", &attribute(new, from), &attribute(old, to)));
        }
    }
    steps
}

/// The attributes of sources, before and after.
const SOURCE_KEYS: [(&str, &str); 2] = [
    ("tollgate.token_source", "tollgate.usage_source"),
    ("tollgate.attempt.token_source", "tollgate.attempt.usage_source"),
];

/// Changes existing rows.
async fn rewrite(manager: &SchemaManager<'_>, statement: &str) -> Result<(), DbErr> {
    if holds_older_data(manager) { run(manager, statement).await } else { Ok(()) }
}

async fn run(manager: &SchemaManager<'_>, statement: &str) -> Result<(), DbErr> {
    manager.get_connection().execute_unprepared(statement).await.map(drop)
}
