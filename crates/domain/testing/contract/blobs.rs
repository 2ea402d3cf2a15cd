//! Cases of [`crate::container::BlobStore`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::super::memory_blob_store::sha256_hex;
use super::super::{MemoryByteSource, join_all};
use super::Blobs;
use crate::container::{BlobKey, BlobStore, ByteSource, CopiedBlob, CopyOutcome, OpenBlob, PutBlobError};
use crate::error::StoreError;

suite! {
    /// Every case of the port's contract. Links, devices and the death of the process are for the adapter's own tests.
    blob_store_cases as blob_store_contract over Blobs {
        put_stores_content,
        put_replaces_object,
        put_leaves_nothing_when_source_fails,
        objects_of_one_folder_come_and_go_at_once,
        partial_object_is_invisible,
        copy_is_complete,
        copy_reports_changed_source_size,
        folder_is_not_an_object,
        delete_is_idempotent,
        names_are_not_decoded,
        list_is_in_bytewise_order,
        list_returns_pages,
        concurrent_puts_leave_one_complete_object,
        sweep_keeps_objects,
        read_returns_the_whole_object,
        read_returns_a_range,
        read_fails_behind_the_end,
        open_object_survives_its_deletion_and_replacement,
        read_returns_none_for_what_is_no_object,
    }
}

fn key(name: &str) -> BlobKey {
    BlobKey::from_listing(name.to_owned())
}

async fn put(blobs: &Blobs, name: &str, content: &[u8]) {
    let pieces = content.chunks(100_000).map(<[u8]>::to_vec);
    let size = blobs.store.put(&key(name), MemoryByteSource::new(pieces).boxed()).await.unwrap();
    assert_eq!(size, content.len() as u64, "the size is returned");
}

async fn size(blobs: &Blobs, name: &str) -> Option<u64> {
    blobs.store.stat(&key(name)).await.unwrap().map(|meta| meta.size_bytes)
}

/// Reads an object by a copy, which is the only way of the port.
async fn assert_content(blobs: &Blobs, name: &str, content: &[u8]) {
    let aside = key("documents/aside");
    let outcome = blobs.store.copy(&key(name), &aside, content.len() as u64).await.unwrap();
    let CopyOutcome::Copied(copied) = outcome else { panic!("{name} has not the content: {outcome:?}") };
    assert_eq!(copied.sha256, sha256_hex(content), "{name}");
    blobs.store.delete(&aside).await.unwrap();
}

async fn names(blobs: &Blobs, prefix: &str) -> Vec<String> {
    let listed = blobs.store.list(prefix, None, 1_000).await.unwrap();
    listed.into_iter().map(|meta| meta.key.to_string()).collect()
}

