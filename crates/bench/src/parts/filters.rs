//! Content filters over a megabyte of text, in this process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use domain::decision::DecisionDraft;
use domain::guardrail::filter::CompiledFilters;
use domain::guardrail::{BuiltinContentFilter, BuiltinFilter, ContentFilter, GuardrailRules};
use domain::ids::GuardrailId;
use domain::json::Json;
use domain::question::ProviderInput;
use domain::usage::FilterAction;

use super::bench::Bench;
use crate::clock::now;
use crate::report::{Bound, Figure};
use crate::statistics::median;

/// The maximum time for a megabyte.
const MOST_MS: f64 = 50.0;
const MEGABYTE: usize = 1_000_000;

/// Measures each built-in filter alone, ten custom patterns, and all of them together.
pub fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let prose = provider_input("The parcel came on Tuesday, two days late, and the box was torn on one side. ")?;
    let busy = provider_input("Write to ann@example.com or 10.0.0.7, card 4111 1111 1111 1111, on +1 415 555 0132. ")?;
    let mut figures = Vec::new();
    let mut sets: Vec<(String, GuardrailRules)> = BuiltinFilter::ALL
        .into_iter()
        .map(|slug| (slug.as_str().to_owned(), GuardrailRules { content_filter_builtins: vec![flag(slug)], ..none() }))
        .collect();
    sets.push(("ten patterns".to_owned(), GuardrailRules { content_filters: patterns(), ..none() }));
    let all = BuiltinFilter::ALL.map(flag).to_vec();
    let every = GuardrailRules { content_filter_builtins: all, content_filters: patterns(), ..none() };
    sets.push(("everything".to_owned(), every));
    for (name, rules) in sets {
        let id = GuardrailId::from_uuid(uuid::Uuid::from_u128(1));
        let filters = CompiledFilters::compile([(id, &rules)].into_iter()).with_context(|| name.clone())?;
        for (text, provider_input) in [("prose", &prose), ("full of matches", &busy)] {
            let mut took = Vec::new();
            for _ in 0..bench.rounds.max(3) {
                let began = now();
                std::hint::black_box(filters.apply(provider_input).map_err(|blocked| anyhow::anyhow!(blocked.label))?);
                took.push(milliseconds(began.elapsed()));
            }
            let figure = Figure::single(format!("1 MB of {text} under {name}"), "ms", median(&took));
            figures.push(figure.with_bound(Bound::AtMost(MOST_MS)));
        }
    }
    Ok(figures)
}

fn none() -> GuardrailRules {
    GuardrailRules::default()
}

fn flag(slug: BuiltinFilter) -> BuiltinContentFilter {
    BuiltinContentFilter::new(slug, FilterAction::Redact)
}

fn patterns() -> Vec<ContentFilter> {
    let patterns = [
        r"\bPRJ-\d{4,8}\b",
        "(?i)internal use only",
        r"(?i)\bcodename\s+\w+",
        r"\bcustomer[- ]?id\s*[:=]\s*\d+",
        r"(?i)\b(top|strictly)\s+secret\b",
        r"\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b",
        r"\b\d{2}/\d{2}/\d{4}\b",
        r"(?i)\bacme\s+(corp|inc|gmbh)\b",
        r"\bhttps?://intranet\.\S+",
        r"(a+)+b{3}",
    ];
    let filter = |pattern: &str| ContentFilter { pattern: pattern.to_owned(), action: FilterAction::Flag, label: None };
    patterns.map(filter).to_vec()
}

/// Returns a megabyte of one sentence, in a thousand strings.
fn provider_input(sentence: &str) -> Result<Arc<ProviderInput>> {
    let text = sentence.repeat(1_000 / sentence.len() + 1);
    let texts: Vec<String> = (0..MEGABYTE / text.len()).map(|_| Json::string(&text).text().to_owned()).collect();
    let draft = DecisionDraft {
        model: Some(Json::string("bench/decider")),
        questions: Some(Json::parse(r#"{"refund":{"type":"noul","instructions":"Is a refund asked for?"}}"#)?),
        state: Some(Json::array(texts.iter().map(String::as_str))),
        ..DecisionDraft::default()
    };
    Ok(draft.check()?.provider_input)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
