//! The rights of callers: each management use case, by access, for their own and another workspace.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use domain::api_key::{
    ApiKeyChange, ApiKeyScope, CreateApiKey, ManageApiKeys, ManagementKey, NewApiKey, NoGrantCache, RotateApiKey,
};
use domain::audit::Actor;
use domain::authority::{Authority, ManagementAccess, ManagementScope, Right};
use domain::budget::MockLedgerReader;
use domain::change::Change;
use domain::edit::Edit;
use domain::error::ErrorKind;
use domain::evidence::{
    Evidence, EvidenceError, LabelAnswers, LabelDraft, LabelOutcome, LabelSource, MockEvidenceRepository, PresetRequest,
};
use domain::file::DeleteDocument;
use domain::guardrail::{AssignKeysToGuardrail, GuardrailDraft, KnownNames, ManageGuardrails};
use domain::ids::{DestinationId, GuardrailId, PresetId, WorkspaceId};
use domain::json::Json;
use domain::model::{ImportCatalogue, ImportMode, Model, Pricing};
use domain::money::{Price, Usd};
use domain::naming::ResourceName;
use domain::observability::{
    Delivery, DeliveryError, Destination, DestinationFields, ManageDestinations, MessageSender, RetryDeadLetters,
};
use domain::operation::{AuditFilter, ListAuditEntries};
use domain::preset::{ManagePresets, PresetChange, PresetConfig};
use domain::retention::DeleteWorkspace;
use domain::routing::EndpointDirectory;
use domain::testing::{FixedClock, FixedSecrets, MemoryBlobStore, MemoryCatalogue, MemoryStore, SequentialIds};
use domain::usage::{AnswerEvidence, AnswerMethod, PresetReference};
use domain::workspace::{
    BudgetsChange, CreateWorkspace, ManageWorkspaces, ReadWorkspaces, WorkspaceChange, WorkspaceContent,
};
use futures_util::future::LocalBoxFuture;

struct AcceptAll;

#[async_trait]
impl MessageSender for AcceptAll {
    async fn send(&self, _: &Destination, _: &Delivery) -> Result<(), DeliveryError> {
        Ok(())
    }
}

/// The objects of a workspace.
struct Place {
    workspace: WorkspaceId,
    key: ResourceName,
    guardrail: GuardrailId,
    default_guardrail: GuardrailId,
    destination: DestinationId,
    preset: PresetId,
}

struct Fixture {
    store: MemoryStore,
    ids: Arc<SequentialIds>,
    clock: Arc<FixedClock>,
    secrets: Arc<FixedSecrets>,
}

impl Fixture {
    fn guardrails(&self) -> ManageGuardrails {
        let catalogue = Arc::new(MemoryCatalogue::new(Vec::new()));
        let names = KnownNames::new(catalogue, Arc::new(EndpointDirectory::new(Vec::new())));
        let (clock, ids) = (Arc::clone(&self.clock) as _, Arc::clone(&self.ids) as _);
        ManageGuardrails { guardrails: self.store.guardrails(), workspaces: self.store.workspaces(), names, clock, ids }
    }

    fn destinations(&self) -> ManageDestinations {
        ManageDestinations {
            destinations: self.store.destinations(),
            workspaces: self.store.workspaces(),
            keys: self.store.api_keys(),
            sender: Arc::new(AcceptAll),
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
        }
    }

    fn presets(&self) -> ManagePresets {
        ManagePresets {
            presets: self.store.presets(),
            workspaces: self.store.workspaces(),
            catalogue: Arc::new(MemoryCatalogue::new(rows())),
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::clone(&self.ids) as _,
        }
    }

    async fn label(&self, by: &Authority, place: &Place) -> Result<(), EvidenceError> {
        let mut ledger = MockLedgerReader::new();
        ledger.expect_store_pending().returning(|| Ok(()));
        let row = evidence(place);
        let (id, question, value) = (row.id.clone(), row.answer.question.clone(), row.answer.decision.clone());
        let mut evidence = MockEvidenceRepository::new();
        let found = PresetRequest { id: row.id, workspace_id: row.workspace_id, preset: row.preset };
        evidence.expect_find_presets().returning(move |_| Ok(vec![found.clone()]));
        evidence.expect_label().returning(|_, _, _, _| Ok(vec![LabelOutcome::Changed]));
        let presets = self.store.presets();
        let labels = LabelAnswers { evidence: Arc::new(evidence), presets, ledger: Arc::new(ledger) };
        let draft = LabelDraft { id, question, value, source: LabelSource::Human };
        let outcome = labels.execute(&Change::plain(by), &[draft]).await?.remove(0);
        outcome.map(drop).map_err(|error| EvidenceError::Label { question: "q".to_owned(), error })
    }

