use super::*;
use crate::audit::{Actor, AuditLog};
use crate::authority::Authority;
use crate::budget::{MockLedgerReader, WorkspaceBudgets};
use crate::change::MAX_ATTEMPTS;
use crate::edit::Edit;
use crate::error::{ErrorKind, StoreError};
use crate::rate::RateLimits;
use crate::testing::{FixedClock, MemoryStore, SequentialIds};
use crate::version::{IfMatch, Version};
use crate::workspace::{CreateWorkspace, MockWorkspaceRepository, RatesChange, WorkspaceName, WorkspaceSlug};

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn manage(workspaces: Arc<dyn WorkspaceRepository>) -> ManageWorkspaces {
    ManageWorkspaces::new(workspaces, MemoryStore::new().limits(), Arc::new(FixedClock::default()))
}

fn id() -> WorkspaceId {
    WorkspaceId::from_uuid(uuid::Uuid::from_u128(1))
}

fn name() -> ResourceName {
    (&id()).into()
}

fn workspace() -> Workspace {
    Workspace {
        id: id(),
        name: WorkspaceName::try_new("w").unwrap(),
        slug: WorkspaceSlug::of_name("w"),
        description: None,
        owner_id: None,
        is_default: false,
        suspended: false,
        credit: None,
        budgets: WorkspaceBudgets { daily: Some(usd("1")), monthly: Some(usd("10")), ..WorkspaceBudgets::default() },
        rates: RateLimits { requests_per_minute: Some(60), tokens_per_minute: None },
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: chrono::DateTime::UNIX_EPOCH,
        updated_at: None,
    }
}

/// Returns a store with the workspace.
async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    let audit = AuditDraft::done(&Actor::system(), "test", "workspace", crate::json::Json::object([]));
    store.workspaces().insert(&workspace(), false, &audit).await.unwrap();
    store
}

async fn newest(store: &MemoryStore) -> (String, String) {
    let entries = store.audit_log().newest(1).await.unwrap();
    (entries[0].action.clone(), entries[0].details.text().to_owned())
}

#[tokio::test]
async fn set_budget_changes_one_budget_and_audits_it() {
    let store = store().await;
    let by = Authority::system();
    let monthly = Some(ResetInterval::Monthly);
    let manage = manage(store.workspaces());
    let after = manage.set_budget(&Change::plain(&by), &name(), monthly, Some(usd("5"))).await.unwrap();
    let expected = WorkspaceBudgets { monthly: Some(usd("5")), ..workspace().budgets };
    assert_eq!(after.budgets, expected);
    assert_eq!(after.updated_at, Some(FixedClock::default().now()));
    assert_eq!(store.workspaces().find(id()).await.unwrap(), Some(after));
    let expected = r#"{"before":{"monthly_usd":10},"after":{"monthly_usd":5}}"#;
    assert_eq!(newest(&store).await, ("workspace.set_budgets".to_owned(), expected.to_owned()));
}

#[test]
fn budgets_of_longer_periods_must_be_higher() {
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
        let error = change.of(&workspace().budgets).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (message, ErrorKind::InvalidRequest));
    }
    let all = BudgetsChange { weekly: set_to("1.000000000001"), lifetime: set_to("10.5"), ..default };
    assert!(all.of(&workspace().budgets).is_ok());
}

async fn update(store: &MemoryStore, change: &WorkspaceChange) -> Result<Workspace, WorkspaceError> {
    manage(store.workspaces()).update(&Change::plain(&Authority::system()), &name(), change).await
}

