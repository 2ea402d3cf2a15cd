use super::*;
use crate::audit::{Actor, AuditDraft};
use crate::authority::{ManagementAccess, ManagementScope};
use crate::change::Change;
use crate::container::MockBlobStore;
use crate::ids::WorkspaceId;
use crate::testing::{FixedClock, MemoryBlobStore, MemoryByteSource, MemoryStore, SequentialIds, join_all};
use crate::workspace::{CreateWorkspace, WorkspaceChange, WorkspaceDeletion};

struct Fixture {
    put: PutContainerFile,
    blobs: MemoryBlobStore,
    workspace: WorkspaceId,
    container: ContainerId,
}

const LIMITS: ContainerLimits = ContainerLimits { file_bytes: 10, files: 3, bytes: 25 };

impl Fixture {
    async fn new() -> Self {
        let store = MemoryStore::new();
        let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(SequentialIds::default()));
        let create = CreateWorkspace::new(store.workspaces(), clock, ids);
        let (system, one) = (Authority::system(), WorkspaceChange::named("one"));
        let workspace = create.execute(&Change::plain(&system), &one, false).await.unwrap().id;
        let blobs = MemoryBlobStore::new(FixedClock::default());
        let put = PutContainerFile::new(store.workspaces(), Arc::new(blobs.clone()), LIMITS);
        Self { put, blobs, workspace, container: "sess_one".parse().unwrap() }
    }

    async fn put_as(
        &self,
        by: &Authority,
        path: &str,
        announced: Option<u64>,
        bytes: usize,
    ) -> Result<ContainerFile, PutContainerFileError> {
        let path = path.parse().unwrap();
        let name = ResourceName::from(&self.workspace);
        let place = ContainerPlace { workspace: Some(&name), container: &self.container, path: &path };
        let pieces =
            vec![vec![7; 4]; bytes / 4].into_iter().chain([vec![7; bytes % 4]]).filter(|piece| !piece.is_empty());
        self.put.execute(by, place, announced, MemoryByteSource::new(pieces).boxed()).await
    }

    async fn put(&self, path: &str, bytes: usize) -> Result<ContainerFile, PutContainerFileError> {
        self.put_as(&Authority::system(), path, Some(bytes as u64), bytes).await
    }

    async fn files(&self) -> Vec<(String, u64)> {
        let prefix = BlobKey::container_prefix(self.workspace, &self.container);
        let listed = self.blobs.list(&prefix, None, 100).await.unwrap();
        listed.iter().map(|one| (one.key.as_str()[prefix.len()..].to_owned(), one.size_bytes)).collect()
    }
}

#[tokio::test]
async fn put_writes_and_replaces_within_the_limits_of_the_container() {
    let fixture = Fixture::new().await;
    let first = fixture.put("out/a", 10).await.unwrap();
    assert_eq!((first.size_bytes, first.path.as_str()), (10, "out/a"));
    assert_eq!(fixture.put("out/a", 9).await.unwrap().size_bytes, 9);
    fixture.put("b", 10).await.unwrap();
    let full = fixture.put("c", 7).await.unwrap_err();
    assert!(matches!(full, PutContainerFileError::ContainerFull(25)), "{full}");
    assert_eq!(full.kind(), ErrorKind::Forbidden);
    fixture.put("c", 6).await.unwrap();
    // A replaced file does not count beside its new version.
    fixture.put("b", 10).await.unwrap();
    let many = fixture.put("d", 0).await.unwrap_err();
    assert!(matches!(many, PutContainerFileError::TooManyFiles(3)), "{many}");
    assert_eq!(fixture.files().await, [("b".to_owned(), 10), ("c".to_owned(), 6), ("out/a".to_owned(), 9)]);
}

#[tokio::test]
async fn file_above_its_announced_or_largest_size_leaves_nothing() {
    let fixture = Fixture::new().await;
    for (announced, bytes) in [(Some(11), 11), (None, 11), (Some(3), 4), (Some(0), 1)] {
        let error = fixture.put_as(&Authority::system(), "a", announced, bytes).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PayloadTooLarge, "{announced:?}: {error}");
    }
    assert_eq!(fixture.files().await, []);
    fixture.put_as(&Authority::system(), "a", None, 10).await.unwrap();
}