    fn create_workspace(&self) -> CreateWorkspace {
        CreateWorkspace::new(self.store.workspaces(), Arc::clone(&self.clock) as _, Arc::clone(&self.ids) as _)
    }

    fn workspaces(&self) -> ManageWorkspaces {
        ManageWorkspaces::new(self.store.workspaces(), self.store.limits(), Arc::clone(&self.clock) as _)
    }

    fn read_workspaces(&self) -> ReadWorkspaces {
        ReadWorkspaces::new(self.store.workspaces(), self.store.limits())
    }

    fn delete_workspace(&self) -> DeleteWorkspace {
        DeleteWorkspace {
            workspaces: self.store.workspaces(),
            keys: self.keys(),
            documents: DeleteDocument::new(
                self.store.documents(),
                Arc::new(MemoryBlobStore::new(FixedClock::default())),
            ),
            destinations: self.destinations(),
            guardrails: self.guardrails(),
        }
    }

    fn create_key(&self) -> CreateApiKey {
        let (clock, ids) = (Arc::clone(&self.clock) as _, Arc::clone(&self.ids) as _);
        CreateApiKey::new(self.store.api_keys(), clock, ids, Arc::clone(&self.secrets) as _)
    }

    fn keys(&self) -> ManageApiKeys {
        ManageApiKeys::new(self.store.api_keys(), Arc::clone(&self.clock) as _)
    }
}

impl Fixture {
    async fn new() -> Self {
        let fixture =
            Self { store: MemoryStore::new(), ids: Arc::default(), clock: Arc::default(), secrets: Arc::default() };
        fixture.create_workspace().default(&Authority::system()).await.unwrap();
        fixture
    }

    async fn place(&self, name: &str) -> Place {
        let by = Authority::system();
        let workspace = self
            .create_workspace()
            .execute(&Change::plain(&by), &WorkspaceChange::named(name), false)
            .await
            .unwrap()
            .id;
        let credit = Usd::from_pico(1 << 40);
        self.workspaces().add_credit(&Change::plain(&by), &(&workspace).into(), credit).await.unwrap();
        let (key, _) =
            self.create_key().execute(&Change::plain(&by), new_key(ApiKeyScope::Inference(workspace))).await.unwrap();
        let draft = GuardrailDraft::named("g").in_workspace(workspace);
        let guardrail = self.guardrails().create(&Change::plain(&by), &draft).await.unwrap().guardrail.id;
        let default_guardrail = self.guardrails().create(&Change::plain(&by), &draft).await.unwrap().guardrail.id;
        let default =
            WorkspaceChange { default_guardrail_id: Edit::Set(default_guardrail), ..WorkspaceChange::default() };
        self.workspaces().update(&Change::plain(&by), &(&workspace).into(), &default).await.unwrap();
        let destination =
            self.destinations().create(&Change::plain(&by), Some(workspace), &webhook()).await.unwrap().id;
        let (change, config) = (Change::plain(&by), preset_config());
        let preset = self.presets().add_version(&change, Some(workspace), "triage", &config).await.unwrap().preset.id;
        Place { workspace, key: (&key.id).into(), guardrail, default_guardrail, destination, preset }
    }
}

fn new_key(scope: ApiKeyScope) -> NewApiKey {
    NewApiKey::named("k", scope)
}

fn disabled() -> ApiKeyChange {
    ApiKeyChange { disabled: Some(true), ..ApiKeyChange::default() }
}

fn webhook() -> DestinationFields {
    DestinationFields {
        name: Some("d".to_owned()),
        kind: Some("webhook".to_owned()),
        url: Some("https://example.com/in".to_owned()),
        secret: Edit::Set("a secret of sufficient length".to_owned()),
        ..DestinationFields::default()
    }
}

fn preset_config() -> PresetConfig {
    let text = r#"{"model":"a/b","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    PresetConfig::read(&Json::parse(text).unwrap()).unwrap()
}

