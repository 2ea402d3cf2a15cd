//! Traces in a plain encoding for tests.

use crate::budget::BudgetAlert;
use crate::decision::TraceContent;
use crate::json::Json;
use crate::observability::MessageEncoder;
use crate::usage::UsageRecord;

/// Encodes a trace as one JSON object: the request's id and, unless it is private, its input, answers and labels.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainMessageEncoder;

impl MessageEncoder for PlainMessageEncoder {
    fn encode(&self, record: &UsageRecord, exchange: &TraceContent<'_>) -> Json {
        let labels = exchange.labels(record);
        let input = exchange.provider_input;
        let members = [
            ("id", Some(Json::string(record.id.as_str()))),
            ("questions", Some(input.questions.json.clone())),
            ("state", input.state.clone()),
            ("answers", exchange.answers.cloned()),
            ("session_id", labels.session_id.as_deref().map(Json::string)),
            ("user", labels.user.as_deref().map(Json::string)),
            ("trace", labels.trace),
        ];
        Json::object(members.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?.text()))))
    }

    fn encode_private(&self, record: &UsageRecord) -> Json {
        Json::object([("id", Json::string(record.id.as_str()).text())])
    }

    fn encode_alert(&self, alert: &BudgetAlert) -> Json {
        Json::object([("alert", Json::string(&alert.to_string()).text())])
    }
}
