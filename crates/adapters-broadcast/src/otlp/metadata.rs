//! The caller's own trace members, as attributes.

use domain::json::JsonKind;
use domain::observability::TraceMetadata;

use super::attributes::{Attributes, truncate};

/// Most bytes of one member.
const MAX_MEMBER_BYTES: usize = 4 * 1024;
/// Most bytes of all members.
const MAX_TOTAL_BYTES: usize = 64 * 1024;

/// Adds the members that have no predefined meaning.
pub(super) fn add(attributes: &mut Attributes, metadata: &TraceMetadata) {
    let (mut size, mut is_cut) = (0, metadata.is_truncated);
    for (name, value) in &metadata.others {
        let whole = value.as_string().unwrap_or_else(|| value.text().to_owned());
        let told = truncate(&whole, MAX_MEMBER_BYTES);
        size += name.len() + told.len();
        if size > MAX_TOTAL_BYTES || name.len() > TraceMetadata::MAX_NAME_BYTES {
            is_cut = true;
            continue;
        }
        is_cut |= told.len() < whole.len();
        let key = format!("trace.metadata.{name}");
        match value.kind() {
            JsonKind::Null => continue,
            JsonKind::Bool => attributes.flag(&key, told == "true"),
            JsonKind::Number => number(attributes, &key, told),
            JsonKind::String | JsonKind::Array | JsonKind::Object => attributes.text(&key, told),
        };
    }
    if is_cut {
        attributes.flag("tollgate.trace.truncated", true);
    }
}

/// Adds a number as the narrowest type that holds it without additional loss.
fn number<'a>(attributes: &'a mut Attributes, key: &str, text: &str) -> &'a mut Attributes {
    if let Ok(whole) = text.parse::<i64>() {
        return attributes.int(key, whole);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => attributes.double(key, text),
        _ => attributes.text(key, text),
    }
}