/// Returns the evidence of an answer to [`preset_config`].
fn evidence(place: &Place) -> Evidence {
    let answer = AnswerEvidence {
        position: 0,
        question: "q".to_owned(),
        model: "a/b".parse().unwrap(),
        provider: "acme".into(),
        wire: "system-one".into(),
        method: AnswerMethod::Native,
        decision: Json::parse("true").unwrap(),
        probabilities: None,
    };
    Evidence {
        id: "gen-dec-1".parse().unwrap(),
        workspace_id: place.workspace,
        preset: PresetReference { id: place.preset, version: 1 },
        answer,
        created_at: DateTime::UNIX_EPOCH,
        label: None,
        cost: None,
        latency: None,
    }
}

fn renamed() -> GuardrailDraft {
    GuardrailDraft::read(&Json::parse(r#"{"name":"other"}"#).unwrap()).unwrap()
}

fn default_in(workspace: WorkspaceId) -> GuardrailDraft {
    let record = format!(r#"{{"name":"d","workspace_id":"{workspace}","workspace_default":true}}"#);
    GuardrailDraft::read(&Json::parse(&record).unwrap()).unwrap()
}

fn rows() -> Vec<Model> {
    vec![Model::minimal("a/b".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))]
}

/// The result of a use case: its error's kind and message.
type Outcome = Result<(), (ErrorKind, String)>;
type Run = for<'a> fn(&'a Fixture, &'a Authority, &'a Place) -> LocalBoxFuture<'a, Outcome>;

/// A case that runs one use case.
macro_rules! case {
    (|$fixture:ident, $by:ident, $place:ident| $call:expr) => {
        |$fixture, $by, $place| {
            Box::pin(async move {
                let result = $call.await;
                result.map(drop).map_err(|error| (error.kind(), error.to_string()))
            })
        }
    };
}

/// A use case: its name, the rights that it needs before it looks for the resource, and after.
struct Case(&'static str, &'static [Right], Option<Right>, Run);

const KEYS: &[Right] = &[Right::Keys];
const WRITE: &[Right] = &[Right::Write];
const READ: &[Right] = &[Right::Read];
const UNRESTRICTED: &[Right] = &[Right::Unrestricted];

fn key_cases() -> Vec<Case> {
    vec![
        Case(
            "create key",
            KEYS,
            None,
            case!(|f, by, p| f.create_key().execute(&Change::plain(by), new_key(ApiKeyScope::Inference(p.workspace)))),
        ),
        Case(
            "create unique key",
            KEYS,
            None,
            case!(|f, by, p| f.create_key().execute_unique(
                &Change::plain(by),
                NewApiKey { name: "u".to_owned(), ..new_key(ApiKeyScope::Inference(p.workspace)) }
            )),
        ),
        Case(
            "update key",
            KEYS,
            None,
            case!(|f, by, p| f.keys().update(
                &Change::plain(by),
                &p.key,
                &ApiKeyChange { name: Some("n".to_owned()), ..ApiKeyChange::default() }
            )),
        ),
        Case("disable key", KEYS, None, case!(|f, by, p| f.keys().update(&Change::plain(by), &p.key, &disabled()))),
        Case("delete key", KEYS, None, case!(|f, by, p| f.keys().delete(&Change::plain(by), &p.key))),
        Case(
            "rotate key",
            KEYS,
            None,
            case!(|f, by, p| RotateApiKey::new(
                f.store.api_keys(),
                Arc::new(NoGrantCache),
                Arc::clone(&f.secrets) as _,
                Arc::clone(&f.clock) as _
            )
            .execute(&Change::plain(by), &p.key, std::time::Duration::ZERO)),
        ),
    ]
}

fn guardrail_cases() -> Vec<Case> {
    let bounds = Some(Right::Unrestricted);
    vec![
        Case("read workspace", READ, None, case!(|f, by, p| f.read_workspaces().get(by, &(&p.workspace).into()))),
        Case("read budgets", READ, None, case!(|f, by, p| f.read_workspaces().budgets(by, &(&p.workspace).into()))),
        Case("read credit", READ, None, case!(|f, by, p| f.read_workspaces().credit(by, Some(p.workspace)))),
        Case("list destinations", READ, None, case!(|f, by, p| f.destinations().list(by, Some(p.workspace), 0, 9))),
        Case(
            "list assignments",
            READ,
            None,
            case!(|f, by, p| f.guardrails().list_all_assigned_keys(by, Some(p.workspace), 0, 9)),
        ),
        Case("list guardrails", READ, None, case!(|f, by, p| f.guardrails().list(by, Some(p.workspace), 0, 9))),
        Case("get guardrail", READ, None, case!(|f, by, p| f.guardrails().get(by, &p.guardrail.to_string()))),
        Case(
            "list versions",
            READ,
            None,
            case!(|f, by, p| f.guardrails().list_versions(by, &p.guardrail.to_string(), 0, 9)),
        ),
        Case("get version", READ, None, case!(|f, by, p| f.guardrails().get_version(by, &p.guardrail.to_string(), 1))),
        Case(
            "list assigned keys",
            READ,
            None,
            case!(|f, by, p| f.guardrails().list_assigned_keys(by, &p.guardrail.to_string(), 0, 9)),
        ),
        Case(
            "assign keys",
            WRITE,
            None,
            case!(|f, by, p| AssignKeysToGuardrail::new(f.store.guardrails()).execute(
                &Change::plain(by),
                &p.guardrail.to_string(),
                [p.key.as_str().to_owned()]
            )),
        ),
        Case(
            "remove keys",
            WRITE,
            None,
            case!(|f, by, p| f.guardrails().remove_keys(
                &Change::plain(by),
                &p.guardrail.to_string(),
                [p.key.as_str().to_owned()]
            )),
        ),
        Case(
            "create guardrail",
            WRITE,
            None,
            case!(|f, by, p| f
                .guardrails()
                .create(&Change::plain(by), &GuardrailDraft::named("x").in_workspace(p.workspace))),
        ),
        Case(
            "create default guardrail",
            &[Right::Write, Right::Unrestricted],
            None,
            case!(|f, by, p| f.guardrails().create(&Change::plain(by), &default_in(p.workspace))),
        ),
        Case(
            "update guardrail",
            WRITE,
            None,
            case!(|f, by, p| f.guardrails().update(&Change::plain(by), &p.guardrail.to_string(), &renamed())),
        ),
        Case(
            "update default guardrail",
            WRITE,
            bounds,
            case!(|f, by, p| f.guardrails().update(&Change::plain(by), &p.default_guardrail.to_string(), &renamed())),
        ),
        Case(
            "make default by update",
            WRITE,
            bounds,
            case!(|f, by, p| f.guardrails().update(
                &Change::plain(by),
                &p.guardrail.to_string(),
                &GuardrailDraft::read(&Json::parse(r#"{"workspace_default":true}"#).unwrap()).unwrap()
            )),
        ),
        Case(
            "restore version",
            WRITE,
            None,
            case!(|f, by, p| f.guardrails().restore_version(&Change::plain(by), &p.guardrail.to_string(), 1)),
        ),
        Case(
            "restore version of default",
            WRITE,
            bounds,
            case!(|f, by, p| f.guardrails().restore_version(&Change::plain(by), &p.default_guardrail.to_string(), 1)),
        ),
        Case(
            "delete guardrail",
            WRITE,
            None,
            case!(|f, by, p| f.guardrails().delete(&Change::plain(by), &p.guardrail.to_string())),
        ),
        Case(
            "delete default guardrail",
            WRITE,
            bounds,
            case!(|f, by, p| f.guardrails().delete(&Change::plain(by), &p.default_guardrail.to_string())),
        ),
    ]
}

fn destination_cases() -> Vec<Case> {
    vec![
        Case(
            "add preset version",
            WRITE,
            None,
            case!(|f, by, p| f.presets().add_version(
                &Change::plain(by),
                Some(p.workspace),
                "triage",
                &preset_config()
            )),
        ),
        Case(
            "update preset",
            WRITE,
            None,
            case!(|f, by, p| f.presets().update(
                &Change::plain(by),
                Some(p.workspace),
                "triage",
                &PresetChange { name: Some("n".to_owned()), ..PresetChange::default() }
            )),
        ),
        Case("label answer", WRITE, None, case!(|f, by, p| f.label(by, p))),
        Case("get destination", READ, None, case!(|f, by, p| f.destinations().get(by, &p.destination.to_string()))),
        Case(
            "update destination",
            WRITE,
            None,
            case!(|f, by, p| f.destinations().update(
                &Change::plain(by),
                &p.destination.to_string(),
                &DestinationFields { name: Some("n".to_owned()), ..DestinationFields::default() }
            )),
        ),
        Case(
            "test destination",
            WRITE,
            None,
            case!(|f, by, p| f.destinations().test(&Change::plain(by), &p.destination.to_string())),
        ),
        Case(
            "delete destination",
            WRITE,
            None,
            case!(|f, by, p| f.destinations().delete(&Change::plain(by), &p.destination.to_string())),
        ),
        Case(
            "retry dead letters",
            WRITE,
            None,
            case!(|f, by, p| RetryDeadLetters::new(
                f.store.outbox(),
                f.store.destinations(),
                Arc::clone(&f.clock) as _
            )
            .execute(&Change::plain(by), p.destination)),
        ),
    ]
}

fn instance_cases() -> Vec<Case> {
    vec![
        Case(
            "create management key",
            UNRESTRICTED,
            None,
            case!(|f, by, _p| f
                .create_key()
                .execute(&Change::plain(by), new_key(ApiKeyScope::Management(ManagementScope::UNRESTRICTED)))),
        ),
        Case(
            "create workspace",
            UNRESTRICTED,
            None,
            case!(|f, by, _p| f.create_workspace().execute(&Change::plain(by), &WorkspaceChange::named("w"), false)),
        ),
        Case(
            "create unique workspace",
            UNRESTRICTED,
            None,
            case!(|f, by, _p| f.create_workspace().execute(&Change::plain(by), &WorkspaceChange::named("u"), true)),
        ),
        Case(
            "update workspace",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.workspaces().update(
                &Change::plain(by),
                &(&p.workspace).into(),
                &WorkspaceChange::named("n")
            )),
        ),
        Case(
            "delete workspace",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.delete_workspace().execute(
                &Change::plain(by),
                &(&p.workspace).into(),
                &WorkspaceContent::ALL
            )),
        ),
        Case(
            "set budget",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.workspaces().set_budget(
                &Change::plain(by),
                &(&p.workspace).into(),
                None,
                Some(Usd::from_pico(9))
            )),
        ),
        Case(
            "change budgets",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.workspaces().change_budgets(
                &Change::plain(by),
                &(&p.workspace).into(),
                BudgetsChange { daily: Edit::Set(Usd::from_pico(7)), ..BudgetsChange::default() }
            )),
        ),
        Case(
            "add credit",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.workspaces().add_credit(&Change::plain(by), &(&p.workspace).into(), Usd::from_pico(1))),
        ),
        Case(
            "clear credit",
            UNRESTRICTED,
            None,
            case!(|f, by, p| f.workspaces().clear_credit(&Change::plain(by), &(&p.workspace).into())),
        ),
        Case(
            "preview import",
            UNRESTRICTED,
            None,
            case!(|f, by, _p| ImportCatalogue::new(f.store.models()).preview(
                &Change::plain(by),
                rows(),
                ImportMode::Merge
            )),
        ),
        Case(
            "import",
            UNRESTRICTED,
            None,
            case!(|f, by, _p| ImportCatalogue::new(f.store.models()).execute(
                &Change::plain(by),
                rows(),
                ImportMode::Merge
            )),
        ),
        Case(
            "list audit entries",
            &[Right::ReadAll],
            None,
            case!(|f, by, _p| ListAuditEntries::new(f.store.audit_log()).page(by, &AuditFilter::default(), None, 9)),
        ),
    ]
}

