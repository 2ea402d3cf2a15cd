use super::*;
use crate::audit::{Actor, AuditLog};
use crate::edit::Edit;
use crate::error::{ErrorKind, StoreError};
use crate::testing::{FixedClock, MemoryStore, SequentialIds};
use crate::workspace::{CreateWorkspace, MockWorkspaceRepository, WorkspaceContents};

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn id() -> WorkspaceId {
    WorkspaceId::from_uuid(uuid::Uuid::from_u128(1))
}

fn workspace() -> Workspace {
    Workspace {
        id: id(),
        name: WorkspaceName::try_new("w").unwrap(),
        owner_id: None,
        is_default: false,
        suspended: false,
        credit: None,
        budgets: WorkspaceBudgets { daily: Some(usd("1")), monthly: Some(usd("10")), ..WorkspaceBudgets::default() },
        rates: RateLimits { requests_per_minute: Some(60), tokens_per_minute: None },
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: chrono::DateTime::UNIX_EPOCH,
    }
}

/// Returns a store with the workspace.
async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    let audit = AuditDraft::done(&Actor::system(), "test", "workspace", crate::json::Json::object([]));
    store.workspaces().insert(&workspace(), &audit).await.unwrap();
    store
}

async fn newest(store: &MemoryStore) -> (String, String) {
    let entries = store.audit_log().newest(1).await.unwrap();
    (entries[0].action.clone(), entries[0].details.text().to_owned())
}

async fn set(change: BudgetsChange) -> Result<WorkspaceBudgets, ChangeWorkspaceError> {
    ManageWorkspaces::new(store().await.workspaces()).set_budgets(&Authority::system(), id(), change).await
}

#[tokio::test]
async fn set_budgets_changes_one_budget_and_audits_both_states() {
    let store = store().await;
    let change = BudgetsChange { weekly: Edit::Set(usd("5")), monthly: Edit::Clear, ..BudgetsChange::default() };
    let after =
        ManageWorkspaces::new(store.workspaces()).set_budgets(&Authority::system(), id(), change).await.unwrap();
    let expected = WorkspaceBudgets { daily: Some(usd("1")), weekly: Some(usd("5")), ..WorkspaceBudgets::default() };
    assert_eq!(after, expected);
    assert_eq!(store.workspaces().find(id()).await.unwrap().unwrap().budgets, expected);
    let expected = r#"{"before":{"daily_usd":1,"weekly_usd":null,"monthly_usd":10,"lifetime_usd":null},"after":{"daily_usd":1,"weekly_usd":5,"monthly_usd":null,"lifetime_usd":null}}"#;
    assert_eq!(newest(&store).await, ("workspace.set_budgets".to_owned(), expected.to_owned()));
}

#[tokio::test]
async fn set_budgets_rejects_longer_period_without_higher_budget() {
    let set_to = |text: &str| Edit::Set(usd(text));
    let default = BudgetsChange::default();
    for (change, message) in [
        (
            BudgetsChange { weekly: set_to("1"), ..default },
            "the weekly budget of 1 USD must be more than the daily one of 1 USD",
        ),
        (
            BudgetsChange { weekly: set_to("10"), ..default },
            "the monthly budget of 10 USD must be more than the weekly one of 10 USD",
        ),
        (
            BudgetsChange { lifetime: set_to("9.99"), ..default },
            "the lifetime budget of 9.99 USD must be more than the monthly one of 10 USD",
        ),
        (
            BudgetsChange { daily: set_to("11"), ..default },
            "the monthly budget of 10 USD must be more than the daily one of 11 USD",
        ),
        (BudgetsChange { daily: set_to("0"), ..default }, "the daily budget must be more than 0 USD"),
        (BudgetsChange { lifetime: set_to("-1"), ..default }, "the lifetime budget must be more than 0 USD"),
    ] {
        let error = set(change).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::InvalidRequest));
    }
    let all = BudgetsChange { weekly: set_to("1.000000000001"), lifetime: set_to("10.5"), ..default };
    assert!(set(all).await.is_ok());
}

#[tokio::test]
async fn set_rates_changes_one_rate() {
    let store = store().await;
    let use_case = ManageWorkspaces::new(store.workspaces());
    let change = RatesChange { requests_per_minute: Edit::Clear, tokens_per_minute: Edit::Set(9) };
    let after = use_case.set_rates(&Authority::system(), id(), change).await.unwrap();
    assert_eq!(after, RateLimits { requests_per_minute: None, tokens_per_minute: Some(9) });
    let expected = r#"{"before":{"requests_per_minute":60,"tokens_per_minute":null},"after":{"requests_per_minute":null,"tokens_per_minute":9}}"#;
    assert_eq!(newest(&store).await, ("workspace.set_rates".to_owned(), expected.to_owned()));
    let none = RatesChange { requests_per_minute: Edit::Set(0), ..RatesChange::default() };
    let error = use_case.set_rates(&Authority::system(), id(), none).await.unwrap_err();
    assert_eq!(error.to_string(), "a rate must be at least 1 per minute");
}