#[tokio::test]
async fn update_changes_named_settings_and_audits_only_those() {
    let store = store().await;
    let change = WorkspaceChange {
        slug: Some("w-2".to_owned()),
        description: Edit::Set("text".to_owned()),
        suspended: Some(true),
        rates: RatesChange { requests_per_minute: Edit::Clear, tokens_per_minute: Edit::Set(9) },
        ..WorkspaceChange::named("two")
    };
    let after = update(&store, &change).await.unwrap();
    let expected = Workspace {
        name: WorkspaceName::try_new("two").unwrap(),
        slug: WorkspaceSlug::try_new("w-2").unwrap(),
        description: Some("text".to_owned()),
        suspended: true,
        rates: RateLimits { requests_per_minute: None, tokens_per_minute: Some(9) },
        updated_at: Some(FixedClock::default().now()),
        ..workspace()
    };
    assert_eq!(after, expected);
    assert_eq!(store.workspaces().find(id()).await.unwrap(), Some(expected));
    let before = r#"{"name":"w","slug":"w","description":null,"suspended":false,"requests_per_minute":60,"tokens_per_minute":null}"#;
    let after = r#"{"name":"two","slug":"w-2","description":"text","suspended":true,"requests_per_minute":null,"tokens_per_minute":9}"#;
    let details = format!(r#"{{"before":{before},"after":{after}}}"#);
    assert_eq!(newest(&store).await, ("workspace.update".to_owned(), details));
}

#[tokio::test]
async fn update_of_equal_values_writes_nothing() {
    let store = store().await;
    let same = WorkspaceChange {
        slug: Some("w".to_owned()),
        description: Edit::Clear,
        owner_id: Edit::Clear,
        suspended: Some(false),
        rates: RatesChange { requests_per_minute: Edit::Set(60), tokens_per_minute: Edit::Clear },
        default_guardrail_id: Edit::Clear,
        ..WorkspaceChange::named("w")
    };
    let entries = store.audit_log().read(0, 100).await.unwrap().len();
    assert_eq!(update(&store, &same).await.unwrap(), workspace());
    assert_eq!(store.audit_log().read(0, 100).await.unwrap().len(), entries);
}

#[tokio::test]
async fn update_rejects_invalid_settings() {
    let store = store().await;
    let other = Workspace {
        id: WorkspaceId::from_uuid(uuid::Uuid::from_u128(2)),
        slug: WorkspaceSlug::try_new("taken").unwrap(),
        ..workspace()
    };
    let audit = AuditDraft::done(&Actor::system(), "test", "workspace", Json::object([]));
    store.workspaces().insert(&other, false, &audit).await.unwrap();
    let long = |count| "x".repeat(count);
    let default = WorkspaceChange::default;
    let (invalid, conflict) = (ErrorKind::InvalidRequest, ErrorKind::Conflict);
    let unknown = crate::ids::GuardrailId::from_uuid(uuid::Uuid::from_u128(9));
    let cases = [
        (default(), invalid, "no fields to update"),
        (WorkspaceChange::named(""), invalid, "a workspace name has 1 to 100 characters"),
        (WorkspaceChange { slug: Some("A".to_owned()), ..default() }, invalid, "a slug has 1 to 50"),
        (WorkspaceChange { slug: Some("taken".to_owned()), ..default() }, conflict, "another workspace has the slug"),
        (WorkspaceChange { description: Edit::Set(long(1_001)), ..default() }, invalid, "description has 1 to 1000"),
        (WorkspaceChange { owner_id: Edit::Set(long(513)), ..default() }, invalid, "owner_id has 1 to 512"),
        (WorkspaceChange { owner_id: Edit::Set("a\nb".to_owned()), ..default() }, invalid, "owner_id has 1 to 512"),
        (
            WorkspaceChange {
                rates: RatesChange { requests_per_minute: Edit::Set(0), ..RatesChange::default() },
                ..default()
            },
            invalid,
            "a rate must be at least 1 per minute",
        ),
        (
            WorkspaceChange { default_guardrail_id: Edit::Set(unknown), ..default() },
            invalid,
            "the default guardrail must be a guardrail of the workspace",
        ),
    ];
    for (change, kind, message) in cases {
        let error = update(&store, &change).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().starts_with(message), "{error}");
    }
    assert_eq!(store.workspaces().find(id()).await.unwrap(), Some(workspace()), "nothing was changed");
}

