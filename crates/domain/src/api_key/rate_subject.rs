//! The subject of a caller's rate limits.

use super::Principal;
use crate::rate::{DefaultRates, RateSubject};

impl RateSubject {
    /// Returns the rate limits of a caller, with the operator's defaults for keys and workspaces.
    pub fn of(caller: &Principal, defaults: DefaultRates) -> Self {
        match caller {
            Principal::Inference(key) => Self {
                api_key: key.id(),
                key: key.rates().or(defaults.key),
                workspace: Some((key.workspace_id(), key.workspace_rates().or(defaults.workspace))),
            },
            Principal::Management(key) => Self { api_key: key.id(), key: defaults.key, workspace: None },
        }
    }
}
