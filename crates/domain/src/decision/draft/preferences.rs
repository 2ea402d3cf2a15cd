//! Reads the `provider` object. Documented preferences that this service does not support are rejected, not ignored.
//! Their documented defaults are accepted.

use std::borrow::Cow;

use super::path::Path;
use super::questions::DUPLICATE_MEMBER;
use crate::decision::InvalidDecision;
use crate::json::{Json, JsonKind, JsonPart, unknown_member};
use crate::money::Price;
use crate::routing::{MaxPrice, PercentileBounds, Quantization, RoutingPreferences, Sort, SortBy};

/// The documented preferences.
const KNOWN: [&str; 14] = [
    "allow_fallbacks",
    "order",
    "only",
    "ignore",
    "require_parameters",
    "data_collection",
    "zdr",
    "enforce_distillable_text",
    "quantizations",
    "sort",
    "max_price",
    "preferred_min_throughput",
    "preferred_max_latency",
    "options",
];

/// The most entries of a list.
const MAX_LIST: usize = 64;

pub(super) fn read(provider: Option<Json>) -> Result<RoutingPreferences, InvalidDecision> {
    let mut preferences = RoutingPreferences::default();
    let Some(provider) = provider else { return Ok(preferences) };
    let root = Path::Root("provider");
    let no_object = || root.fault("must be an object");
    let members = provider.as_part().iter_members().ok_or_else(no_object)?;
    let mut seen: Vec<&str> = Vec::new();
    for member in members {
        let member = member.ok_or_else(no_object)?;
        if member.value.is_null() {
            continue;
        }
        let name = &*member.name;
        // A misspelt preference must not be ignored.
        let Some(known) = KNOWN.iter().find(|known| **known == name) else {
            return Err(root.fault(unknown_member(name, KNOWN)));
        };
        let path = Path::Member(&root, name);
        if seen.contains(&name) {
            return Err(path.fault(DUPLICATE_MEMBER));
        }
        seen.push(known);
        put(&mut preferences, name, member.value, &path)?;
    }
    Ok(preferences)
}

fn put(
    preferences: &mut RoutingPreferences,
    name: &str,
    value: JsonPart<'_>,
    path: &Path<'_>,
) -> Result<(), InvalidDecision> {
    match name {
        "allow_fallbacks" => preferences.allow_fallbacks = switch(value, path)?,
        "order" => preferences.order = slugs(value, path)?,
        "only" => preferences.only = Some(slugs(value, path)?),
        "ignore" => preferences.ignore = slugs(value, path)?,
        "require_parameters" => preferences.require_parameters = switch(value, path)?,
        "zdr" => preferences.zdr = switch(value, path)?,
        "data_collection" => {
            preferences.deny_data_collection = match value.as_str().as_deref() {
                Some("allow") => false,
                Some("deny") => true,
                _ => return Err(path.fault("must be allow or deny")),
            };
        }
        "quantizations" => preferences.quantizations = Some(quantizations(value, path)?),
        "sort" => preferences.sort = Some(sort(value, path)?),
        "max_price" => preferences.max_price = max_price(value, path)?,
        "preferred_max_latency" => preferences.preferred_max_latency = bounds(value, path)?,
        "preferred_min_throughput" => preferences.preferred_min_throughput = bounds(value, path)?,
        // No provider data says which text may be distilled, so only the default is supported.
        "enforce_distillable_text" if !switch(value, path)? => {}
        "options" if value.iter_members().is_some_and(|mut members| members.next().is_none()) => {}
        _ => return Err(path.fault("is not supported by this service; leave it out")),
    }
    Ok(())
}

fn switch(value: JsonPart<'_>, path: &Path<'_>) -> Result<bool, InvalidDecision> {
    match value.kind() {
        JsonKind::Bool => Ok(value.text() == "true"),
        _ => Err(path.fault("must be a boolean")),
    }
}

/// Returns a member of an object, without a list of all members; null counts as absent.
pub(super) fn once<'a>(
    object: JsonPart<'a>,
    name: &str,
    path: &Path<'_>,
) -> Result<Option<JsonPart<'a>>, InvalidDecision> {
    let mut found = object.iter_members().into_iter().flatten().flatten().filter(|member| member.name == name);
    let first = found.next();
    if found.next().is_some() {
        return Err(Path::Member(path, name).fault(DUPLICATE_MEMBER));
    }
    Ok(first.map(|member| member.value).filter(|value| !value.is_null()))
}

fn strings(value: JsonPart<'_>, path: &Path<'_>) -> Result<Vec<String>, InvalidDecision> {
    let fault = || path.fault("must be an array of non-empty strings");
    if value.iter_elements().nth(MAX_LIST).is_some() {
        return Err(path.fault(format!("must have at most {MAX_LIST} entries")));
    }
    let read = |json: JsonPart<'_>| {
        let text = json.as_str().filter(|text| !text.is_empty() && text.len() <= 128);
        text.map(Cow::into_owned).ok_or_else(fault)
    };
    value.elements().ok_or_else(fault)?.into_iter().map(read).collect()
}

