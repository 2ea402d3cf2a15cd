//! Ids of records as columns: the 16 bytes of a UUID, or else the text.

use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::ids::{DecisionId, GuardrailId, RequestId, WorkspaceId};
use domain::text::hex;
use uuid::Uuid;

use crate::errors::corrupt;

/// The prefix of a text with the length of a UUID. Ids never contain such a byte.
const TEXT: u8 = 0xff;
const UUID_LENGTH: usize = 16;

/// The key of sums of all keys. No key has an empty id.
pub(crate) const ALL_KEYS: &[u8] = &[];

/// Encodes a record's id.
pub(crate) fn decision_column(id: &DecisionId) -> Vec<u8> {
    let uuid = id.as_str().strip_prefix(DecisionId::PREFIX).and_then(|digits| {
        let uuid = Uuid::try_parse(digits).ok()?;
        // Other forms of the UUID are other ids.
        let is_its_id = uuid.simple().encode_lower(&mut Uuid::encode_buffer()) == digits;
        is_its_id.then_some(uuid)
    });
    uuid.map_or_else(|| text_column(id.as_str()), |uuid| uuid.as_bytes().to_vec())
}

/// Decodes a record's id.
pub(crate) fn decision_id(column: &[u8]) -> Result<DecisionId, StoreError> {
    let id = match as_uuid(column) {
        Some(uuid) => Some(DecisionId::from_uuid(uuid)),
        None => as_text(column).and_then(|text| text.parse().ok()),
    };
    id.ok_or_else(|| corrupt("usage_records.id", display_id(column)))
}

/// Returns the column of the first id of a time: ids begin with the milliseconds of their time.
pub(crate) fn first_at(time: DateTime<Utc>) -> Vec<u8> {
    let millis = u128::try_from(time.timestamp_millis()).unwrap_or_default();
    Uuid::from_u128(millis << 80).as_bytes().to_vec()
}

/// Encodes the id of an HTTP request.
pub(super) fn request_column(id: &RequestId) -> Vec<u8> {
    match Uuid::try_parse(id.as_str()) {
        Ok(uuid) if uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == id.as_str() => {
            uuid.as_bytes().to_vec()
        }
        _ => text_column(id.as_str()),
    }
}

/// Decodes the id of an HTTP request.
pub(super) fn request_id(column: &[u8]) -> Option<RequestId> {
    match as_uuid(column) {
        Some(uuid) => Some(RequestId::from_uuid(uuid)),
        None => as_text(column)?.parse().ok(),
    }
}

/// Encodes a workspace id.
pub(crate) fn workspace_column(id: WorkspaceId) -> Vec<u8> {
    id.uuid().as_bytes().to_vec()
}

/// Decodes a workspace id.
pub(crate) fn workspace_id(column: &[u8]) -> Option<WorkspaceId> {
    as_uuid(column).map(WorkspaceId::from_uuid)
}

/// Encodes the guardrails of a record: their concatenated bytes.
pub(super) fn guardrails_column(ids: &[GuardrailId]) -> Option<Vec<u8>> {
    (!ids.is_empty()).then(|| ids.iter().flat_map(|id| *id.uuid().as_bytes()).collect())
}

/// Decodes the guardrails of a record.
pub(crate) fn guardrails(column: Option<&[u8]>) -> Option<Vec<GuardrailId>> {
    let column = column.unwrap_or_default();
    column.chunks(UUID_LENGTH).map(|bytes| as_uuid(bytes).map(GuardrailId::from_uuid)).collect()
}

/// Formats an undecodable id, for reports.
pub(crate) fn display_id(column: &[u8]) -> String {
    hex(&column[..column.len().min(32)])
}

fn text_column(text: &str) -> Vec<u8> {
    let tag = (text.len() == UUID_LENGTH).then_some(TEXT);
    tag.into_iter().chain(text.bytes()).collect()
}

fn as_uuid(column: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(column).ok()
}

fn as_text(column: &[u8]) -> Option<&str> {
    std::str::from_utf8(column.strip_prefix(&[TEXT]).unwrap_or(column)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::uuid("gen-dec-01990000000070008000000000000001", 16)]
    #[case::upper_case("gen-dec-0199000000007000800000000000000A", 40)]
    #[case::hyphens("gen-dec-01990000-0000-7000-8000-000000000001", 44)]
    #[case::short("gen-dec-a", 9)]
    #[case::as_long_as_a_uuid("gen-dec-12345678", 17)]
    fn decision_id_round_trips(#[case] id: &str, #[case] length: usize) {
        let id: DecisionId = id.parse().unwrap();
        let column = decision_column(&id);
        assert_eq!((column.len(), decision_id(&column).unwrap()), (length, id));
    }

    #[rstest]
    #[case::uuid("01990000-0000-7000-8000-000000000001", 16)]
    #[case::digits("01990000000070008000000000000001", 32)]
    #[case::as_long_as_a_uuid("1234567890123456", 17)]
    #[case::free("a.b-c_d", 7)]
    fn request_id_round_trips(#[case] id: &str, #[case] length: usize) {
        let id: RequestId = id.parse().unwrap();
        let column = request_column(&id);
        assert_eq!((column.len(), request_id(&column)), (length, Some(id)));
    }

    #[test]
    fn truncated_ids_are_rejected() {
        let ids = [GuardrailId::from_uuid(Uuid::from_u128(1)), GuardrailId::from_uuid(Uuid::from_u128(2))];
        let column = guardrails_column(&ids).unwrap();
        assert_eq!((column.len(), guardrails(Some(&column))), (32, Some(ids.to_vec())));
        assert_eq!(guardrails(Some(&column[..31])), None);
        assert_eq!((guardrails_column(&[]), guardrails(None)), (None, Some(Vec::new())));
        assert_eq!(workspace_id(&column[..15]), None);
        assert!(decision_id(b"\xffgen").is_err() && decision_id(&[]).is_err());
    }
}
