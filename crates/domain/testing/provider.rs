//! Fakes of providers, client connections and media types.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::system::lock;
use crate::decision::{ClientConnection, DecisionProvider, ProviderAnswer, ProviderCall};
use crate::question::ProviderInput;
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint};

/// A provider that answers from a list, in order, and records its calls. After the end of the list it fails. Clones
/// share the list and the calls.
#[derive(Clone, Default)]
pub struct ScriptedProvider {
    script: Arc<Mutex<VecDeque<Result<ProviderAnswer, AttemptFailure>>>>,
    calls: Arc<Mutex<Vec<ProviderCall>>>,
}

impl ScriptedProvider {
    /// Creates a provider with these answers, in order.
    pub fn new(script: impl IntoIterator<Item = Result<ProviderAnswer, AttemptFailure>>) -> Self {
        Self { script: Arc::new(Mutex::new(script.into_iter().collect())), calls: Arc::default() }
    }

    /// Returns all calls so far.
    pub fn calls(&self) -> Vec<ProviderCall> {
        lock(&self.calls).clone()
    }
}

#[async_trait]
impl DecisionProvider for ScriptedProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        // The kept call must not keep the place of its client.
        let client = Arc::new(AlreadyDisconnected);
        lock(&self.calls).push(ProviderCall { client, ..call });
        let next = lock(&self.script).pop_front();
        next.unwrap_or_else(|| Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "the script has ended")))
    }

    /// Returns the size of the provider input, without regard to the script.
    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        u64::try_from(provider_input.len_bytes()).unwrap_or(u64::MAX)
    }
}

/// A client that has disconnected already.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlreadyDisconnected;

#[async_trait]
impl ClientConnection for AlreadyDisconnected {
    async fn disconnected(&self) {}
}