/// Reads provider slugs, ignoring case.
fn slugs(value: JsonPart<'_>, path: &Path<'_>) -> Result<Vec<String>, InvalidDecision> {
    Ok(strings(value, path)?.into_iter().map(|slug| slug.to_ascii_lowercase()).collect())
}

fn quantizations(value: JsonPart<'_>, path: &Path<'_>) -> Result<Vec<Quantization>, InvalidDecision> {
    let known = || Quantization::ALL.map(Quantization::as_str).join(", ");
    strings(value, path)?
        .iter()
        .map(|name| Quantization::from_name(name))
        .collect::<Option<_>>()
        .ok_or_else(|| path.fault(format!("must hold some of {}", known())))
}

/// Checks the names of an object's members: a misspelt bound must not be ignored.
fn check_names(object: JsonPart<'_>, known: &[&str], path: &Path<'_>) -> Result<(), InvalidDecision> {
    let mut members = object.iter_members().into_iter().flatten().flatten();
    match members.find(|member| !member.value.is_null() && !known.contains(&&*member.name)) {
        Some(unknown) => Err(path.fault(unknown_member(&unknown.name, known.iter().copied()))),
        None => Ok(()),
    }
}

/// Reads a metric, or an object with `by` and `partition`.
fn sort(value: JsonPart<'_>, path: &Path<'_>) -> Result<Sort, InvalidDecision> {
    let by = |value: Option<JsonPart<'_>>, path: &Path<'_>| match value.and_then(JsonPart::as_str).as_deref() {
        Some("price") => Ok(SortBy::Price),
        Some("latency") => Ok(SortBy::Latency),
        Some("throughput") => Ok(SortBy::Throughput),
        _ => Err(path.fault("must be price, latency or throughput")),
    };
    if value.kind() != JsonKind::Object {
        return Ok(Sort { by: by(Some(value), path)?, across_models: false });
    }
    check_names(value, &["by", "partition"], path)?;
    let within = once(value, "by", path)?;
    let partition = once(value, "partition", path)?;
    let across_models = match partition.map(JsonPart::as_str) {
        None => false,
        Some(Some(name)) if name == "model" => false,
        Some(Some(name)) if name == "none" => true,
        Some(_) => return Err(Path::Member(path, "partition").fault("must be model or none")),
    };
    Ok(Sort { by: by(within, &Path::Member(path, "by"))?, across_models })
}

/// Reads USD per million tokens, as a number or a numeric string. Exact: the value is never converted to a float.
fn max_price(value: JsonPart<'_>, path: &Path<'_>) -> Result<MaxPrice, InvalidDecision> {
    if value.kind() != JsonKind::Object {
        return Err(path.fault("must be an object of prices"));
    }
    check_names(value, &["prompt", "completion", "request", "image", "audio"], path)?;
    let price = |name: &str| {
        let Some(json) = once(value, name, path)? else { return Ok(None) };
        let text = if json.kind() == JsonKind::Number { Some(Cow::Borrowed(json.text())) } else { json.as_str() };
        let price = text.and_then(|text| text.parse::<Price>().ok()).filter(|price| !price.is_variable());
        price.map(Some).ok_or_else(|| Path::Member(path, name).fault("must be a decimal number of USD, zero or more"))
    };
    // Requests, images and audio are not charged separately, so bounds on them always hold: only their form is checked.
    for free in ["request", "image", "audio"] {
        price(free)?;
    }
    Ok(MaxPrice { prompt: price("prompt")?, completion: price("completion")? })
}

/// Reads a number, which bounds the median, or an object of percentiles: seconds, or tokens per second.
fn bounds(value: JsonPart<'_>, path: &Path<'_>) -> Result<PercentileBounds, InvalidDecision> {
    let thousandths = |json: JsonPart<'_>, path: &Path<'_>| {
        let number = json.as_f64().filter(|number| number.is_finite() && (0.0..=1e9).contains(number));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the line above")]
        let scaled = number.map(|number| (number * 1000.0).round() as u64);
        scaled.ok_or_else(|| path.fault("must be a number, zero or more"))
    };
    if value.kind() != JsonKind::Object {
        return Ok(PercentileBounds { p50: Some(thousandths(value, path)?), ..PercentileBounds::default() });
    }
    check_names(value, &["p50", "p75", "p90", "p99"], path)?;
    let percentile = |name: &str| {
        let bound = once(value, name, path)?;
        bound.map(|json| thousandths(json, &Path::Member(path, name))).transpose()
    };
    Ok(PercentileBounds {
        p50: percentile("p50")?,
        p75: percentile("p75")?,
        p90: percentile("p90")?,
        p99: percentile("p99")?,
    })
}
