//! Fakes of what lies around Decisions and files: providers, callers, media types.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::system::lock;
use crate::decision::{ClientConnection, DecisionProvider, ProviderAnswer, ProviderCall};
use crate::file::MediaTypes;
use crate::question::ProviderInput;
use crate::routing::{AttemptFailure, AttemptFailureKind, Endpoint};

/// A provider that answers from a list, first to last, and remembers every call. Past the end of the list it is
/// broken. Clones share list and memory.
#[derive(Clone, Default)]
pub struct ScriptedProvider {
    script: Arc<Mutex<VecDeque<Result<ProviderAnswer, AttemptFailure>>>>,
    calls: Arc<Mutex<Vec<ProviderCall>>>,
}

impl ScriptedProvider {
    /// Answers so, in this order.
    pub fn new(script: impl IntoIterator<Item = Result<ProviderAnswer, AttemptFailure>>) -> Self {
        Self { script: Arc::new(Mutex::new(script.into_iter().collect())), calls: Arc::default() }
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<ProviderCall> {
        lock(&self.calls).clone()
    }
}

#[async_trait]
impl DecisionProvider for ScriptedProvider {
    async fn decide(&self, call: ProviderCall) -> Result<ProviderAnswer, AttemptFailure> {
        lock(&self.calls).push(call);
        let next = lock(&self.script).pop_front();
        next.unwrap_or_else(|| Err(AttemptFailure::new(AttemptFailureKind::InvalidResponse, "the script has ended")))
    }

    /// The provider input as it is, whatever the script says was sent.
    fn outbound_bytes(&self, _: &Endpoint, provider_input: &ProviderInput) -> u64 {
        u64::try_from(provider_input.len_bytes()).unwrap_or(u64::MAX)
    }
}

/// A caller that has left before it was asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlreadyDisconnected;

#[async_trait]
impl ClientConnection for AlreadyDisconnected {
    async fn disconnected(&self) {}
}

/// One media type for everything.
#[derive(Debug, Clone)]
pub struct FixedMediaType(pub String);

impl MediaTypes for FixedMediaType {
    fn detect(&self, _head: &[u8], _filename: &str) -> String {
        self.0.clone()
    }
}
