//! Publication of budget alerts to destinations.

use std::sync::Arc;

use super::{Destination, DestinationRepository, MessageEncoder};
use crate::budget::{BudgetAlert, BudgetAlertStore, ResetInterval};
use crate::error::StoreError;
use crate::system::IdGenerator;
use crate::usage::OutboxMessage;

/// The most alerts that are read at once.
const BATCH: u64 = 100;

/// The ports of [`PublishBudgetAlerts`].
pub struct PublishBudgetAlertsPorts {
    /// The alerts.
    pub alerts: Arc<dyn BudgetAlertStore>,
    /// The destinations.
    pub destinations: Arc<dyn DestinationRepository>,
    /// The encoding for destinations.
    pub encoder: Arc<dyn MessageEncoder>,
    /// The ids of messages.
    pub ids: Arc<dyn IdGenerator>,
}

/// Adds a message per destination to the outbox for each budget alert, once over all processes.
pub struct PublishBudgetAlerts {
    ports: PublishBudgetAlertsPorts,
    operators: Option<Destination>,
}

impl PublishBudgetAlerts {
    /// Wires the ports; `operators` is the operator's collector, which receives the alerts of all workspaces.
    pub fn new(ports: PublishBudgetAlertsPorts, operators: Option<Destination>) -> Self {
        Self { ports, operators }
    }

    /// Publishes all unpublished alerts, and returns the number of those that this call published.
    ///
    /// # Errors
    /// A store failed, or the destinations of a workspace cannot be read. Its alerts wait; those of other workspaces among
    /// the oldest 100 are published. The next call continues.
    pub async fn execute(&self) -> Result<u64, StoreError> {
        let mut published = 0;
        loop {
            let alerts = self.ports.alerts.unpublished(BATCH).await?;
            let is_last = (alerts.len() as u64) < BATCH;
            let mut failed = None;
            for alert in &alerts {
                match self.ports.destinations.list(Some(alert.workspace_id)).await {
                    Ok(destinations) => published += u64::from(self.publish(alert, &destinations).await?),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            if is_last {
                return Ok(published);
            }
        }
    }

    async fn publish(&self, alert: &BudgetAlert, destinations: &[Destination]) -> Result<bool, StoreError> {
        let receivers =
            destinations.iter().chain(&self.operators).filter(|destination| destination.receives_alert(alert));
        let payload = self.ports.encoder.encode_alert(alert);
        let message = |destination: &Destination| OutboxMessage {
            id: self.ports.ids.outbox_id(),
            destination_id: destination.id,
            payload: payload.clone(),
        };
        let messages: Vec<OutboxMessage> = receivers.map(message).collect();
        let is_published = self.ports.alerts.publish(alert, &messages).await?;
        if is_published {
            log(alert, messages.len());
        }
        Ok(is_published)
    }
}

fn log(alert: &BudgetAlert, destinations: usize) {
    tracing::info!(
        workspace.id = %alert.workspace_id,
        scope = alert.account.scope().as_str(),
        api_key.id = alert.api_key().map(tracing::field::display),
        guardrail.id = alert.guardrail_id().map(tracing::field::display),
        is_credit = alert.is_credit,
        limit_usd = %alert.limit,
        spent_usd = %alert.spent,
        threshold_percent = alert.threshold.percent(),
        period = alert.reset().map_or("lifetime", ResetInterval::as_str),
        destinations,
        "budget threshold reached"
    );
}

#[cfg(test)]
mod tests;
