//! Tests of the publication of budget alerts.

use super::*;
use crate::budget::allowances::CounterPeriod;
use crate::budget::{Account, AlertThreshold, MockBudgetAlertStore};
use crate::ids::{ApiKeyId, DestinationId, WorkspaceId};
use crate::money::Usd;
use crate::observability::{DestinationKind, MockDestinationRepository};
use crate::system::Clock;
use crate::testing::{FixedClock, PlainMessageEncoder, SequentialIds};

fn workspace() -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(1))
}

fn alert(account: Account) -> BudgetAlert {
    BudgetAlert {
        workspace_id: workspace(),
        account,
        is_credit: false,
        base: Usd::ZERO,
        limit: Usd::from_pico(100),
        period: CounterPeriod::Lifetime,
        threshold: AlertThreshold::Half,
        spent: Usd::from_pico(50),
        at: FixedClock::default().now(),
    }
}

fn destination(number: u64, api_key_ids: Option<Vec<ApiKeyId>>) -> Destination {
    Destination {
        id: DestinationId::from_uuid(SequentialIds::uuid(100 + number)),
        workspace_id: workspace(),
        name: "one".to_owned(),
        kind: DestinationKind::Webhook,
        url: "https://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: None,
        enabled: true,
        privacy_mode: true,
        // Of almost no sessions: sampling does not apply to alerts.
        sampling: 1,
        api_key_ids,
        created_at: FixedClock::default().now(),
        updated_at: None,
    }
}

fn ports(alerts: MockBudgetAlertStore, destinations: Vec<Destination>) -> PublishBudgetAlertsPorts {
    let mut repository = MockDestinationRepository::new();
    repository.expect_list().withf(|id| *id == Some(workspace())).return_once(move |_| Ok(destinations));
    PublishBudgetAlertsPorts {
        alerts: Arc::new(alerts),
        destinations: Arc::new(repository),
        encoder: Arc::new(PlainMessageEncoder),
        ids: Arc::new(SequentialIds::default()),
    }
}

/// Publishes one alert, and returns the ids of its destinations.
async fn publish(alert: BudgetAlert, destinations: Vec<Destination>, operators: Option<Destination>) -> Vec<u128> {
    let mut alerts = MockBudgetAlertStore::new();
    let found = alert.clone();
    alerts.expect_unpublished().times(1).return_once(move |_| Ok(vec![found]));
    let (sender, receiver) = std::sync::mpsc::channel();
    alerts.expect_publish().times(1).returning(move |published, messages| {
        assert!(published.is_same(&alert));
        assert!(messages.iter().all(|message| message.payload.text().contains(&published.to_string())));
        let ids: Vec<u128> = messages.iter().map(|message| message.destination_id.uuid().as_u128()).collect();
        sender.send(ids).unwrap();
        Ok(true)
    });
    let use_case = PublishBudgetAlerts::new(ports(alerts, destinations), operators);
    assert_eq!(use_case.execute().await.unwrap(), 1);
    receiver.recv().unwrap()
}

fn id(number: u64) -> u128 {
    SequentialIds::uuid(100 + number).as_u128()
}

#[tokio::test]
async fn alert_is_sent_to_enabled_destinations_of_its_workspace_and_the_operator() {
    let disabled = Destination { enabled: false, ..destination(2, None) };
    let operators = Destination { id: Destination::OPERATORS, ..destination(3, None) };
    let of_key = alert(Account::Key(SequentialIds::key(1)));
    let sent = publish(of_key.clone(), vec![destination(1, None), disabled], Some(operators)).await;
    assert_eq!(sent, [id(1), 0]);
    assert!(publish(of_key, Vec::new(), None).await.is_empty(), "published without a destination");
}

#[tokio::test]
async fn destination_of_some_keys_receives_alerts_of_these_keys_only() {
    let keys = |number| Some(vec![SequentialIds::key(number)]);
    let destinations = || vec![destination(1, keys(1)), destination(2, keys(2)), destination(3, None)];
    let of_key = alert(Account::Key(SequentialIds::key(1)));
    assert_eq!(publish(of_key, destinations(), None).await, [id(1), id(3)]);
    let of_workspace = alert(Account::Workspace(workspace()));
    assert_eq!(publish(of_workspace, destinations(), None).await, [id(3)]);
}

#[tokio::test]
async fn alert_that_another_process_published_is_not_counted() {
    let mut alerts = MockBudgetAlertStore::new();
    alerts.expect_unpublished().return_once(|_| Ok(vec![alert(Account::Workspace(workspace()))]));
    alerts.expect_publish().times(1).returning(|_, _| Ok(false));
    let use_case = PublishBudgetAlerts::new(ports(alerts, Vec::new()), None);
    assert_eq!(use_case.execute().await.unwrap(), 0);
}

#[tokio::test]
async fn unreadable_destinations_do_not_block_alerts_of_other_workspaces() {
    let unreadable = WorkspaceId::from_uuid(SequentialIds::uuid(2));
    let first = BudgetAlert { workspace_id: unreadable, ..alert(Account::Workspace(unreadable)) };
    let second = alert(Account::Workspace(workspace()));
    let mut alerts = MockBudgetAlertStore::new();
    let found = vec![first, second.clone()];
    alerts.expect_unpublished().times(1).return_once(move |_| Ok(found));
    alerts.expect_publish().times(1).returning(move |published, _| {
        assert!(published.is_same(&second));
        Ok(true)
    });
    let mut repository = MockDestinationRepository::new();
    repository.expect_list().times(2).returning(move |id| match id {
        Some(id) if id == unreadable => Err(StoreError::unavailable("another key")),
        _ => Ok(Vec::new()),
    });
    let ports = PublishBudgetAlertsPorts { destinations: Arc::new(repository), ..ports(alerts, Vec::new()) };
    let error = PublishBudgetAlerts::new(ports, None).execute().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}
