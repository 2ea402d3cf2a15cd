//! Tests of the use cases of presets.

use super::*;
use crate::authority::ManagementAccess;
use crate::error::ErrorKind;
use crate::model::Pricing;
use crate::preset::fixtures::config;
use crate::testing::{FixedClock, MemoryCatalogue, MemoryStore, SequentialIds, join_all};
use crate::version::{IfMatch, Version};
use crate::workspace::{CreateWorkspace, WorkspaceChange};

struct Setup {
    manage: ManagePresets,
    store: MemoryStore,
    workspace: WorkspaceId,
}

impl Setup {
    async fn new() -> Self {
        let (store, ids) = (MemoryStore::new(), Arc::new(SequentialIds::default()));
        let create = CreateWorkspace::new(store.workspaces(), Arc::new(FixedClock::default()), ids.clone());
        let by = Authority::system();
        create.default(&by).await.unwrap();
        let workspace = create.execute(&Change::plain(&by), &WorkspaceChange::named("a"), false).await.unwrap().id;
        let free = Pricing::per_token("0".parse().unwrap(), "0".parse().unwrap());
        let row = Model::minimal("a/b".parse().unwrap(), free);
        let manage = ManagePresets {
            presets: store.presets(),
            workspaces: store.workspaces(),
            catalogue: Arc::new(MemoryCatalogue::new(vec![row])),
            clock: Arc::new(FixedClock::default()),
            ids,
        };
        Self { manage, store, workspace }
    }

    async fn add(&self, slug: &str, question: &str) -> Result<DesignatedPreset, PresetError> {
        self.add_if(None, slug, question).await
    }

    async fn add_if(
        &self,
        accepted: Option<Version>,
        slug: &str,
        question: &str,
    ) -> Result<DesignatedPreset, PresetError> {
        let by = Authority::system();
        let change = Change::conditional(&by, accepted.map(|version| IfMatch::Versions(vec![version])));
        self.manage.add_version(&change, Some(self.workspace), slug, &config("a/b", question)).await
    }

    async fn update(&self, slug: &str, members: PresetChange) -> Result<DesignatedPreset, PresetError> {
        let by = Authority::system();
        self.manage.update(&Change::plain(&by), Some(self.workspace), slug, &members).await
    }
}

fn name(text: &str) -> PresetChange {
    PresetChange { name: Some(text.to_owned()), ..PresetChange::default() }
}

#[tokio::test]
async fn workspace_has_a_bounded_number_of_presets() {
    let setup = Setup::new().await;
    for number in 0..Preset::MAX_IN_WORKSPACE {
        setup.add(&format!("p{number}"), "one").await.unwrap();
    }
    let error = setup.add("surplus", "one").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("at most 1000 presets"), "{error}");
    assert_eq!(setup.add("p7", "two").await.unwrap().version.number, 2, "versions of the others are added");
}

#[tokio::test]
async fn add_version_creates_preset_and_designates_each_next_version() {
    let setup = Setup::new().await;
    let first = setup.add("triage", "one").await.unwrap();
    assert_eq!((first.preset.slug.as_str(), first.preset.name.as_str()), ("triage", "triage"));
    assert_eq!((first.version.number, first.preset.status), (1, PresetStatus::Active));
    setup.update("triage", PresetChange { status: Some(PresetStatus::Disabled), ..name("Triage") }).await.unwrap();
    let second = setup.add("triage", "two").await.unwrap();
    assert_eq!((second.preset.id, second.preset.designated_version, second.version.number), (first.preset.id, 2, 2));
    assert_eq!((second.preset.status, second.preset.name.as_str()), (PresetStatus::Disabled, "Triage"), "they stay");
    let (_, versions) = setup.manage.list_versions(setup.workspace, "triage", 0, 9).await.unwrap();
    assert_eq!(versions, [first.version.clone(), second.version.clone()]);
    let (_, last) = setup.manage.list_versions(setup.workspace, "triage", 1, 1).await.unwrap();
    assert_eq!(last, [second.version]);
    assert_eq!(setup.manage.get_version(setup.workspace, "triage", 1).await.unwrap().1, first.version);
    for number in [0, 3] {
        let missing = setup.manage.get_version(setup.workspace, "triage", number).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound, "{number}");
    }
    for slug in ["", "Triage", "a--b", "../x", "01990000-0000-7000-8000-000000000001"] {
        assert_eq!(setup.add(slug, "q").await.unwrap_err().kind(), ErrorKind::InvalidRequest, "{slug}");
    }
}

