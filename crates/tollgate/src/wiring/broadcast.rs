//! Traces: their writer, their delivery, and the management of their destinations.

use std::sync::Arc;
use std::time::Duration;

use adapters_broadcast::{BroadcastSettings, HttpMessageSender, OtlpMessageEncoder};
use adapters_cache::{ChangeWatcher, LiveDestinations};
use adapters_storage::{SeaOrmBudgetAlerts, SeaOrmDestinationRepository, SeaOrmOutbox};
use adapters_system::TokioTimer;
use anyhow::Context;
use domain::decision::Broadcast;
use domain::ids::WorkspaceId;
use domain::observability::{
    Broadcaster, DeliverOutbox, DeliverOutboxPorts, DeliverySettings, Destination, DestinationKind,
    DestinationRepository, Destinations, ManageDestinations, MessageSender, Outbox, PublishBudgetAlerts,
    PublishBudgetAlertsPorts, SAMPLING_PARTS,
};
use domain::system::{Clock, Randomness, TimeSource};

use super::{Background, Stores};
use crate::config::Config;

/// The interval at which changed destinations are reloaded. The change feed itself is read elsewhere.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// The interval at which new budget alerts are published.
const PUBLISH_ALERTS_EVERY: Duration = Duration::from_secs(1);

/// Returns the use cases of destinations.
///
/// # Errors
/// The platform's TLS cannot be used.
pub fn manage_destinations(config: &Config, stores: &Stores) -> anyhow::Result<ManageDestinations> {
    Ok(ManageDestinations {
        destinations: repository(stores),
        workspaces: Arc::clone(&stores.workspaces),
        keys: Arc::clone(&stores.keys),
        sender: sender(config, Arc::clone(&stores.clock))?,
        clock: Arc::clone(&stores.clock),
        ids: Arc::clone(&stores.ids),
    })
}

/// Returns the repository of destinations.
pub fn repository(stores: &Stores) -> Arc<dyn DestinationRepository> {
    Arc::new(SeaOrmDestinationRepository::new(stores.database.clone()))
}

/// Returns the outbox of messages.
pub fn outbox(stores: &Stores) -> Arc<dyn Outbox> {
    Arc::new(SeaOrmOutbox::new(stores.database.clone()))
}

/// Starts the delivery, and returns the writer of messages.
///
/// # Errors
/// The platform's TLS cannot be used, or the destinations cannot be read.
pub async fn start(
    config: &Config,
    stores: &Stores,
    watcher: Arc<ChangeWatcher>,
    random: Arc<dyn Randomness>,
    background: &Background,
) -> anyhow::Result<Arc<dyn Broadcast>> {
    let live = LiveDestinations::load(repository(stores), watcher.destinations_version());
    let live = Arc::new(live.await.context("the destinations of traces cannot be read")?);
    let (following, cancelled) = (Arc::clone(&live), background.cancelled.clone());
    background.tasks.spawn(async move { following.follow(&watcher, FOLLOW_EVERY, cancelled).await });
    if !config.storage.read_only {
        let ports = DeliverOutboxPorts {
            outbox: outbox(stores),
            destinations: repository(stores),
            sender: sender(config, Arc::clone(&stores.clock))?,
            time: TimeSource { clock: Arc::clone(&stores.clock), timer: Arc::new(TokioTimer) },
            random,
        };
        let settings = DeliverySettings::new(BroadcastSettings::default().timeout);
        let settings = DeliverySettings { operators: operator_collector(config, stores), ..settings };
        let deliver = DeliverOutbox::new(ports, settings);
        let cancelled = background.cancelled.clone();
        background.tasks.spawn(async move { deliver.run(cancelled.cancelled()).await });
        publish_alerts(config, stores, background);
    }
    let live: Arc<dyn Destinations> = live;
    let encoder = Arc::new(OtlpMessageEncoder);
    Ok(Arc::new(Broadcaster::new(live, operator_collector(config, stores), encoder, Arc::clone(&stores.ids))))
}

/// Publishes budget alerts in the background until the instance ends. A failed round is repeated.
fn publish_alerts(config: &Config, stores: &Stores, background: &Background) {
    let ports = PublishBudgetAlertsPorts {
        alerts: Arc::new(SeaOrmBudgetAlerts::new(stores.database.clone())),
        destinations: repository(stores),
        encoder: Arc::new(OtlpMessageEncoder),
        ids: Arc::clone(&stores.ids),
    };
    let publish = PublishBudgetAlerts::new(ports, operator_collector(config, stores));
    let cancelled = background.cancelled.clone();
    background.tasks.spawn(async move {
        let mut has_failed = false;
        while cancelled.run_until_cancelled(tokio::time::sleep(PUBLISH_ALERTS_EVERY)).await.is_some() {
            match publish.execute().await {
                Ok(_) => has_failed = false,
                Err(error) if !has_failed => {
                    let error = anyhow::Error::from(error);
                    tracing::warn!(error = format!("{error:#}"), "budget alerts not published, retrying");
                    has_failed = true;
                }
                Err(_) => {}
            }
        }
    });
}

/// Builds the sender of deliveries, without connecting.
///
/// # Errors
/// The platform's TLS or a file of certificates cannot be used.
pub fn sender(config: &Config, clock: Arc<dyn Clock>) -> anyhow::Result<Arc<dyn MessageSender>> {
    let telemetry = config.telemetry.as_ref();
    let settings = BroadcastSettings {
        allow_private_addresses: config.allow_private_addresses,
        operator_ca_file: telemetry.and_then(|telemetry| telemetry.ca_file.clone()),
        operator_client_identity: telemetry.and_then(|telemetry| telemetry.client_identity.clone()),
        ..BroadcastSettings::default()
    };
    let sender = HttpMessageSender::new(&settings, clock);
    Ok(Arc::new(sender.context("traces cannot be delivered")?))
}

/// Returns the operator's own collector, if one is configured.
fn operator_collector(config: &Config, stores: &Stores) -> Option<Destination> {
    let telemetry = config.telemetry.as_ref()?;
    Some(Destination {
        id: Destination::OPERATORS,
        workspace_id: WorkspaceId::from_uuid(Destination::OPERATORS.uuid()),
        name: "the operator's collector".to_owned(),
        kind: DestinationKind::OtelCollector,
        url: telemetry.otlp_url.clone(),
        headers: telemetry.otlp_headers.clone(),
        signing_secret: None,
        enabled: true,
        privacy_mode: telemetry.otlp_privacy_mode,
        sampling: SAMPLING_PARTS,
        api_key_ids: None,
        created_at: stores.clock.now(),
        updated_at: None,
    })
}
