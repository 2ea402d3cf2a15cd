use super::*;
use crate::api_key::{ApiKeyRepository, ApiKeyScope, CreateApiKey, NewApiKey};
use crate::container::{BlobStore, MockBlobStore};
use crate::edit::Edit;
use crate::guardrail::{GuardrailDraft, GuardrailRepository, KnownNames};
use crate::observability::{DestinationFields, DestinationRepository, MockMessageSender};
use crate::routing::EndpointDirectory;
use crate::testing::{
    FixedClock, FixedSecrets, MemoryBlobStore, MemoryByteSource, MemoryCatalogue, MemoryStore, SequentialIds,
};
use crate::version::IfMatch;
use crate::workspace::{CreateWorkspace, ManageWorkspaces, WorkspaceChange};

#[tokio::test]
async fn look_for_late_files_cannot_fail_a_deletion_that_is_done() {
    let mut fixture = fixture();
    let id = fixture.workspace().await;
    let (mut blobs, mut lists) = (MockBlobStore::new(), 0);
    blobs.expect_list().times(2).returning(move |_, _, _| {
        lists += 1;
        if lists == 1 { Ok(Vec::new()) } else { Err(StoreError::unavailable("x")) }
    });
    fixture.delete.documents = DeleteDocument::new(fixture.store.documents(), Arc::new(blobs));
    let (by, name) = (Authority::system(), ResourceName::from(&id));
    let deleted = fixture.delete.execute(&Change::plain(&by), &name, &[]).await.unwrap();
    assert_eq!((deleted.workspace.id, fixture.delete.workspaces.find(id).await.unwrap()), (id, None));
}

#[test]
fn content_that_is_gone_counts_as_deleted() {
    let gone = ChangeApiKeyError::Name(NameError::Unknown);
    assert!(unless_gone::<(), _>(Err(gone)).is_ok());
    let failed = ChangeApiKeyError::Store(StoreError::unavailable("x"));
    assert_eq!(unless_gone::<(), _>(Err(failed)).unwrap_err().kind(), ErrorKind::Unavailable);
}

struct Fixture {
    store: MemoryStore,
    clock: Arc<FixedClock>,
    ids: Arc<SequentialIds>,
    delete: DeleteWorkspace,
    blobs: Arc<MemoryBlobStore>,
}

fn fixture() -> Fixture {
    let store = MemoryStore::new();
    let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
    let catalogue = Arc::new(MemoryCatalogue::new(Vec::new()));
    let mut sender = MockMessageSender::new();
    sender.expect_send().returning(|_, _| Ok(()));
    let blobs = Arc::new(MemoryBlobStore::new(FixedClock::default()));
    let delete = DeleteWorkspace {
        workspaces: store.workspaces(),
        keys: ManageApiKeys::new(store.api_keys(), clock.clone()),
        documents: DeleteDocument::new(store.documents(), blobs.clone()),
        destinations: ManageDestinations {
            destinations: store.destinations(),
            workspaces: store.workspaces(),
            keys: store.api_keys(),
            sender: Arc::new(sender),
            clock: clock.clone(),
            ids: ids.clone(),
        },
        guardrails: ManageGuardrails {
            guardrails: store.guardrails(),
            workspaces: store.workspaces(),
            names: KnownNames::new(catalogue, Arc::new(EndpointDirectory::new(Vec::new()))),
            clock: clock.clone(),
            ids: ids.clone(),
        },
    };
    Fixture { store, clock, ids, delete, blobs }
}

impl Fixture {
    async fn workspace(&self) -> WorkspaceId {
        let create = CreateWorkspace::new(self.store.workspaces(), self.clock.clone(), self.ids.clone());
        create.default(&Authority::system()).await.unwrap();
        create.execute(&Change::plain(&Authority::system()), &WorkspaceChange::named("w"), false).await.unwrap().id
    }

    /// Adds two keys, a guardrail, a destination and two files, and a file elsewhere.
    async fn fill(&self, id: WorkspaceId) {
        let by = Authority::system();
        let secrets = Arc::new(FixedSecrets::default());
        let create = CreateApiKey::new(self.store.api_keys(), self.clock.clone(), self.ids.clone(), secrets);
        for name in ["a", "b"] {
            let key = NewApiKey::named(name, ApiKeyScope::Inference(id));
            create.execute(&Change::plain(&by), key).await.unwrap();
        }
        let draft = GuardrailDraft::named("g").in_workspace(id);
        self.delete.guardrails.create(&Change::plain(&by), &draft).await.unwrap();
        let webhook = DestinationFields {
            name: Some("d".to_owned()),
            kind: Some("webhook".to_owned()),
            url: Some("https://example.com/in".to_owned()),
            secret: Edit::Set("a secret of sufficient length".to_owned()),
            ..DestinationFields::default()
        };
        self.delete.destinations.create(&Change::plain(&by), Some(id), &webhook).await.unwrap();
        for (workspace, path) in [(id, "a/b"), (id, "c"), (WorkspaceId::from_uuid(uuid::Uuid::max()), "c")] {
            let key = BlobKey::container_file(workspace, &"c1".parse().unwrap(), &path.parse().unwrap());
            self.blobs.put(&key, MemoryByteSource::new([b"x".to_vec()]).boxed()).await.unwrap();
        }
    }

