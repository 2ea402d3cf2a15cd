//! Content filters over an inquiry: a small one where it is asked for, a large one where nobody else has to wait for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::SubmitDecision;
use super::router::Router;
use crate::decision::{CallerPresence, Inquiry, SubmitDecisionError, Unfiltered};
use crate::guardrail::filter::{Aliases, Blocked, Filtered};
use crate::guardrail::{FilterAction, Policy};
use crate::ids::WorkspaceId;
use crate::system::{Cancelled, WorkLost, WorkOwner};

/// Bytes times filters up to which an inquiry is looked through where it is asked for: prose takes less than a millisecond
/// under all filters that come with the service, the worst text that was found, and a pattern that matches everywhere,
/// some three.
const PROMPT: usize = 128 << 10;
/// As how many filters fewer ones count: one alone may match everywhere.
const FEWEST: usize = 8;

/// What filters made of an inquiry.
type Sifted = Result<Filtered, Blocked>;

impl Router {
    /// What of an inquiry may be sent. Where the caller leaves or the deadline passes, its end is not waited for.
    pub(super) async fn filter(
        &self,
        policy: Option<&Arc<Policy>>,
        asked: &Arc<Inquiry>,
        (owner, caller): (WorkspaceId, &Arc<dyn CallerPresence>),
        began: Duration,
    ) -> Result<Filtered, SubmitDecisionError> {
        let Some(policy) = policy else {
            return Ok(Filtered { inquiry: Arc::clone(asked), aliases: Aliases::default(), findings: Vec::new() });
        };
        let sifted = if is_prompt(policy, asked) {
            policy.filter(asked)
        } else {
            // Boxed, so that requests which never come here do not carry its state.
            Box::pin(self.filter_in_time(policy, asked, (owner, caller), began)).await?
        };
        let filtered = sifted.inspect_err(|_| self.ports.meter.filtered(FilterAction::Block.as_str()))?;
        filtered.findings.iter().for_each(|finding| self.ports.meter.filtered(finding.action.as_str()));
        Ok(filtered)
    }

    async fn filter_in_time(
        &self,
        policy: &Arc<Policy>,
        asked: &Arc<Inquiry>,
        (owner, caller): (WorkspaceId, &Arc<dyn CallerPresence>),
        began: Duration,
    ) -> Result<Sifted, Unfiltered> {
        let spent = self.ports.clock.monotonic().saturating_sub(began);
        let late = self.ports.timer.sleep(self.settings.deadline.saturating_sub(spent));
        let owner = WorkOwner::Workspace(owner);
        // Where the caller leaves or the deadline passes, the scan is dropped, and so cancelled.
        match select(Box::pin(self.filter_elsewhere(owner, policy, asked)), select(caller.left(), late)).await {
            Either::Left((sifted, _)) => sifted.map_err(Unfiltered::Lost),
            Either::Right((Either::Left(_), _)) => Err(Unfiltered::CallerGone),
            Either::Right((Either::Right(_), _)) => Err(Unfiltered::TimedOut),
        }
    }

    async fn filter_elsewhere(
        &self,
        owner: WorkOwner,
        policy: &Arc<Policy>,
        asked: &Arc<Inquiry>,
    ) -> Result<Sifted, WorkLost> {
        let (policy, asked) = (Arc::clone(policy), Arc::clone(asked));
        let filtered = self.ports.workers.get(owner, move |cancel| policy.filter_until(&asked, cancel)).await?;
        filtered.map_err(|Cancelled| WorkLost::Stopped)
    }
}

impl SubmitDecision {
    /// What a policy's filters make of an inquiry. Nothing is counted.
    ///
    /// # Errors
    /// They did not get to their end.
    pub(crate) async fn sift(&self, policy: &Arc<Policy>, asked: &Arc<Inquiry>) -> Result<Sifted, Unfiltered> {
        if is_prompt(policy, asked) {
            return Ok(policy.filter(asked));
        }
        self.router.filter_elsewhere(WorkOwner::System, policy, asked).await.map_err(Unfiltered::Lost)
    }
}

fn is_prompt(policy: &Policy, asked: &Inquiry) -> bool {
    match policy.filter_count() {
        0 => true,
        count => asked.len_bytes().saturating_mul(count.max(FEWEST)) <= PROMPT,
    }
}
