//! The questions and answers of a request, for destinations that may receive content.

use domain::decision::TraceContent;
use domain::json::Json;

use super::attributes::{Attributes, json_string, truncate};

/// Most bytes of the input, and of the output.
const MAX_CONTENT_BYTES: usize = 256 * 1024;

pub(super) fn add(attributes: &mut Attributes, exchange: &TraceContent<'_>) {
    let questions = exchange.provider_input.questions.json.text();
    let state = exchange.provider_input.state.as_ref().map_or("null", Json::text);
    let (asked, is_cut) = joined(&["{\"state\":", state, ",\"questions\":", questions, "}"]);
    attributes.text("gen_ai.input.messages", &message("user", &asked, None));
    if is_cut {
        attributes.flag("tollgate.input.truncated", true);
    }
    if let Some(answers) = exchange.answers {
        let (answered, is_cut) = joined(&[answers.text()]);
        attributes.text("gen_ai.output.messages", &message("assistant", &answered, Some("stop")));
        if is_cut {
            attributes.flag("tollgate.output.truncated", true);
        }
    }
}

/// Concatenates texts up to the limit; also returns whether they were truncated.
fn joined(texts: &[&str]) -> (String, bool) {
    let mut whole = String::new();
    for text in texts {
        let left = MAX_CONTENT_BYTES - whole.len();
        if text.len() > left {
            whole.push_str(truncate(text, left));
            return (whole, true);
        }
        whole.push_str(text);
    }
    (whole, false)
}

/// Returns a list of one message in the format of the conventions. It stays valid JSON if the content is truncated.
fn message(role: &str, content: &str, finish_reason: Option<&str>) -> String {
    let reason = finish_reason.map(|reason| format!(",\"finish_reason\":\"{reason}\"")).unwrap_or_default();
    format!("[{{\"role\":\"{role}\",\"parts\":[{{\"type\":\"text\",\"content\":{}}}]{reason}}}]", json_string(content))
}
