//! Content filters on requests: a redacted request is still valid and contains nothing more to redact.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use api_actix::detection::{Entry, read_bytes};
use domain::guardrail::filter::CompiledFilters;
use domain::guardrail::{BuiltinContentFilter, BuiltinFilter, ContentFilter, GuardrailRules};
use domain::json::Json;
use domain::usage::FilterAction;
use wires::formats::ParsedRequest;

use crate::answers::check_unique_members;
use crate::requests;

/// Compiles every built-in filter, and patterns with adjacent matches.
fn compiled(action: FilterAction) -> Option<CompiledFilters> {
    let patterns = ["type", "[0-9]+", r"\bs\w*", "(?s)x.*y", "é|\"|\\\\", "[A-Z]{2,}"];
    let custom = |pattern: &&str| ContentFilter { pattern: (*pattern).to_owned(), action, label: None };
    let rules = GuardrailRules {
        content_filters: patterns.iter().map(custom).collect(),
        content_filter_builtins: BuiltinFilter::ALL.map(|slug| BuiltinContentFilter::new(slug, action)).to_vec(),
        ..GuardrailRules::default()
    };
    let id = "00000000-0000-7000-8000-000000000001".parse().ok()?;
    CompiledFilters::compile([(id, &rules)].into_iter()).ok()
}

static FLAGGING: LazyLock<Option<CompiledFilters>> = LazyLock::new(|| compiled(FilterAction::Flag));
static REDACTING: LazyLock<Option<CompiledFilters>> = LazyLock::new(|| compiled(FilterAction::Redact));

/// Reads a body by the contract's entry and filters it.
///
/// # Errors
/// The violated property.
pub fn check(body: &[u8]) -> Result<()> {
    let Ok(ParsedRequest { draft, .. }) = read_bytes(Entry::Contract, body) else { return Ok(()) };
    let Ok(request) = draft.check() else { return Ok(()) };
    let flagging = FLAGGING.as_ref().context("filters that do not compile")?;
    let flagged = flagging.apply(&request.provider_input).context("a filter that flags blocks")?;
    ensure!(flagged.provider_input == request.provider_input, "a filter that flags changes something");
    let redacting = REDACTING.as_ref().context("filters that do not compile")?;
    let Ok(redacted) = redacting.apply(&request.provider_input) else { return Ok(()) };
    if redacted.findings.is_empty() {
        ensure!(redacted.provider_input == request.provider_input, "something is changed where nothing was found");
    }
    for json in
        [Some(&redacted.provider_input.questions.json), redacted.provider_input.state.as_ref()].into_iter().flatten()
    {
        Json::parse(json.text()).context("what is redacted is no JSON")?;
    }
    if redacted.provider_input.questions.typed.is_some() {
        check_unique_members(&redacted.provider_input.questions.json)?;
    }
    let again = redacting.apply(&redacted.provider_input).context("what was redacted is blocked")?;
    ensure!(again.provider_input == redacted.provider_input, "what was redacted is redacted again");
    requests::check_outbound(&redacted.provider_input)?;
    requests::check_answerable(&redacted.provider_input)
}
