//! The blob store on a real disk: the port's contract, and properties of disks.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use domain::container::{BlobKey, BlobStore, CopyOutcome, PutBlobError};
use domain::error::StoreError;
use domain::system::HealthProbe;
use domain::testing::MemoryByteSource;
use domain::testing::contract::Blobs;

async fn blobs() -> Blobs {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalBlobStore::open(folder.path()).unwrap());
    Blobs { store, keep: Box::new(folder) }
}

domain::blob_store_contract!(
    #[tokio::test]
    crate::blobs
);

#[tokio::test]
async fn open_existing_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("blobs");
    let missing = LocalBlobStore::open_existing(&root).unwrap();
    let Err(StoreError::Unavailable(reason)) = missing.stat(&key("a/b")).await else { panic!("it exists") };
    assert!(reason.to_string().contains(&format!("{} does not exist", root.display())), "{reason}");
    assert!(missing.put(&key("a/b"), MemoryByteSource::new(["x"]).boxed()).await.is_err());
    assert!(!root.exists());
    std::fs::create_dir(&root).unwrap();
    let store = LocalBlobStore::open_existing(&root).unwrap();
    assert_eq!(store.stat(&key("a/b")).await.unwrap(), None);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
    store.put(&key("a/b"), MemoryByteSource::new(["x"]).boxed()).await.unwrap();
    assert!(store.stat(&key("a/b")).await.unwrap().is_some());
}

fn key(name: &str) -> BlobKey {
    BlobKey::from_listing(name.to_owned())
}

/// Returns a store in a folder with `containers/w/c` and, outside the store, `secret`.
fn open() -> (tempfile::TempDir, LocalBlobStore) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), b"secret").unwrap();
    let store = LocalBlobStore::open(&outside.path().join("blobs")).unwrap();
    std::fs::create_dir_all(outside.path().join("blobs/containers/w/c")).unwrap();
    (outside, store)
}

async fn assert_absent(store: &LocalBlobStore, name: &str, size: u64) {
    assert_eq!(store.stat(&key(name)).await.unwrap(), None, "{name} is seen");
    let outcome = store.copy(&key(name), &key("documents/w/to"), size).await.unwrap();
    assert_eq!(outcome, CopyOutcome::SourceGone, "{name} is read");
    let listed = store.list("containers/", None, 100).await.unwrap();
    assert!(listed.iter().all(|meta| meta.key.as_str() != name), "{name} is listed");
}

fn assert_nothing_half_written(root: &Path) {
    assert_eq!(std::fs::read_dir(root.join(".partial")).unwrap().count(), 0, "something half-written is left");
}

