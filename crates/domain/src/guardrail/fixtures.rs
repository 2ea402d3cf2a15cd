//! Fixtures for the tests of guardrails.

use std::sync::{Arc, LazyLock};

use super::{Guardrail, GuardrailDraft, GuardrailName, GuardrailRules, InvalidGuardrail, KnownNames, ManageGuardrails};
use crate::audit::{Actor, AuditDraft};
use crate::authority::Authority;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::json::Json;
use crate::model::{AliasTarget, Model, Pricing};
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::routing::{Endpoint, EndpointDirectory, Wire};
use crate::testing::{FixedClock, MemoryCatalogue, MemoryStore, SequentialIds};
use crate::workspace::{Workspace, WorkspaceName, WorkspaceRepository, WorkspaceSlug};

pub(crate) fn row(id: &str, canonical: &str) -> Model {
    let pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
    Model { canonical_slug: canonical.parse().unwrap(), ..Model::minimal(id.parse().unwrap(), pricing) }
}

/// The models `acme/judge` with a variant, a former name and an alias, two others, and a model that is no decider.
pub(crate) fn rows() -> Vec<Model> {
    let mut judge = row("acme/judge", "acme/judge-20260901");
    judge.renamed_from = vec!["acme/judge-next".parse().unwrap()];
    let mut alias = row("~acme/judge-latest", "~acme/judge-latest");
    alias.alias_target = Some(AliasTarget { name: "Judge".to_owned(), slug: "acme/judge".parse().unwrap() });
    let mut writer = row("rival/writer", "rival/writer");
    writer.architecture.output_modalities = vec!["text".to_owned()];
    vec![
        judge,
        row("acme/judge:free", "acme/judge-20260901"),
        alias,
        row("rival/oracle", "rival/oracle-1"),
        row("openai/decider", "openai/decider"),
        writer,
    ]
}

pub(crate) fn endpoint(model: &str, provider: &str) -> Endpoint {
    Endpoint::new(model.parse().unwrap(), provider.parse().unwrap(), Wire::SystemOne, "m")
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let sandbox = Endpoint::new("sandbox/decider".parse().unwrap(), "sandbox".parse().unwrap(), Wire::Sandbox, "d");
    let free = TokenPrices { prompt: Price::ZERO, completion: Price::ZERO };
    let sandbox = Endpoint { prices: Some(free), ..sandbox };
    vec![
        endpoint("acme/judge", "typesafe"),
        endpoint("acme/judge", "mirror"),
        endpoint("acme/judge:free", "mirror"),
        endpoint("rival/oracle", "mirror"),
        endpoint("openai/decider", "typesafe"),
        sandbox,
    ]
}

pub(crate) fn names() -> KnownNames {
    KnownNames::new(Arc::new(MemoryCatalogue::new(rows())), Arc::new(EndpointDirectory::new(endpoints())))
}

pub(crate) fn workspace_id(number: u64) -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(number))
}

pub(crate) fn guardrail_id(number: u64) -> GuardrailId {
    GuardrailId::from_uuid(SequentialIds::uuid(number))
}

pub(crate) fn guardrail(number: u64) -> Guardrail {
    Guardrail {
        id: guardrail_id(number),
        workspace_id: workspace_id(900),
        name: GuardrailName::try_new("strict").unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version: 1,
        created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        updated_at: None,
    }
}

pub(crate) fn read(text: &str) -> Result<GuardrailDraft, InvalidGuardrail> {
    GuardrailDraft::read(&Json::parse(text).unwrap())
}

/// Applies a draft to a new guardrail.
pub(crate) fn apply_draft(text: &str) -> Result<Guardrail, InvalidGuardrail> {
    read(text)?.apply(guardrail(1), &names())
}

pub(crate) fn actor() -> Actor {
    Actor { name: "user:ada".to_owned(), source: Some("203.0.113.9".to_owned()) }
}

pub(crate) fn by() -> Authority {
    Authority::operator(actor())
}

fn workspace(number: u64) -> Workspace {
    Workspace {
        id: workspace_id(number),
        name: WorkspaceName::try_new("w").unwrap(),
        slug: WorkspaceSlug::try_new(&format!("w-{number}")).unwrap(),
        description: None,
        owner_id: None,
        is_default: false,
        suspended: false,
        credit: None,
        budgets: crate::budget::WorkspaceBudgets::default(),
        rates: crate::rate::RateLimits::default(),
        default_guardrail_id: None,
        storage_used_bytes: 0,
        created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        updated_at: None,
    }
}

/// A store with workspace 900, the default one, and workspace 901.
pub(crate) async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    let audit = AuditDraft::done(&Actor::system(), "test", "s", Json::object([]));
    store.workspaces().default_or_insert(&workspace(900), &audit).await.unwrap();
    store.workspaces().insert(&workspace(901), false, &audit).await.unwrap();
    store
}

/// Shared by all ports, so that no two guardrails of a test get the same id.
static IDS: LazyLock<SequentialIds> = LazyLock::new(SequentialIds::default);

pub(crate) fn ports(store: &MemoryStore) -> ManageGuardrails {
    ManageGuardrails {
        guardrails: store.guardrails(),
        workspaces: store.workspaces(),
        names: names(),
        clock: Arc::new(FixedClock::default()),
        ids: Arc::new(IDS.clone()),
    }
}
