use super::*;
use crate::api_key::InferenceKey;
use crate::container::MockBlobStore;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::testing::{MemoryBlobStore, MemoryByteSource};

fn access(workspace: u128) -> ContentAccess {
    let workspace = WorkspaceId::from_uuid(uuid::Uuid::from_u128(workspace));
    ContentAccess::of_key(&InferenceKey::for_tests(ApiKeyId::from_uuid(uuid::Uuid::nil()), workspace))
}

fn container() -> ContainerId {
    "sess_a".parse().unwrap()
}

fn key(path: &str) -> BlobKey {
    BlobKey::from_listing(format!("{}{path}", BlobKey::container_prefix(access(1).workspace_id(), &container())))
}

fn object(path: &str, links: u64) -> BlobMeta {
    BlobMeta { key: key(path), size_bytes: 1, modified_at: DateTime::UNIX_EPOCH, links }
}

/// Returns the use cases over a store with these objects.
async fn with_objects(paths: &[&str]) -> ManageContainerFiles {
    let blobs = MemoryBlobStore::default();
    for path in paths {
        blobs.put(&key(path), MemoryByteSource::new([*path]).boxed()).await.unwrap();
    }
    ManageContainerFiles::new(Arc::new(blobs))
}

fn paths(list: &ContainerFileList) -> Vec<&str> {
    list.files.iter().map(|file| file.path.as_str()).collect()
}

#[tokio::test]
async fn pages_have_the_files_in_bytewise_order() {
    // A directory marker, an absolute path and a control character are no files.
    let files = with_objects(&["a/", "a!", "a/b", "a0", "b", "c\nd", "é", "/x"]).await;
    for limit in 1..=7 {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = files.list(access(1), &container(), after.as_ref(), limit).await.unwrap();
            assert!(page.files.len() <= limit);
            seen.extend(paths(&page).into_iter().map(str::to_owned));
            assert_eq!(
                page.last.as_ref().map(FilePosition::id),
                seen.last().map(|path| path.parse::<ContainerPath>().unwrap().file_id())
            );
            if !page.has_more {
                break;
            }
            after = page.last.map(|last| FilePosition::from_id(&last.id()).unwrap());
        }
        assert_eq!(seen, ["a!", "a/b", "a0", "b", "é"], "by {limit}");
    }
}

#[tokio::test]
async fn unknown_container_and_other_workspace_have_no_files() {
    let files = with_objects(&["a"]).await;
    let none = ContainerFileList { files: Vec::new(), last: None, has_more: false };
    assert_eq!(files.list(access(2), &container(), None, 10).await.unwrap(), none);
    assert_eq!(files.list(access(1), &"sess_a-r1".parse().unwrap(), None, 10).await.unwrap(), none);
    let path = "a".parse().unwrap();
    assert_eq!(files.get(access(2), &container(), &path).await.unwrap(), None);
    assert!(files.open(access(2), &container(), &path).await.unwrap().is_none());
    assert!(!files.delete(access(2), &container(), &path).await.unwrap());
    assert_eq!(paths(&files.list(access(1), &container(), None, 10).await.unwrap()), ["a"]);
}

#[tokio::test]
async fn search_among_objects_that_are_no_files_is_bounded() {
    let mut blobs = MockBlobStore::new();
    blobs.expect_list().returning(|_, after, limit| {
        let first = after.map_or(0, |after| after.as_str().rsplit_once('\n').unwrap().1.parse::<usize>().unwrap() + 1);
        Ok((first..first + limit).map(|number| object(&format!("x\n{number:09}"), 1)).collect())
    });
    let files = ManageContainerFiles::new(Arc::new(blobs));
    let page = files.list(access(1), &container(), None, 999).await.unwrap();
    assert!(page.files.is_empty() && page.has_more);
    let last = page.last.unwrap();
    assert_eq!(last, FilePosition("x\n000009999".to_owned()), "the next page goes on there");
    assert_eq!(FilePosition::from_id(&last.id()), Ok(last));
}

#[tokio::test]
async fn hard_links_are_no_files() {
    let mut blobs = MockBlobStore::new();
    blobs.expect_list().returning(|_, _, _| Ok(vec![object("a", 1), object("b", 2)]));
    blobs.expect_stat().returning(|_| Ok(Some(object("b", 2))));
    let source = || MemoryByteSource::new(["x"]).boxed();
    blobs.expect_read().returning(move |_, _| Ok(Some(OpenBlob { size_bytes: 1, links: 2, source: source() })));
    blobs.expect_delete().never();
    let (files, path) = (ManageContainerFiles::new(Arc::new(blobs)), "b".parse().unwrap());
    assert_eq!(paths(&files.list(access(1), &container(), None, 10).await.unwrap()), ["a"]);
    assert_eq!(files.get(access(1), &container(), &path).await.unwrap(), None);
    assert!(files.open(access(1), &container(), &path).await.unwrap().is_none());
    assert!(!files.delete(access(1), &container(), &path).await.unwrap());
}

#[tokio::test]
async fn file_that_is_deleted_meanwhile_is_not_found() {
    let mut blobs = MockBlobStore::new();
    blobs.expect_stat().returning(|_| Ok(Some(object("a", 1))));
    blobs.expect_delete().once().returning(|_| Ok(false));
    let files = ManageContainerFiles::new(Arc::new(blobs));
    assert!(!files.delete(access(1), &container(), &"a".parse().unwrap()).await.unwrap());
}

#[tokio::test]
async fn file_is_deleted_once() {
    let files = with_objects(&["a", "b"]).await;
    let path = "a".parse().unwrap();
    assert!(files.open(access(1), &container(), &path).await.unwrap().is_some());
    assert!(files.delete(access(1), &container(), &path).await.unwrap());
    assert!(!files.delete(access(1), &container(), &path).await.unwrap());
    assert_eq!(paths(&files.list(access(1), &container(), None, 10).await.unwrap()), ["b"]);
}

#[test]
fn position_may_be_that_of_no_file() {
    for path in ["a/b", "a/", "../../x", "a\nb", "é"] {
        let position = FilePosition(path.to_owned());
        assert_eq!(FilePosition::from_id(&position.id()), Ok(position));
    }
    for id in
        ["", "cfile_", "a", "file_YQ", "cfile_!", "cfile__w", "cfile_YQ==", &format!("cfile_{}", "A".repeat(4_000))]
    {
        assert_eq!(FilePosition::from_id(id), Err(InvalidPosition), "{id:.40}");
    }
}