#[tokio::test]
async fn links_count_as_absent() {
    let (outside, store) = open();
    let containers = outside.path().join("blobs/containers");
    std::fs::create_dir_all(containers.join("other/c")).unwrap();
    std::fs::write(containers.join("other/c/file"), b"secret").unwrap();
    symlink(outside.path().join("secret"), containers.join("w/c/absolute")).unwrap();
    symlink("../../other/c/file", containers.join("w/c/inside")).unwrap();
    symlink("../../other/c", containers.join("w/c/folder")).unwrap();
    symlink("other", containers.join("linked")).unwrap();
    for name in ["w/c/absolute", "w/c/inside", "w/c/folder/file", "linked/c/file", "w/c/folder"] {
        assert_absent(&store, &format!("containers/{name}"), 6).await;
    }
    store.delete(&key("containers/w/c/folder/file")).await.unwrap();
    store.delete(&key("containers/w/c/inside")).await.unwrap();
    assert!(containers.join("other/c/file").exists(), "what is behind a link was deleted");
    let through = store.put(&key("containers/w/c/folder/new"), MemoryByteSource::new(["x"]).boxed()).await;
    assert!(matches!(through, Err(PutBlobError::Occupied)), "a link was written through");
    assert!(!containers.join("other/c/new").exists());
    assert_eq!(store.list("containers/linked/", None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn copy_rejects_hard_link_in_sandbox() {
    let (outside, store) = open();
    let containers = outside.path().join("blobs/containers");
    std::fs::create_dir_all(containers.join("other/c")).unwrap();
    std::fs::write(containers.join("other/c/file"), b"secret").unwrap();
    for (target, name) in [(containers.join("other/c/file"), "workspace"), (outside.path().join("secret"), "outside")] {
        let link = containers.join("w/c").join(name);
        std::fs::hard_link(target, &link).unwrap();
        let from = key(&format!("containers/w/c/{name}"));
        let outcome = store.copy(&from, &key("documents/w/to"), 6).await.unwrap();
        assert_eq!(outcome, CopyOutcome::SourceLinked { links: 2 }, "{name}");
        assert_eq!(store.stat(&from).await.unwrap().unwrap().links, 2, "{name}");
        assert_eq!(store.read(&from, None).await.unwrap().unwrap().links, 2, "{name}");
        assert_eq!(store.stat(&key("documents/w/to")).await.unwrap(), None);
        // A removed link leaves a file with one name, which is not in the sandbox anymore.
        std::fs::remove_file(link).unwrap();
        assert_eq!(store.copy(&from, &key("documents/w/to"), 6).await.unwrap(), CopyOutcome::SourceGone);
    }
    let copied = store.copy(&key("containers/other/c/file"), &key("documents/w/to"), 6).await.unwrap();
    assert!(matches!(copied, CopyOutcome::Copied(_)), "a file with one name again is copied: {copied:?}");
}

#[tokio::test]
async fn copy_waits_until_source_is_quiet() {
    let quiet = Duration::from_millis(300);
    let (outside, store) = open();
    let store = store.with_quiet_period(quiet);
    let path = outside.path().join("blobs/containers/w/c/from");
    std::fs::write(&path, b"young").unwrap();
    // The owner can reset the write time, but not the change time.
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let since = tokio::time::Instant::now();
    let (from, to) = (key("containers/w/c/from"), key("documents/w/to"));
    assert!(matches!(store.copy(&from, &to, 5).await.unwrap(), CopyOutcome::Copied(_)));
    assert!(since.elapsed() > quiet / 2, "it was copied after {:?}", since.elapsed());
    std::fs::write(&path, b"first").unwrap();
    let (copied, ()) = tokio::join!(store.copy(&from, &to, 5), async {
        tokio::time::sleep(quiet / 3).await;
        std::fs::write(&path, b"other").unwrap();
    });
    assert_eq!(copied.unwrap(), CopyOutcome::SourceChanged, "it was written while it was waited for");
}

#[tokio::test]
async fn operations_fail_while_root_is_moved_or_replaced() {
    let (outside, store) = open();
    let (root, away) = (outside.path().join("blobs"), outside.path().join("away"));
    std::fs::write(root.join("containers/w/c/from"), b"from").unwrap();
    let copy = async || store.copy(&key("containers/w/c/from"), &key("documents/w/to"), 4).await;
    for replaced in [false, true] {
        std::fs::rename(&root, &away).unwrap();
        if replaced {
            std::fs::create_dir_all(root.join("containers/w/c")).unwrap();
            std::fs::write(root.join("containers/w/c/from"), b"from").unwrap();
        }
        let outcome = copy().await;
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
        let put = store.put(&key("documents/w/put"), MemoryByteSource::new(["x"]).boxed()).await;
        assert!(matches!(put, Err(PutBlobError::Store(StoreError::Unavailable(_)))), "{put:?}");
        assert!(store.list("", None, 10).await.is_err() && store.stat(&key("documents/w/to")).await.is_err());
        assert!(!away.join("documents").exists() && !root.join("documents").exists(), "something was written");
        if replaced {
            std::fs::remove_dir_all(&root).unwrap();
        }
        std::fs::rename(&away, &root).unwrap();
        store.probe().await.unwrap();
    }
    assert!(matches!(copy().await.unwrap(), CopyOutcome::Copied(_)), "it is back");
}

#[tokio::test]
async fn root_that_is_a_link_is_followed_and_watched() {
    let (outside, _) = open();
    let link = outside.path().join("link");
    symlink(outside.path().join("blobs"), &link).unwrap();
    let store = LocalBlobStore::open(&link).unwrap();
    store.probe().await.unwrap();
    std::fs::remove_file(&link).unwrap();
    symlink(outside.path(), &link).unwrap();
    assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn copy_replaces_link_at_target() {
    let (outside, store) = open();
    symlink(outside.path().join("secret"), outside.path().join("blobs/containers/w/c/file")).unwrap();
    store.put(&key("containers/w/c/file"), MemoryByteSource::new(["new"]).boxed()).await.unwrap();
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(store.stat(&key("containers/w/c/file")).await.unwrap().unwrap().size_bytes, 3);
}

#[tokio::test]
async fn pipes_and_sockets_count_as_absent_and_do_not_block() {
    let (outside, store) = open();
    let folder = outside.path().join("blobs/containers/w/c");
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
    for name in ["containers/w/c/pipe", "containers/w/c/socket"] {
        let looked = tokio::time::timeout(Duration::from_secs(5), assert_absent(&store, name, 0)).await;
        looked.expect("it blocked");
    }
}

#[tokio::test]
async fn invalid_keys_count_as_absent() {
    let (outside, store) = open();
    std::fs::write(outside.path().join("blobs/.partial/1-1"), b"half").unwrap();
    for name in ["../secret", "containers/../../secret", "/etc/passwd", "", "a//b", "a/./b", "a\0b", ".partial/1-1"] {
        assert_eq!(store.stat(&key(name)).await.unwrap(), None, "{name:?}");
        let refused = store.put(&key(name), MemoryByteSource::new(["x"]).boxed()).await;
        assert!(matches!(refused, Err(PutBlobError::Store(StoreError::Unavailable(_)))), "{name:?}");
        store.delete(&key(name)).await.unwrap();
    }
    assert_eq!(store.list("", None, 100).await.unwrap(), []);
    assert_eq!(store.list("../", None, 100).await.unwrap(), []);
    assert!(outside.path().join("secret").exists() && outside.path().join("blobs/.partial/1-1").exists());
}

#[tokio::test]
async fn failed_write_is_unavailable_and_leaves_no_file() {
    let (outside, store) = open();
    let root = outside.path().join("blobs");
    // Root may write anywhere, so the test puts a file in place of a required folder.
    std::fs::write(root.join("documents"), b"").unwrap();
    std::fs::write(root.join("containers/w/c/from"), b"from").unwrap();
    let copied = store.copy(&key("containers/w/c/from"), &key("documents/w/to"), 4).await;
    assert!(matches!(copied, Err(StoreError::Unavailable(_))), "{copied:?}");
    let put = store.put(&key("documents/w/to"), MemoryByteSource::new(["x"]).boxed()).await;
    assert!(matches!(put, Err(PutBlobError::Occupied)), "{put:?}");
    assert_nothing_half_written(&root);
}

#[tokio::test]
async fn deletion_removes_the_folders_that_it_leaves_empty() {
    let (outside, store) = open();
    let containers = outside.path().join("blobs/containers");
    for name in ["w/c/a/b/x", "w/c/a/y", "w/new/z"] {
        store.put(&key(&format!("containers/{name}")), MemoryByteSource::new(["x"]).boxed()).await.unwrap();
    }
    store.delete(&key("containers/w/c/a/b/x")).await.unwrap();
    assert!(!containers.join("w/c/a/b").exists() && containers.join("w/c/a/y").exists());
    // A sandbox uses the folder of its container.
    for name in ["w/c/a/y", "w/new/z"] {
        store.delete(&key(&format!("containers/{name}"))).await.unwrap();
    }
    assert!(!containers.join("w/c/a").exists() && containers.join("w/c").exists() && containers.join("w/new").exists());
    store.put(&key("containers/w/c/a"), MemoryByteSource::new(["x"]).boxed()).await.unwrap();
}

#[tokio::test]
async fn copy_does_not_replace_folder_at_target() {
    let (outside, store) = open();
    let root = outside.path().join("blobs");
    std::fs::create_dir_all(root.join("documents/w/to/inner")).unwrap();
    let put = store.put(&key("documents/w/to"), MemoryByteSource::new(["x"]).boxed()).await;
    assert!(matches!(put, Err(PutBlobError::Occupied)), "{put:?}");
    assert!(root.join("documents/w/to/inner").is_dir());
    assert_nothing_half_written(&root);
}

#[tokio::test]
async fn open_fails_when_root_cannot_be_created() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"").unwrap();
    for root in ["file", "file/below"] {
        let opened = LocalBlobStore::open(&folder.path().join(root)).map(|_| ());
        assert!(matches!(opened, Err(StoreError::Unavailable(_))), "{root}");
    }
}

#[tokio::test]
async fn sweep_removes_old_partial_files() {
    let (outside, store) = open();
    let left = outside.path().join("blobs/.partial/77-1");
    std::fs::write(&left, b"half").unwrap();
    assert_eq!(store.sweep_partial(Duration::from_mins(1)).await.unwrap(), 0, "it is young");
    assert!(left.exists());
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
    assert_eq!(store.sweep_partial(Duration::from_mins(1)).await.unwrap(), 1);
    assert!(!left.exists());
}

#[tokio::test]
async fn objects_persist_after_store_is_dropped() {
    let (outside, store) = open();
    store.put(&key("documents/w/a"), MemoryByteSource::new(["kept"]).boxed()).await.unwrap();
    drop(store);
    assert_eq!(std::fs::read(outside.path().join("blobs/documents/w/a")).unwrap(), b"kept");
    let again = LocalBlobStore::open(&outside.path().join("blobs")).unwrap();
    assert_eq!(again.stat(&key("documents/w/a")).await.unwrap().unwrap().size_bytes, 4);
}

#[tokio::test]
async fn probe_fails_when_disk_is_not_writable() {
    let (outside, store) = open();
    assert_eq!(store.name(), "blobs");
    store.probe().await.unwrap();
    assert_nothing_half_written(&outside.path().join("blobs"));
    std::fs::remove_dir_all(outside.path().join("blobs")).unwrap();
    assert!(matches!(store.probe().await, Err(StoreError::Unavailable(_))));
}

/// Peak resident memory of this process, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_copy_needs_little_memory() {
    let (outside, store) = open();
    let size = 300 * 1024 * 1024;
    let from = std::fs::File::create(outside.path().join("blobs/containers/w/c/from")).unwrap();
    from.set_len(size).unwrap();
    let before = peak_memory();
    let outcome = store.copy(&key("containers/w/c/from"), &key("documents/w/to"), size).await.unwrap();
    assert!(matches!(outcome, CopyOutcome::Copied(_)));
    // The contract's own objects of some MiB may be in memory at the same time.
    let grown = peak_memory() - before;
    assert!(grown < 64 * 1024, "{grown} KiB more were needed");
}