#[tokio::test]
async fn credit_changes_are_audited() {
    let store = store().await;
    let ports = || store.workspaces();
    let by = Authority::system();
    let add = async |text: &str| ManageWorkspaces::new(ports()).add_credit(&by, id(), usd(text)).await;
    assert_eq!(add("-5").await.unwrap_err().kind(), ErrorKind::InvalidRequest, "there is none");
    assert_eq!(store.workspaces().find(id()).await.unwrap().unwrap().credit, None);
    assert_eq!(add("5.5").await.unwrap(), usd("5.5"));
    assert_eq!(newest(&store).await.1, r#"{"before":{"credit_usd":null},"add_usd":5.5}"#);
    assert_eq!(add("-6").await.unwrap(), usd("-0.5"));
    let error = add("-9223372").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    ManageWorkspaces::new(ports()).clear_credit(&by, id()).await.unwrap();
    assert_eq!(store.workspaces().find(id()).await.unwrap().unwrap().credit, None);
    assert_eq!(newest(&store).await.1, r#"{"before":{"credit_usd":-0.5},"after":{"credit_usd":null}}"#);
}

#[tokio::test]
async fn suspend_is_audited() {
    let store = store().await;
    ManageWorkspaces::new(store.workspaces()).suspend(&Authority::system(), id(), true).await.unwrap();
    assert!(store.workspaces().find(id()).await.unwrap().unwrap().suspended);
    assert_eq!(newest(&store).await.1, r#"{"before":{"suspended":false},"after":{"suspended":true}}"#);
}

#[tokio::test]
async fn set_budgets_is_a_conflict_after_repeated_concurrent_changes() {
    let mut workspaces = MockWorkspaceRepository::new();
    workspaces.expect_find().returning(|_| Ok(Some(workspace())));
    workspaces.expect_set_budgets().returning(|_, _, _, _| Ok(false));
    workspaces.expect_set_rates().returning(|_, _, _, _| Ok(false));
    let workspaces: Arc<dyn WorkspaceRepository> = Arc::new(workspaces);
    let change = BudgetsChange { daily: Edit::Clear, ..BudgetsChange::default() };
    let error = ManageWorkspaces::new(Arc::clone(&workspaces)).set_budgets(&Authority::system(), id(), change).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
    let change = RatesChange { requests_per_minute: Edit::Clear, ..RatesChange::default() };
    let error = ManageWorkspaces::new(workspaces).set_rates(&Authority::system(), id(), change).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
}

async fn kinds(make: impl Fn() -> MockWorkspaceRepository) -> Vec<ErrorKind> {
    let by = Authority::system();
    let ports = || Arc::new(make()) as Arc<dyn WorkspaceRepository>;
    vec![
        ManageWorkspaces::new(ports()).add_credit(&by, id(), usd("1")).await.unwrap_err().kind(),
        ManageWorkspaces::new(ports()).clear_credit(&by, id()).await.unwrap_err().kind(),
        ManageWorkspaces::new(ports()).suspend(&by, id(), true).await.unwrap_err().kind(),
        ManageWorkspaces::new(ports()).set_rates(&by, id(), RatesChange::default()).await.unwrap_err().kind(),
        ManageWorkspaces::new(ports()).set_budgets(&by, id(), BudgetsChange::default()).await.unwrap_err().kind(),
    ]
}

#[tokio::test]
async fn changes_distinguish_unknown_workspace_from_store_failure() {
    let unknown = || {
        let mut workspaces = MockWorkspaceRepository::new();
        workspaces.expect_find().returning(|_| Ok(None));
        workspaces
    };
    assert_eq!(kinds(unknown).await, [ErrorKind::NotFound; 5]);
    let unavailable = || {
        let mut workspaces = MockWorkspaceRepository::new();
        workspaces.expect_find().returning(|_| Err(StoreError::unavailable("locked")));
        workspaces
    };
    assert_eq!(kinds(unavailable).await, [ErrorKind::Unavailable; 5]);
}

#[tokio::test]
async fn rename_renames_and_rejects_invalid_names() {
    let store = MemoryStore::new().workspaces();
    let create =
        CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let id = create.execute(&Authority::system(), "one", None).await.unwrap().id;
    let workspaces = ManageWorkspaces::new(store.clone());
    workspaces.rename(&Authority::system(), id, "two").await.unwrap();
    let found = store.find(id).await.unwrap().unwrap();
    assert_eq!(found.name.as_str(), "two");
    let invalid = workspaces.rename(&Authority::system(), id, "").await.unwrap_err();
    assert!(matches!(invalid, ChangeWorkspaceError::InvalidName(_)));
    let unknown = WorkspaceId::from_uuid(uuid::Uuid::nil());
    let unknown = workspaces.rename(&Authority::system(), unknown, "x").await.unwrap_err();
    assert!(matches!(unknown, ChangeWorkspaceError::UnknownWorkspace(_)));
}

#[tokio::test]
async fn delete_deletes_all_but_the_default_workspace() {
    let store = MemoryStore::new().workspaces();
    let create =
        CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let default = create.default(&Authority::system()).await.unwrap().id;
    let other = create.execute(&Authority::system(), "other", None).await.unwrap();
    let workspaces = ManageWorkspaces::new(store.clone());
    let rejected = workspaces.delete(&Authority::system(), default).await.unwrap_err();
    assert!(matches!(rejected, ChangeWorkspaceError::IsDefault));
    assert_eq!(workspaces.delete(&Authority::system(), other.id).await.unwrap(), other);
    let gone = workspaces.delete(&Authority::system(), other.id).await.unwrap_err();
    assert!(matches!(gone, ChangeWorkspaceError::UnknownWorkspace(_)));
}

#[tokio::test]
async fn delete_names_contents() {
    let store = MemoryStore::new().workspaces();
    let create =
        CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let workspace = create.execute(&Authority::system(), "w", None).await.unwrap();
    let id = workspace.id;
    let mut repository = MockWorkspaceRepository::new();
    repository.expect_find().returning(move |_| Ok(Some(workspace.clone())));
    let contents = WorkspaceContents { keys: 2, destinations: 1, ..WorkspaceContents::default() };
    repository.expect_delete().returning(move |_, _| Ok(WorkspaceDeletion::NotEmpty(contents)));
    let rejected = ManageWorkspaces::new(Arc::new(repository)).delete(&Authority::system(), id).await.unwrap_err();
    assert_eq!(rejected.to_string(), "the workspace still has keys: 2, destinations: 1");
}
