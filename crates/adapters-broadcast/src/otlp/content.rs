//! What was asked and answered, for destinations that may know.

use domain::json::Json;
use domain::observability::TraceContent;

use super::attributes::{Attributes, cut, quoted};

/// Most bytes that are told of what was asked, and of what was answered.
const MOST: usize = 256 * 1024;

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

/// The texts behind each other, as far as they fit, and whether they did not.
fn joined(texts: &[&str]) -> (String, bool) {
    let mut whole = String::new();
    for text in texts {
        let left = MOST - whole.len();
        if text.len() > left {
            whole.push_str(cut(text, left));
            return (whole, true);
        }
        whole.push_str(text);
    }
    (whole, false)
}

/// A list of one message in the form of the conventions; it is JSON whether or not its content was cut.
fn message(role: &str, content: &str, finish_reason: Option<&str>) -> String {
    let reason = finish_reason.map(|reason| format!(",\"finish_reason\":\"{reason}\"")).unwrap_or_default();
    format!("[{{\"role\":\"{role}\",\"parts\":[{{\"type\":\"text\",\"content\":{}}}]{reason}}}]", quoted(content))
}