/// Returns varying bytes whose length is no multiple of any buffer's size.
fn large() -> Vec<u8> {
    (0..1_500_007_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

async fn put_stores_content(blobs: &Blobs) {
    assert_eq!(blobs.store.stat(&key("documents/w/a")).await.unwrap(), None);
    for (name, content) in [("documents/w/a", large()), ("documents/w/empty", Vec::new())] {
        put(blobs, name, &content).await;
        let meta = blobs.store.stat(&key(name)).await.unwrap().unwrap();
        assert_eq!((meta.key, meta.size_bytes), (key(name), content.len() as u64));
        assert_content(blobs, name, &content).await;
    }
    let deep = format!("containers/w/c/{}file", "d/".repeat(40));
    put(blobs, &deep, b"deep").await;
    assert_content(blobs, &deep, b"deep").await;
}

async fn put_replaces_object(blobs: &Blobs) {
    put(blobs, "documents/w/a", &large()).await;
    put(blobs, "documents/w/a", b"short").await;
    assert_content(blobs, "documents/w/a", b"short").await;
    assert_eq!(names(blobs, "documents/").await, ["documents/w/a"]);
}

async fn put_leaves_nothing_when_source_fails(blobs: &Blobs) {
    put(blobs, "documents/w/old", b"old").await;
    for name in ["documents/w/old", "documents/w/new"] {
        let source = MemoryByteSource::new([large()]).then_failing();
        let result = blobs.store.put(&key(name), source.boxed()).await;
        assert!(matches!(result, Err(PutBlobError::Store(StoreError::Unavailable(_)))), "{result:?}");
    }
    assert_eq!(size(blobs, "documents/w/new").await, None);
    assert_content(blobs, "documents/w/old", b"old").await;
    assert_eq!(names(blobs, "documents/").await, ["documents/w/old"], "nothing half-written is listed");
}

async fn objects_of_one_folder_come_and_go_at_once(blobs: &Blobs) {
    let paths: Vec<String> = (0..8).map(|number| format!("containers/w/c/folder/{number}")).collect();
    for _ in 0..10 {
        join_all(paths.iter().map(|name| put(blobs, name, b"x"))).await;
        assert_eq!(names(blobs, "containers/").await, paths);
        let again = join_all(paths.iter().enumerate().map(async |(number, name)| {
            blobs.store.delete(&key(name)).await.unwrap();
            if number % 2 == 0 {
                put(blobs, name, b"y").await;
            }
        }));
        again.await;
        assert_eq!(names(blobs, "containers/").await.len(), 4);
    }
}

/// A source that reads the store between two pieces of the object that is being written.
struct ConcurrentReader {
    store: Arc<dyn BlobStore>,
    pieces: u8,
}

#[async_trait]
impl ByteSource for ConcurrentReader {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        assert_eq!(self.store.stat(&key("documents/w/new")).await?, None, "a half-written object is seen");
        assert_eq!(self.store.list("documents/", None, 10).await?, [], "a half-written object is listed");
        let seen = self.store.copy(&key("documents/w/new"), &key("documents/w/b"), 0).await?;
        assert_eq!(seen, CopyOutcome::SourceGone, "a half-written object is copied");
        let Some(left) = self.pieces.checked_sub(1) else { return Ok(None) };
        self.pieces = left;
        Ok(Some(vec![b'x'; 300_000]))
    }
}

async fn partial_object_is_invisible(blobs: &Blobs) {
    let reader = ConcurrentReader { store: Arc::clone(&blobs.store), pieces: 3 };
    assert_eq!(blobs.store.put(&key("documents/w/new"), Box::new(reader)).await.unwrap(), 900_000);
    assert_eq!(size(blobs, "documents/w/new").await, Some(900_000));
}

async fn copy_is_complete(blobs: &Blobs) {
    let just_the_head = vec![b'h'; CopiedBlob::HEAD_BYTES];
    for content in [large(), just_the_head, b"x".to_vec(), Vec::new()] {
        put(blobs, "containers/w/c/from", &content).await;
        let (from, to) = (key("containers/w/c/from"), key("documents/w/to"));
        let outcome = blobs.store.copy(&from, &to, content.len() as u64).await.unwrap();
        let head = content[..content.len().min(CopiedBlob::HEAD_BYTES)].to_vec();
        assert_eq!(outcome, CopyOutcome::Copied(CopiedBlob { sha256: sha256_hex(&content), head }));
        assert_content(blobs, "containers/w/c/from", &content).await;
        blobs.store.delete(&from).await.unwrap();
        assert_content(blobs, "documents/w/to", &content).await;
        blobs.store.delete(&to).await.unwrap();
    }
    let gone = blobs.store.copy(&key("containers/w/c/none"), &key("documents/w/to"), 0).await.unwrap();
    assert_eq!(gone, CopyOutcome::SourceGone);
    assert_eq!(size(blobs, "documents/w/to").await, None, "nothing was made");
}

async fn copy_reports_changed_source_size(blobs: &Blobs) {
    put(blobs, "containers/w/c/from", &large()).await;
    let length = large().len() as u64;
    for expected in [0, length - 1, length + 1, u64::MAX] {
        let outcome = blobs.store.copy(&key("containers/w/c/from"), &key("documents/w/to"), expected).await.unwrap();
        assert_eq!(outcome, CopyOutcome::SourceChanged, "{expected} bytes were expected");
        assert_eq!(size(blobs, "documents/w/to").await, None, "nothing was made");
    }
    assert_eq!(names(blobs, "documents/").await, [""; 0]);
}

async fn folder_is_not_an_object(blobs: &Blobs) {
    put(blobs, "containers/w/c/folder/file", b"x").await;
    for name in ["containers/w/c/folder", "containers/w/c", "containers/w/c/folder/file/below", "containers/w/none/x"] {
        assert_eq!(size(blobs, name).await, None, "{name}");
        let outcome = blobs.store.copy(&key(name), &key("documents/w/to"), 0).await.unwrap();
        assert_eq!(outcome, CopyOutcome::SourceGone, "{name}");
        blobs.store.delete(&key(name)).await.unwrap();
    }
    assert_eq!(names(blobs, "containers/").await, ["containers/w/c/folder/file"], "and none was deleted");
}

async fn delete_is_idempotent(blobs: &Blobs) {
    put(blobs, "documents/w/a", b"x").await;
    put(blobs, "documents/w/b", b"x").await;
    for _ in 0..2 {
        blobs.store.delete(&key("documents/w/a")).await.unwrap();
        assert_eq!(size(blobs, "documents/w/a").await, None);
    }
    blobs.store.delete(&key("documents/nowhere/a")).await.unwrap();
    assert_eq!(names(blobs, "documents/").await, ["documents/w/b"]);
    assert!(blobs.store.delete(&key("documents/w/b")).await.unwrap());
}

async fn names_are_not_decoded(blobs: &Blobs) {
    let odd = ["a b", "a#1", "a%2Fb", "a%252Fb", "a+b", "a?b*", "a~", "é", "e\u{301}", "..a", "a..", "🦀", "A B"];
    for (number, name) in odd.iter().enumerate() {
        put(blobs, &format!("containers/w/c/{name}"), &vec![b'x'; number]).await;
    }
    for (number, name) in odd.iter().enumerate() {
        assert_eq!(size(blobs, &format!("containers/w/c/{name}")).await, Some(number as u64), "{name}");
    }
    assert_eq!(size(blobs, "containers/w/c/a/b").await, None, "nothing is decoded");
    let mut expected = odd.map(|name| format!("containers/w/c/{name}"));
    expected.sort_unstable();
    assert_eq!(names(blobs, "containers/w/c/").await, expected);
}

async fn list_is_in_bytewise_order(blobs: &Blobs) {
    assert_eq!(names(blobs, "containers/").await, [""; 0], "an empty store lists nothing");
    // A slash sorts between a dot and a zero, so the names in a folder are between other names.
    let sorted = ["a!", "a-b", "a.txt", "a/b/c", "a/b0", "a/z", "a0", "aa", "b", "ä"];
    for name in ["aa", "a/z", "b", "a.txt", "a/b0", "ä", "a0", "a!", "a/b/c", "a-b"] {
        put(blobs, &format!("containers/w/c/{name}"), b"x").await;
    }
    put(blobs, "containers/w/c0/other", b"x").await;
    put(blobs, "containers/w/c-/other", b"x").await;
    assert_eq!(names(blobs, "containers/w/c/").await, sorted.map(|name| format!("containers/w/c/{name}")));
    assert_eq!(
        names(blobs, "containers/w/c/a/").await,
        ["a/b/c", "a/b0", "a/z"].map(|n| format!("containers/w/c/{n}"))
    );
    assert_eq!(names(blobs, "containers/w/none/").await, [""; 0]);
    let all = names(blobs, "containers/").await;
    assert_eq!(all.len(), 12);
    assert!(all.is_sorted(), "{all:?}");
    let listed = blobs.store.list("containers/w/c0/", None, 10).await.unwrap();
    assert_eq!(Some(&listed[0]), blobs.store.stat(&listed[0].key).await.unwrap().as_ref(), "as stat tells it");
}

async fn list_returns_pages(blobs: &Blobs) {
    let mut expected = Vec::new();
    for (number, folder) in (0..30).zip(["x", "x/y", "x-", "z"].into_iter().cycle()) {
        let name = format!("documents/{folder}/{number}");
        put(blobs, &name, b"x").await;
        expected.push(name);
    }
    expected.sort();
    for limit in [1, 7, 30, 31] {
        let mut seen: Vec<String> = Vec::new();
        loop {
            let after = seen.last().map(|name| key(name));
            let page = blobs.store.list("documents/", after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            assert!(seen.len() < expected.len(), "the pages do not end");
            seen.extend(page.iter().map(|meta| meta.key.to_string()));
        }
        assert_eq!(seen, expected, "by pages of {limit}");
    }
    assert_eq!(blobs.store.list("documents/", None, 0).await.unwrap(), []);
    let after_what_is_gone = blobs.store.list("documents/", Some(&key("documents/x.")), 1).await.unwrap();
    let next = expected.iter().find(|name| name.as_str() > "documents/x.");
    assert_eq!(after_what_is_gone.first().map(|meta| meta.key.as_str()), next.map(String::as_str));
}

async fn concurrent_puts_leave_one_complete_object(blobs: &Blobs) {
    let contents: Vec<Vec<u8>> = (1..=6_u8).map(|number| vec![number; 100_000 * usize::from(number)]).collect();
    join_all(contents.iter().map(|content| put(blobs, "documents/w/a", content))).await;
    let winner = size(blobs, "documents/w/a").await.unwrap();
    let winner = contents.iter().find(|content| content.len() as u64 == winner).expect("it is one of them");
    assert_content(blobs, "documents/w/a", winner).await;
    assert_eq!(names(blobs, "documents/").await, ["documents/w/a"]);
}

async fn sweep_keeps_objects(blobs: &Blobs) {
    put(blobs, "documents/w/a", b"x").await;
    put(blobs, "containers/w/c/a", b"x").await;
    assert_eq!(blobs.store.sweep_partial(Duration::ZERO).await.unwrap(), 0, "there is nothing left behind");
    assert_content(blobs, "documents/w/a", b"x").await;
    assert_content(blobs, "containers/w/c/a", b"x").await;
}

/// Reads an object to its end.
async fn read(blobs: &Blobs, name: &str) -> Option<(u64, Vec<u8>)> {
    let open = blobs.store.read(&key(name), None).await.unwrap()?;
    assert_eq!(open.links, 1);
    Some((open.size_bytes, rest_of(open).await.unwrap()))
}

async fn rest_of(mut open: OpenBlob) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::new();
    while let Some(piece) = open.source.next().await? {
        assert!(!piece.is_empty());
        content.extend(piece);
    }
    Ok(content)
}

async fn read_returns_the_whole_object(blobs: &Blobs) {
    for (name, content) in [("documents/w/a", large()), ("documents/w/empty", Vec::new())] {
        put(blobs, name, &content).await;
        assert!(read(blobs, name).await == Some((content.len() as u64, content)), "{name}");
    }
}

async fn read_returns_none_for_what_is_no_object(blobs: &Blobs) {
    put(blobs, "documents/w/folder/file", b"x").await;
    for name in ["documents/w/absent", "documents/w/folder", "documents/../documents/w/folder/file", ""] {
        assert!(read(blobs, name).await.is_none(), "{name}");
    }
}

async fn read_returns_a_range(blobs: &Blobs) {
    let content = large();
    let size = content.len() as u64;
    put(blobs, "documents/w/a", &content).await;
    for range in [0..1, 0..size, 1..size, size - 1..size, 5..300_001, 262_144..262_145] {
        let open = blobs.store.read(&key("documents/w/a"), Some(range.clone())).await.unwrap().unwrap();
        assert_eq!(open.size_bytes, size, "of the whole object");
        let (start, end) = (usize::try_from(range.start).unwrap(), usize::try_from(range.end).unwrap());
        assert!(rest_of(open).await.unwrap() == content[start..end], "{range:?}");
    }
    assert!(blobs.store.read(&key("documents/w/absent"), Some(0..1)).await.unwrap().is_none());
}

async fn read_fails_behind_the_end(blobs: &Blobs) {
    put(blobs, "documents/w/a", b"abc").await;
    for range in [0..4, 2..9, 3..4, 7..9] {
        let read = async {
            let open = blobs.store.read(&key("documents/w/a"), Some(range.clone())).await?;
            rest_of(open.unwrap()).await
        };
        let read = read.await;
        assert!(matches!(read, Err(StoreError::Unavailable(_))), "{range:?}: {read:?}");
    }
}

async fn open_object_survives_its_deletion_and_replacement(blobs: &Blobs) {
    for name in ["documents/w/deleted", "documents/w/replaced"] {
        put(blobs, name, b"first version").await;
        let open = blobs.store.read(&key(name), None).await.unwrap().unwrap();
        if name.ends_with("deleted") {
            blobs.store.delete(&key(name)).await.unwrap();
        } else {
            put(blobs, name, b"another one!!").await;
        }
        assert_eq!(rest_of(open).await.unwrap(), b"first version", "{name}");
    }
}
