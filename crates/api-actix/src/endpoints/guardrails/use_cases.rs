//! The use cases of guardrails.

use std::sync::Arc;

use domain::decision::ExplainGuardrail;
use domain::guardrail::{
    CreateGuardrail, DeleteGuardrail, GetGuardrail, GetGuardrailVersion, GuardrailAssignments, GuardrailPorts,
    ListAssignedKeys, ListGuardrailVersions, ListGuardrails, RemoveKeysFromGuardrail, RestoreGuardrailVersion,
    UpdateGuardrail,
};

/// The use cases of guardrails except key assignment, which is an operation of the contract.
pub struct GuardrailUseCases {
    pub(super) create: CreateGuardrail,
    pub(super) list: ListGuardrails,
    pub(super) get: GetGuardrail,
    pub(super) update: UpdateGuardrail,
    pub(super) delete: DeleteGuardrail,
    pub(super) list_versions: ListGuardrailVersions,
    pub(super) get_version: GetGuardrailVersion,
    pub(super) restore_version: RestoreGuardrailVersion,
    pub(super) explain: ExplainGuardrail,
    pub(super) list_assigned_keys: ListAssignedKeys,
    pub(super) remove_keys: RemoveKeysFromGuardrail,
}

impl GuardrailUseCases {
    /// Creates the use cases over their ports.
    pub fn new(ports: &GuardrailPorts, assignments: &Arc<dyn GuardrailAssignments>, explain: ExplainGuardrail) -> Self {
        Self {
            create: CreateGuardrail::new(ports.clone()),
            list: ListGuardrails::new(ports.clone()),
            get: GetGuardrail::new(ports.clone()),
            update: UpdateGuardrail::new(ports.clone()),
            delete: DeleteGuardrail::new(ports.clone()),
            list_versions: ListGuardrailVersions::new(ports.clone()),
            get_version: GetGuardrailVersion::new(ports.clone()),
            restore_version: RestoreGuardrailVersion::new(ports.clone()),
            explain,
            list_assigned_keys: ListAssignedKeys::new(Arc::clone(assignments)),
            remove_keys: RemoveKeysFromGuardrail::new(Arc::clone(assignments)),
        }
    }
}
