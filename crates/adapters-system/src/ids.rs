//! Ids that sort by creation time.

use domain::ids::{
    ApiKeyId, DecisionId, DestinationId, DocumentId, GuardrailId, OutboxId, ProcessId, RequestId, WorkspaceId,
};
use domain::system::IdGenerator;
use uuid::Uuid;

/// Creates ids from UUIDv7.
#[derive(Debug, Clone, Copy, Default)]
pub struct UuidV7Ids;

#[expect(clippy::disallowed_methods, reason = "this is the one place that makes ids")]
fn fresh() -> Uuid {
    Uuid::now_v7()
}

impl IdGenerator for UuidV7Ids {
    fn workspace_id(&self) -> WorkspaceId {
        WorkspaceId::from_uuid(fresh())
    }

    fn api_key_id(&self) -> ApiKeyId {
        ApiKeyId::from_uuid(fresh())
    }

    fn guardrail_id(&self) -> GuardrailId {
        GuardrailId::from_uuid(fresh())
    }

    fn document_id(&self) -> DocumentId {
        DocumentId::from_uuid(fresh())
    }

    fn decision_id(&self) -> DecisionId {
        DecisionId::from_uuid(fresh())
    }

    fn process_id(&self) -> ProcessId {
        ProcessId::from_uuid(fresh())
    }

    fn request_id(&self) -> RequestId {
        RequestId::from_uuid(fresh())
    }

    fn destination_id(&self) -> DestinationId {
        DestinationId::from_uuid(fresh())
    }

    fn outbox_id(&self) -> OutboxId {
        OutboxId::from_uuid(fresh())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_sort_by_creation() {
        let made: Vec<DocumentId> = (0..10_000).map(|_| UuidV7Ids.document_id()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn ids_have_expected_format() {
        let workspace = UuidV7Ids.workspace_id();
        assert_eq!(workspace.uuid().get_version_num(), 7);
        assert_eq!(workspace.to_string().parse(), Ok(workspace));
        assert_eq!(UuidV7Ids.api_key_id().uuid().get_version_num(), 7);
        assert_eq!(UuidV7Ids.guardrail_id().uuid().get_version_num(), 7);
        let decision = UuidV7Ids.decision_id();
        assert_eq!(decision.as_str().parse(), Ok(decision.clone()));
        let request = UuidV7Ids.request_id();
        assert_eq!(request.as_str().parse(), Ok(request.clone()));
    }
}