#[tokio::test]
async fn update_changes_given_members_and_rolls_back() {
    let setup = Setup::new().await;
    let first = setup.add("triage", "one").await.unwrap();
    setup.add("triage", "two").await.unwrap();
    let rolled_back = PresetChange { designated_version_id: Some(first.preset.version_id(1)), ..name("First") };
    let after = setup.update("triage", rolled_back.clone()).await.unwrap();
    assert_eq!((after.preset.name.as_str(), &after.version), ("First", &first.version));
    assert_eq!(after.preset.status_updated_at, None);
    let entries = setup.store.audit_log();
    let count = async || crate::audit::AuditLog::newest(&*entries, 100).await.unwrap().len();
    let before = count().await;
    assert_eq!(setup.update("triage", rolled_back).await.unwrap(), after, "nothing changes");
    assert_eq!(count().await, before);
    let archived = PresetChange { status: Some(PresetStatus::Archived), ..PresetChange::default() };
    assert!(setup.update("triage", archived).await.unwrap().preset.status_updated_at.is_some());
    let unknown = |id: String| PresetChange { designated_version_id: Some(id), ..PresetChange::default() };
    for (change, kind) in [
        (PresetChange::default(), ErrorKind::InvalidRequest),
        (name(" "), ErrorKind::InvalidRequest),
        (name("a\nb"), ErrorKind::InvalidRequest),
        (name(&"a".repeat(201)), ErrorKind::InvalidRequest),
        (unknown(first.preset.version_id(3)), ErrorKind::InvalidRequest),
        (unknown("1".to_owned()), ErrorKind::InvalidRequest),
    ] {
        assert_eq!(setup.update("triage", change.clone()).await.unwrap_err().kind(), kind, "{change:?}");
    }
    assert_eq!(setup.update("other", name("n")).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn changes_check_the_version_and_lose_no_concurrent_one() {
    let setup = Setup::new().await;
    let first = setup.add("triage", "one").await.unwrap();
    let second = setup.add_if(Some(first.preset.version()), "triage", "two").await.unwrap();
    let stale = setup.add_if(Some(first.preset.version()), "triage", "three").await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::PreconditionFailed);
    let absent = setup.add_if(Some(second.preset.version()), "absent", "q").await.unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::PreconditionFailed);
    let added = join_all((0..4).map(|_| setup.add("triage", "q"))).await;
    let mut numbers: Vec<u32> = added.into_iter().map(|added| added.unwrap().version.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [3, 4, 5, 6]);
}

#[tokio::test]
async fn version_names_models_that_answer_decisions() {
    let setup = Setup::new().await;
    let by = Authority::system();
    let add = async |model: &str| {
        setup.manage.add_version(&Change::plain(&by), Some(setup.workspace), "triage", &config(model, "q")).await
    };
    let error = add("a/c").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let expected = "\"a/c\" is not a model that answers Decisions requests; nearest: a/b";
    assert_eq!(error.to_string(), expected);
    assert_eq!(setup.manage.get(setup.workspace, "triage").await.unwrap_err().kind(), ErrorKind::NotFound);
    for model in ["B", "a/b:floor", "sandbox/decider"] {
        add(model).await.unwrap();
    }
}

#[tokio::test]
async fn changes_need_write_access_to_the_workspace() {
    let setup = Setup::new().await;
    setup.add("triage", "one").await.unwrap();
    let other = WorkspaceId::from_uuid(SequentialIds::uuid(77));
    for (access, workspace, kind) in [
        (ManagementAccess::Keys, setup.workspace, ErrorKind::Forbidden),
        (ManagementAccess::Write, other, ErrorKind::NotFound),
    ] {
        let scope = ManagementScope::try_new(access, Some(vec![workspace])).unwrap();
        let by = Authority::of_key(crate::audit::Actor::system(), scope);
        let change = Change::plain(&by);
        let added =
            setup.manage.add_version(&change, Some(setup.workspace), "triage", &config("a/b", "q")).await.unwrap_err();
        let changed = setup.manage.update(&change, Some(setup.workspace), "triage", &name("n")).await.unwrap_err();
        assert_eq!((added.kind(), changed.kind()), (kind, kind), "{access:?}");
    }
}
