//! The audit view of a destination, without secrets and values that may hold one.

use crate::audit::{Actor, AuditDraft};
use crate::ids::DestinationId;
use crate::json::Json;
use crate::observability::Destination;

/// Returns the audit entry of a change; `before` is `None` for a creation, `after` for a deletion.
pub(super) fn audited(
    actor: &Actor,
    action: &'static str,
    id: DestinationId,
    before: Option<&Destination>,
    after: Option<&Destination>,
) -> AuditDraft {
    let mut members = Vec::new();
    for (name, side) in [("before", before), ("after", after)] {
        members.extend(side.map(|side| (name, view(side))));
    }
    if let (Some(before), Some(after)) = (before, after) {
        // Members that are not shown may differ as well.
        let changed =
            before.url != after.url || before.headers != after.headers || before.signing_secret != after.signing_secret;
        members.push(("config_changed", flag(changed)));
    }
    let details = Json::object(members.iter().map(|(name, json)| (*name, json.text())));
    AuditDraft::done(actor, action, format!("destination {id}"), details)
}

fn view(destination: &Destination) -> Json {
    let headers: Vec<Json> = destination.headers.iter().map(|(name, _)| Json::string(name)).collect();
    let keys = destination.api_key_ids.as_ref().map(|ids| {
        let ids: Vec<Json> = ids.iter().map(|id| Json::string(&id.to_string())).collect();
        Json::array(ids.iter().map(Json::text))
    });
    let rate = destination.sampling_rate();
    Json::object([
        ("workspace_id", Json::string(&destination.workspace_id.to_string()).text()),
        ("name", Json::string(&destination.name).text()),
        ("type", Json::string(destination.kind.as_str()).text()),
        ("origin", Json::string(destination.origin()).text()),
        ("headers", Json::array(headers.iter().map(Json::text)).text()),
        ("signed", flag(destination.signing_secret.is_some()).text()),
        ("enabled", flag(destination.enabled).text()),
        ("privacy_mode", flag(destination.privacy_mode).text()),
        ("sampling_rate", rate.as_str()),
        ("api_key_ids", keys.as_ref().map_or("null", Json::text)),
    ])
}

fn flag(value: bool) -> Json {
    Json::from(serde_json::Value::from(value))
}