    async fn files(&self, id: WorkspaceId) -> u64 {
        self.delete.count_files(id).await.unwrap()
    }

    async fn delete(
        &self,
        id: WorkspaceId,
        with: &[WorkspaceContent],
    ) -> Result<DeletedWorkspace, DeleteWorkspaceError> {
        self.delete.execute(&Change::plain(&Authority::system()), &(&id).into(), with).await
    }
}

const FULL: WorkspaceContents =
    WorkspaceContents { keys: 2, documents: 0, guardrails: 1, destinations: 1, presets: 0, container_files: 2 };

#[tokio::test]
async fn delete_rejects_contents_that_are_not_named_and_deletes_nothing() {
    use WorkspaceContent::{ContainerFiles, Destinations, Documents, Guardrails, Keys, Presets};
    let fixture = fixture();
    let id = fixture.workspace().await;
    fixture.fill(id).await;
    for with in [
        &[][..],
        &[Keys],
        &[Documents],
        &[Keys, Guardrails, Documents],
        &[Guardrails, Destinations],
        &[Keys, Documents, Guardrails, Destinations, Presets],
    ] {
        let error = fixture.delete(id, with).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let DeleteWorkspaceError::Workspace(WorkspaceError::NotEmpty(remaining)) = error else { panic!("{error}") };
        assert_eq!(remaining, FULL.without(with));
        assert_eq!(fixture.store.api_keys().list(Some(id)).await.unwrap().len(), 2, "{with:?}");
        assert_eq!(fixture.store.guardrails().list(id).await.unwrap().len(), 1, "{with:?}");
        assert_eq!(fixture.store.destinations().list(Some(id)).await.unwrap().len(), 1, "{with:?}");
        assert_eq!(fixture.files(id).await, 2, "{with:?}");
    }
    let deleted = fixture.delete(id, &[Keys, Guardrails, Destinations, ContainerFiles]).await.unwrap();
    assert_eq!((fixture.files(id).await, fixture.files(WorkspaceId::from_uuid(uuid::Uuid::max())).await), (0, 1));
    assert_eq!((deleted.workspace.id, deleted.contents), (id, FULL));
    assert_eq!(fixture.store.workspaces().find(id).await.unwrap(), None);
    assert_eq!(fixture.store.api_keys().list(Some(id)).await.unwrap(), []);
    let again = fixture.delete(id, &[]).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn delete_rejects_default_workspace_before_it_deletes_contents() {
    let fixture = fixture();
    fixture.workspace().await;
    let workspaces = fixture.store.workspaces().list().await.unwrap();
    let default = workspaces.iter().find(|found| found.is_default).unwrap().id;
    fixture.fill(default).await;
    let error = fixture.delete(default, &WorkspaceContent::ALL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.to_string(), "the default workspace cannot be deleted");
    assert_eq!(fixture.store.api_keys().list(Some(default)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn delete_of_another_version_deletes_nothing() {
    let fixture = fixture();
    let id = fixture.workspace().await;
    fixture.fill(id).await;
    let by = Authority::system();
    let found = fixture.store.workspaces().find(id).await.unwrap().unwrap();
    let stale = Workspace { suspended: true, ..found.clone() }.version();
    let execute = async |version| {
        let change = Change::conditional(&by, Some(IfMatch::Versions(vec![version])));
        fixture.delete.execute(&change, &ResourceName::new(found.slug.as_str()), &WorkspaceContent::ALL).await
    };
    assert_eq!(execute(stale).await.unwrap_err().kind(), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.store.api_keys().list(Some(id)).await.unwrap().len(), 2);
    // Its default guardrail goes along, which changes the workspace.
    let guardrail = fixture.store.guardrails().list(id).await.unwrap()[0].id;
    let edit = WorkspaceChange { default_guardrail_id: Edit::Set(guardrail), ..WorkspaceChange::default() };
    let manage = ManageWorkspaces::new(fixture.store.workspaces(), fixture.store.limits(), fixture.clock.clone());
    manage.update(&Change::plain(&by), &(&id).into(), &edit).await.unwrap();
    let current = fixture.store.workspaces().find(id).await.unwrap().unwrap().version();
    assert_eq!(execute(current).await.unwrap().contents, FULL);
}