/// Returns a management key's authority; `workspaces` is that of a narrowed key.
fn caller(access: ManagementAccess, workspaces: Option<WorkspaceId>) -> Authority {
    let scope = ManagementScope::try_new(access, workspaces.map(|id| vec![id])).unwrap();
    ManagementKey::for_tests(SequentialIds::key(1)).with_scope(scope).authority(Actor::system())
}

#[tokio::test]
async fn use_cases_check_right_then_workspace() {
    let mut wrong = Vec::new();
    for Case(name, before, after, run) in
        [key_cases(), guardrail_cases(), destination_cases(), instance_cases()].into_iter().flatten()
    {
        for access in ManagementAccess::ALL {
            for (is_narrowed, is_own) in [(true, true), (true, false), (false, true), (false, false)] {
                let fixture = Fixture::new().await;
                let places = [fixture.place("own").await, fixture.place("other").await];
                let by = caller(access, is_narrowed.then_some(places[0].workspace));
                let place = &places[usize::from(!is_own)];
                let denied = |right: &Right| by.check(*right).err().map(|error| (error.kind(), error.to_string()));
                let (first, second) = (before.iter().find_map(denied), after.as_ref().and_then(denied));
                let outcome = run(&fixture, &by, place).await;
                let is_expected = match (&outcome, first, second) {
                    (Err((kind, _)), None, _) if is_narrowed && !is_own => *kind == ErrorKind::NotFound,
                    (Err(error), Some(restricted), _) | (Err(error), None, Some(restricted)) => *error == restricted,
                    (result, first, second) => {
                        result.is_ok() && first.is_none() && second.is_none() && (is_own || !is_narrowed)
                    }
                };
                if !is_expected {
                    wrong.push(format!("{name}, {access:?}, narrowed {is_narrowed}, own {is_own}: {outcome:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn lists_contain_workspaces_of_the_caller_only() {
    let fixture = Fixture::new().await;
    let (own, other) = (fixture.place("own").await, fixture.place("other").await);
    let by = caller(ManagementAccess::Read, Some(own.workspace));
    let ids = async |named| {
        let found = fixture.destinations().list(&by, named, 0, 9).await.map(|(found, _)| found).unwrap_or_default();
        found.into_iter().map(|destination| destination.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, [own.destination]);
    assert_eq!(ids(Some(other.workspace)).await, []);
    let (guardrails, total) = fixture.guardrails().list(&by, None, 0, 9).await.unwrap();
    assert_eq!(total, 2, "the key's only workspace");
    assert!(guardrails.iter().all(|placed| placed.guardrail.workspace_id == own.workspace));
    let all = caller(ManagementAccess::Read, None);
    assert_eq!(fixture.destinations().list(&all, None, 0, 9).await.unwrap().1, 2);
}

/// Only an unrestricted caller sees management keys: for another they are unknown, even with all workspaces.
#[tokio::test]
async fn management_keys_are_visible_to_unrestricted_callers_only() {
    let fixture = Fixture::new().await;
    let scope = || ApiKeyScope::Management(ManagementScope::UNRESTRICTED);
    let (key, _) = fixture.create_key().execute(&Change::plain(&Authority::system()), new_key(scope())).await.unwrap();
    fixture.create_key().execute(&Change::plain(&Authority::system()), new_key(scope())).await.unwrap();
    let (name, keys): (ResourceName, _) = ((&key.id).into(), fixture.keys());
    for by in [
        caller(ManagementAccess::Keys, None),
        caller(ManagementAccess::Write, Some(WorkspaceId::from_uuid(SequentialIds::uuid(1)))),
    ] {
        assert_eq!(keys.delete(&Change::plain(&by), &name).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(keys.update(&Change::plain(&by), &name, &disabled()).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    let scope = |access, workspaces| Edit::Set(ManagementScope::try_new(access, workspaces).unwrap());
    let change = ApiKeyChange { management: scope(ManagementAccess::Read, None), ..ApiKeyChange::default() };
    let unrestricted = caller(ManagementAccess::Write, None);
    let narrowed = keys.update(&Change::plain(&unrestricted), &name, &change).await.unwrap();
    assert_eq!(narrowed.scope.management().unwrap().access(), ManagementAccess::Read);
    keys.delete(&Change::plain(&unrestricted), &name).await.unwrap();
}

/// A key cannot lock management over HTTP out; the operator can.
#[tokio::test]
async fn last_unrestricted_key_is_changed_by_the_operator_only() {
    let fixture = Fixture::new().await;
    let scope = ApiKeyScope::Management(ManagementScope::UNRESTRICTED);
    let (key, _) = fixture.create_key().execute(&Change::plain(&Authority::system()), new_key(scope)).await.unwrap();
    let (name, keys): (ResourceName, _) = ((&key.id).into(), fixture.keys());
    let by = caller(ManagementAccess::Write, None);
    let expiry = Edit::Set("2100-01-01T00:00:00Z".parse().unwrap());
    let scope = |access, workspaces| Edit::Set(ManagementScope::try_new(access, workspaces).unwrap());
    let one = Some(vec![WorkspaceId::from_uuid(SequentialIds::uuid(1))]);
    let changes = [
        ApiKeyChange { management: scope(ManagementAccess::Keys, None), ..ApiKeyChange::default() },
        ApiKeyChange { management: scope(ManagementAccess::Write, one), ..ApiKeyChange::default() },
        ApiKeyChange { expires_at: expiry, ..ApiKeyChange::default() },
    ];
    for change in &changes {
        assert_eq!(
            keys.update(&Change::plain(&by), &name, change).await.unwrap_err().kind(),
            ErrorKind::Conflict,
            "{change:?}"
        );
    }
    assert_eq!(keys.update(&Change::plain(&by), &name, &disabled()).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(keys.delete(&Change::plain(&by), &name).await.unwrap_err().kind(), ErrorKind::Conflict);
    keys.update(&Change::plain(&Authority::system()), &name, &changes[0]).await.unwrap();
    keys.delete(&Change::plain(&Authority::system()), &name).await.unwrap();
}