#[tokio::test]
async fn body_of_unknown_size_may_fill_the_container() {
    let fixture = Fixture::new().await;
    fixture.put("a", 10).await.unwrap();
    fixture.put("b", 10).await.unwrap();
    let full = fixture.put_as(&Authority::system(), "c", None, 6).await.unwrap_err();
    assert!(matches!(full, PutContainerFileError::ContainerFull(25)), "{full}");
    fixture.put_as(&Authority::system(), "c", None, 5).await.unwrap();
    assert!(fixture.put.running.lock().unwrap().is_empty(), "places are returned");
}

/// A source that deletes the workspace between two pieces.
struct Deletion(Arc<dyn WorkspaceRepository>, WorkspaceId, u8);

#[async_trait]
impl ByteSource for Deletion {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        self.2 += 1;
        if self.2 > 2 {
            return Ok(None);
        }
        if self.2 == 2 {
            let workspace = self.0.find(self.1).await?.unwrap();
            let audit = AuditDraft::change(&Actor::system(), "workspace.delete", "workspace", None, None);
            let deleted = self.0.delete(&workspace, false, 0, &audit).await?;
            assert!(matches!(deleted, WorkspaceDeletion::Deleted), "{deleted:?}");
        }
        Ok(Some(vec![1]))
    }
}

#[tokio::test]
async fn file_is_not_left_in_a_workspace_that_is_deleted_meanwhile() {
    let fixture = Fixture::new().await;
    let (name, path) = (ResourceName::from(&fixture.workspace), "a".parse().unwrap());
    let place = ContainerPlace { workspace: Some(&name), container: &fixture.container, path: &path };
    let source = Box::new(Deletion(Arc::clone(&fixture.put.workspaces), fixture.workspace, 0));
    let error = fixture.put.execute(&Authority::system(), place, None, source).await.unwrap_err();
    assert_eq!((error.kind(), fixture.files().await), (ErrorKind::NotFound, vec![]));
}

#[tokio::test]
async fn file_that_another_request_deletes_at_once_is_a_conflict() {
    let mut fixture = Fixture::new().await;
    let mut blobs = MockBlobStore::new();
    blobs.expect_list().returning(|_, _, _| Ok(Vec::new()));
    blobs.expect_put().returning(|_, _| Ok(4));
    blobs.expect_stat().returning(|_| Ok(None));
    fixture.put.blobs = Arc::new(blobs);
    assert_eq!(fixture.put("a", 4).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn name_that_the_store_cannot_have_is_the_callers_error() {
    for (error, kind) in [
        (PutBlobError::Occupied, ErrorKind::Conflict),
        (PutBlobError::NameTooLong, ErrorKind::InvalidRequest),
        (PutBlobError::Store(StoreError::unavailable("x")), ErrorKind::Unavailable),
    ] {
        assert_eq!(PutContainerFileError::from(error).kind(), kind);
    }
}

#[tokio::test]
async fn file_cannot_be_a_folder() {
    let fixture = Fixture::new().await;
    fixture.put("a/b", 1).await.unwrap();
    for path in ["a", "a/b/c"] {
        assert_eq!(fixture.put(path, 1).await.unwrap_err().kind(), ErrorKind::Conflict, "{path}");
    }
    fixture.put("a/bc", 1).await.unwrap();
}

#[tokio::test]
async fn uploads_at_once_do_not_exceed_the_container() {
    let fixture = Fixture::new().await;
    let paths: Vec<String> = (0..8).map(|number| format!("f{number}")).collect();
    let done = join_all(paths.iter().map(|path| fixture.put(path, 10))).await;
    assert!(done.iter().filter(|outcome| outcome.is_ok()).count() <= 2);
    let total: u64 = fixture.files().await.iter().map(|(_, bytes)| bytes).sum();
    assert!(total <= LIMITS.bytes);
    assert!(fixture.put.running.lock().unwrap().is_empty(), "places are returned");
}

#[tokio::test]
async fn put_needs_write_access_to_the_workspace() {
    let fixture = Fixture::new().await;
    let of = |access, workspace| {
        let scope = ManagementScope::try_new(access, Some(vec![workspace])).unwrap();
        Authority::of_key(Actor::system(), scope)
    };
    let other = WorkspaceId::from_uuid(SequentialIds::uuid(77));
    for (by, kind) in [
        (of(ManagementAccess::Keys, fixture.workspace), ErrorKind::Forbidden),
        (of(ManagementAccess::Write, other), ErrorKind::NotFound),
    ] {
        assert_eq!(fixture.put_as(&by, "a", None, 1).await.unwrap_err().kind(), kind);
    }
    fixture.put_as(&of(ManagementAccess::Write, fixture.workspace), "a", None, 1).await.unwrap();
}