#[tokio::test]
async fn credit_changes_are_audited() {
    let store = store().await;
    let by = Authority::system();
    let manage = manage(store.workspaces());
    let add = async |text: &str| {
        let credit = manage.add_credit(&Change::plain(&by), &name(), usd(text)).await?;
        credit.remaining().ok_or(WorkspaceError::NoName)
    };
    assert!(matches!(add("-5").await, Err(WorkspaceError::NoCreditToTake)));
    assert!(matches!(add("0").await, Err(WorkspaceError::NoCreditToAdd)));
    assert_eq!(store.workspaces().find(id()).await.unwrap().unwrap().credit, None);
    assert_eq!(add("5.5").await.unwrap(), usd("5.5"));
    assert_eq!(newest(&store).await.1, r#"{"before":{"credit_usd":null},"add_usd":5.5}"#);
    assert_eq!(add("-6").await.unwrap(), usd("-0.5"));
    let error = add("-9223372").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    let cleared = manage.clear_credit(&Change::plain(&by), &name()).await.unwrap();
    assert_eq!(cleared, Credit { granted: None, spent: Usd::ZERO });
    let again = manage.clear_credit(&Change::plain(&by), &name()).await;
    assert!(matches!(again, Err(WorkspaceError::UnknownCredit)));
    assert_eq!(store.workspaces().find(id()).await.unwrap().unwrap().credit, None);
    assert_eq!(newest(&store).await.1, r#"{"before":{"credit_usd":-0.5},"after":{"credit_usd":null}}"#);
}

#[tokio::test]
async fn credit_change_stores_pending_charges_first() {
    let store = store().await;
    let mut ledger = MockLedgerReader::new();
    ledger.expect_store_pending().times(2).returning(|| Err(StoreError::unavailable("away")));
    let manage = ManageWorkspaces::new(store.workspaces(), Arc::new(ledger), Arc::new(FixedClock::default()));
    let (by, name) = (Authority::system(), name());
    let added = manage.add_credit(&Change::plain(&by), &name, usd("1")).await.unwrap_err();
    let cleared = manage.clear_credit(&Change::plain(&by), &name).await.unwrap_err();
    assert_eq!([added.kind(), cleared.kind()], [ErrorKind::Unavailable; 2]);
    assert_eq!(store.workspaces().find(id()).await.unwrap(), Some(workspace()));
}

#[tokio::test]
async fn set_budget_sets_and_removes_one_period() {
    let store = store().await;
    let by = Authority::system();
    let manage = manage(store.workspaces());
    let set = async |period, amount: Option<&str>| {
        manage.set_budget(&Change::plain(&by), &name(), period, amount.map(usd)).await
    };
    let weekly = Some(ResetInterval::Weekly);
    assert!(matches!(set(weekly, None).await, Err(WorkspaceError::UnknownBudget)));
    assert_eq!(set(weekly, Some("1.000000000001")).await.unwrap().budgets.weekly, Some(usd("1.000000000001")));
    let entry = newest(&store).await;
    assert_eq!(entry.1, r#"{"before":{"weekly_usd":null},"after":{"weekly_usd":1.000000000001}}"#);
    set(weekly, Some("1.000000000001")).await.unwrap();
    assert_eq!(newest(&store).await, entry);
    assert!(matches!(set(weekly, Some("1")).await, Err(WorkspaceError::BudgetsDoNotFall { shorter: "daily", .. })));
    assert!(matches!(set(None, Some("0")).await, Err(WorkspaceError::BudgetNotPositive("lifetime"))));
    assert_eq!(set(None, Some("11")).await.unwrap().budgets.lifetime, Some(usd("11")));
    assert_eq!(set(weekly, None).await.unwrap().budgets.weekly, None);
    assert!(matches!(set(weekly, None).await, Err(WorkspaceError::UnknownBudget)));
}

#[tokio::test]
async fn changes_of_another_version_change_nothing() {
    let store = store().await;
    let by = Authority::system();
    let manage = manage(store.workspaces());
    let of = |version: Version| Some(IfMatch::Versions(vec![version]));
    let stale = of(Workspace { owner_id: Some("o".to_owned()), ..workspace() }.version());
    let other = Workspace { budgets: WorkspaceBudgets { daily: Some(usd("2")), ..workspace().budgets }, ..workspace() };
    let other_budget = of(other.budget_version(Some(ResetInterval::Daily)).unwrap());
    let conditional = |if_match: &Option<IfMatch>| Change::conditional(&by, if_match.clone());
    let name = name();
    let edit = WorkspaceChange::named("x");
    let daily = Some(ResetInterval::Daily);
    let failed = [
        manage.update(&conditional(&stale), &name, &edit).await.map(drop),
        manage.set_budget(&conditional(&other_budget), &name, daily, Some(usd("3"))).await.map(drop),
        manage.set_budget(&conditional(&other_budget), &name, daily, None).await.map(drop),
        manage.set_budget(&conditional(&Some(IfMatch::Any)), &name, None, Some(usd("30"))).await.map(drop),
        manage.add_credit(&Change::conditional(&by, stale.clone()), &name, usd("1")).await.map(drop),
        manage.clear_credit(&Change::conditional(&by, stale.clone()), &name).await.map(drop),
    ];
    for result in failed {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::PreconditionFailed);
    }
    assert_eq!(store.workspaces().find(id()).await.unwrap(), Some(workspace()));
    let current = workspace();
    manage.update(&conditional(&of(current.version())), &name, &edit).await.unwrap();
    let budget = of(current.budget_version(daily).unwrap());
    manage.set_budget(&conditional(&budget), &name, daily, Some(usd("3"))).await.unwrap();
    // Of two additions to the same credit one succeeds.
    let unlimited = Change::conditional(&by, of(Credit::default().version()));
    manage.add_credit(&unlimited, &name, usd("1")).await.unwrap();
    let second = manage.add_credit(&unlimited, &name, usd("1")).await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn changes_are_a_conflict_after_repeated_concurrent_changes() {
    let mut workspaces = MockWorkspaceRepository::new();
    workspaces.expect_find_named().returning(|_, _| Ok(vec![workspace()]));
    workspaces.expect_update().times(2 * MAX_ATTEMPTS).returning(|_, _, _| Ok(WorkspaceUpdate::Differs));
    let manage = manage(Arc::new(workspaces));
    let by = Authority::system();
    let error = manage.set_budget(&Change::plain(&by), &name(), Some(ResetInterval::Daily), None).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
    let error = manage.update(&Change::plain(&by), &name(), &WorkspaceChange::named("x")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn concurrent_changes_of_different_settings_are_all_kept() {
    let store = store().await;
    let changes = [
        WorkspaceChange::named("x"),
        WorkspaceChange { suspended: Some(true), ..WorkspaceChange::default() },
        WorkspaceChange { owner_id: Edit::Set("o".to_owned()), ..WorkspaceChange::default() },
    ];
    crate::testing::join_all(changes.iter().map(|change| async { update(&store, change).await.unwrap() })).await;
    let found = store.workspaces().find(id()).await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.suspended, found.owner_id.as_deref()), ("x", true, Some("o")));
}

async fn kinds(make: impl Fn() -> MockWorkspaceRepository) -> Vec<ErrorKind> {
    let (by, name) = (Authority::system(), name());
    let manage = || manage(Arc::new(make()) as Arc<dyn WorkspaceRepository>);
    vec![
        manage().add_credit(&Change::plain(&by), &name, usd("1")).await.unwrap_err().kind(),
        manage().clear_credit(&Change::plain(&by), &name).await.unwrap_err().kind(),
        manage().update(&Change::plain(&by), &name, &WorkspaceChange::named("x")).await.unwrap_err().kind(),
        manage().set_budget(&Change::plain(&by), &name, None, Some(usd("1"))).await.unwrap_err().kind(),
    ]
}

#[tokio::test]
async fn changes_distinguish_unknown_workspace_from_store_failure() {
    let named = |found: fn() -> Result<Vec<Workspace>, StoreError>| {
        move || {
            let mut workspaces = MockWorkspaceRepository::new();
            workspaces.expect_find_named().returning(move |_, _| found());
            workspaces
        }
    };
    assert_eq!(kinds(named(|| Ok(Vec::new()))).await, [ErrorKind::NotFound; 4]);
    assert_eq!(kinds(named(|| Ok(vec![workspace(); 2]))).await, [ErrorKind::Conflict; 4]);
    assert_eq!(kinds(named(|| Err(StoreError::unavailable("locked")))).await, [ErrorKind::Unavailable; 4]);
}

#[tokio::test]
async fn created_workspace_has_its_settings_and_a_free_slug() {
    let store = MemoryStore::new().workspaces();
    let create =
        CreateWorkspace::new(store.clone(), Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let by = Authority::system();
    let execute = async |settings: WorkspaceChange| create.execute(&Change::plain(&by), &settings, false).await;
    let slug = async |settings| execute(settings).await.unwrap().slug.as_str().to_owned();
    for expected in ["team-a", "team-a-2", "team-a-3"] {
        assert_eq!(slug(WorkspaceChange::named("Team A")).await, expected);
    }
    let given = |slug: &str| WorkspaceChange { slug: Some(slug.to_owned()), ..WorkspaceChange::named("Team A") };
    assert_eq!(slug(given("x")).await, "x");
    let taken = execute(given("team-a-2")).await.unwrap_err();
    assert_eq!(
        (taken.kind(), taken.to_string().as_str()),
        (ErrorKind::Conflict, "another workspace has the slug team-a-2")
    );
    let nameless = execute(WorkspaceChange::default()).await.unwrap_err();
    assert_eq!((nameless.kind(), nameless.to_string().as_str()), (ErrorKind::InvalidRequest, "name is required"));
    let same_name = create.execute(&Change::plain(&by), &given("y"), true).await.unwrap_err();
    assert!(matches!(same_name, WorkspaceError::NameTaken(_)), "{same_name}");
    let settings = WorkspaceChange {
        description: Edit::Set("d".to_owned()),
        owner_id: Edit::Set("o".to_owned()),
        suspended: Some(true),
        rates: RatesChange { requests_per_minute: Edit::Set(7), ..RatesChange::default() },
        ..WorkspaceChange::named("all")
    };
    let made = execute(settings).await.unwrap();
    assert_eq!(store.find(made.id).await.unwrap().as_ref(), Some(&made));
    assert_eq!((made.description.as_deref(), made.owner_id.as_deref(), made.suspended), (Some("d"), Some("o"), true));
    assert_eq!((made.rates.requests_per_minute, made.updated_at), (Some(7), None));
}
