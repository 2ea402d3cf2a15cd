//! The subject of a caller's rate limits.

use super::Principal;
use crate::rate::{RateLimits, RateSubject};

impl RateSubject {
    /// A caller, with the operator's defaults for keys and workspaces.
    pub fn of(caller: &Principal, key_defaults: RateLimits, workspace_defaults: RateLimits) -> Self {
        match caller {
            Principal::Inference(key) => Self {
                api_key: key.hash(),
                key: key.rates().or(key_defaults),
                workspace: Some((key.workspace_id(), key.workspace_rates().or(workspace_defaults))),
            },
            Principal::Management(key) => Self { api_key: key.hash(), key: key_defaults, workspace: None },
        }
    }
}
