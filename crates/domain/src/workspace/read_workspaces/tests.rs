use super::*;
use crate::audit::{Actor, AuditDraft};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::budget::MockLedgerReader;
use crate::change::Change;
use crate::error::{ErrorKind, StoreError};
use crate::ids::WorkspaceId;
use crate::json::Json;
use crate::money::Usd;
use crate::testing::{FixedClock, MemoryStore, SequentialIds, add_credit};
use crate::workspace::{CreateWorkspace, ManageWorkspaces, MockWorkspaceRepository, WorkspaceChange};

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

fn key_of(workspaces: &[WorkspaceId]) -> Authority {
    let scope = ManagementScope::try_new(ManagementAccess::Read, Some(workspaces.to_vec())).unwrap();
    Authority::of_key(Actor::system(), scope)
}

/// Returns a store with a default workspace, `a` with budgets and credit, and `b`.
async fn fixture() -> (MemoryStore, ReadWorkspaces, [WorkspaceId; 3]) {
    let store = MemoryStore::new();
    let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let create = CreateWorkspace::new(store.workspaces(), clock.clone(), ids);
    let by = Authority::system();
    let default = create.default(&by).await.unwrap().id;
    let a = create.execute(&Change::plain(&by), &WorkspaceChange::named("a"), false).await.unwrap().id;
    let b = create.execute(&Change::plain(&by), &WorkspaceChange::named("b"), false).await.unwrap().id;
    let manage = ManageWorkspaces::new(store.workspaces(), store.limits(), clock);
    let daily = Some(ResetInterval::Daily);
    manage.set_budget(&Change::plain(&by), &(&a).into(), daily, Some(usd("2"))).await.unwrap();
    let audit = AuditDraft::done(&Actor::system(), "test", "workspace", Json::object([]));
    add_credit(&*store.workspaces(), a, usd("7"), &audit).await.unwrap();
    let read = ReadWorkspaces::new(store.workspaces(), store.limits());
    (store, read, [default, a, b])
}

#[tokio::test]
async fn reads_are_narrowed_to_the_workspaces_of_the_caller() {
    let (_store, read, [default, a, b]) = fixture().await;
    let ids = |page: &[Workspace]| page.iter().map(|workspace| workspace.id).collect::<Vec<_>>();
    let (all, total) = read.list(&Authority::system(), 0, 2).await.unwrap();
    assert_eq!((all.len(), total), (2, 3));
    let (own, total) = read.list(&key_of(&[a]), 0, 9).await.unwrap();
    assert_eq!((ids(&own), total), (vec![a], 1));
    for name in ["a", &a.to_string()] {
        let name = ResourceName::new(name);
        assert_eq!(read.get(&key_of(&[a]), &name).await.unwrap().id, a);
        let foreign = key_of(&[b, default]);
        for kind in [
            read.get(&foreign, &name).await.unwrap_err().kind(),
            read.budgets(&foreign, &name).await.unwrap_err().kind(),
            read.credit(&foreign, Some(a)).await.unwrap_err().kind(),
        ] {
            assert_eq!(kind, ErrorKind::NotFound);
        }
    }
}

#[tokio::test]
async fn budgets_and_credit_have_their_amounts() {
    let (_store, read, [_, a, b]) = fixture().await;
    let by = Authority::system();
    let (_, budgets) = read.budgets(&by, &(&a).into()).await.unwrap();
    assert_eq!(
        budgets.iter().map(|limit| (limit.limit, limit.reset)).collect::<Vec<_>>(),
        [(usd("2"), Some(ResetInterval::Daily))]
    );
    assert_eq!(read.budget(&by, &(&a).into(), Some(ResetInterval::Daily)).await.unwrap().1, budgets[0]);
    let unset = read.budget(&by, &(&a).into(), None).await.unwrap_err();
    assert!(matches!(unset, WorkspaceError::UnknownBudget));
    let credit = read.credit(&by, Some(a)).await.unwrap();
    assert_eq!((credit.granted, credit.remaining()), (Some(usd("7")), Some(usd("7"))));
    // Without a name: the default workspace, or the only one.
    assert_eq!(read.credit(&by, None).await.unwrap(), Credit::default());
    assert_eq!(read.credit(&key_of(&[a]), None).await.unwrap(), credit);
    assert!(matches!(read.credit(&key_of(&[a, b]), None).await, Err(WorkspaceError::Required)));
}

#[tokio::test]
async fn failing_ledger_is_unavailable() {
    let mut ledger = MockLedgerReader::new();
    ledger.expect_store_pending().returning(|| Err(StoreError::unavailable("gone")));
    let read = ReadWorkspaces::new(Arc::new(MockWorkspaceRepository::new()), Arc::new(ledger));
    let error = read.list(&Authority::system(), 0, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}
