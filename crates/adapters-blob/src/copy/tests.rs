use super::*;
use crate::source::OpenResult;
use crate::tree;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

const QUIET: Duration = Duration::from_millis(30);

struct Copied {
    folder: tempfile::TempDir,
    outcome: Result<CopyOutcome, StoreError>,
}

/// Copies a file of four pieces. `before` runs after the file is opened, `between` after each piece; both receive the
/// path of the source.
fn copy_with(cancelled: CancelFlag, before: impl FnOnce(&Path), mut between: impl FnMut(&Path)) -> Copied {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("from");
    std::fs::write(&path, vec![b'x'; 4 * BUFFER_BYTES]).unwrap();
    std::fs::create_dir(folder.path().join(tree::PARTIAL)).unwrap();
    let root = OwnedFd::from(File::open(folder.path()).unwrap());
    let partial = Arc::new(OwnedFd::from(File::open(folder.path().join(tree::PARTIAL)).unwrap()));
    let (from, to) = (ObjectPath::of("from").unwrap(), ObjectPath::of("to").unwrap());
    let Ok(OpenResult::After(wait, source)) = Source::open(&root, &from, QUIET) else { panic!("it cannot be opened") };
    // Older systems round file times to a few milliseconds.
    std::thread::sleep(Duration::from_millis(20));
    before(&path);
    std::thread::sleep(wait);
    let copy = CopyTask { root: &root, partial: &partial, from, to, cancelled };
    let outcome = copy.run(source, || between(&path));
    let left = std::fs::read_dir(folder.path().join(tree::PARTIAL)).unwrap().count();
    assert_eq!(left, 0, "something half-written is left");
    Copied { folder, outcome }
}

fn copy(between: impl FnMut(&Path)) -> Copied {
    copy_with(CancelFlag::default(), |_| {}, between)
}

#[track_caller]
fn assert_changed(copied: Copied) {
    assert_eq!(copied.outcome.unwrap(), CopyOutcome::SourceChanged);
    assert!(!copied.folder.path().join("to").exists());
}

fn writable(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

#[test]
fn copy_accepts_unchanged_source() {
    let copied = copy(|_| {});
    assert!(matches!(copied.outcome.unwrap(), CopyOutcome::Copied(_)));
    assert_eq!(std::fs::read(copied.folder.path().join("to")).unwrap(), vec![b'x'; 4 * BUFFER_BYTES]);
}

#[test]
fn copy_rejects_source_truncated_during_copy() {
    assert_changed(copy(|path| writable(path).set_len(BUFFER_BYTES as u64).unwrap()));
}

#[test]
fn copy_rejects_source_that_grows_during_copy() {
    assert_changed(copy(|path| {
        OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
    }));
}

#[test]
fn copy_rejects_source_overwritten_in_place() {
    assert_changed(copy(|path| writable(path).write_all(b"y").unwrap()));
}

#[test]
fn copy_rejects_source_with_reset_times_after_write() {
    assert_changed(copy(|path| {
        let modified = std::fs::metadata(path).unwrap().modified().unwrap();
        let mut file = writable(path);
        file.write_all(b"y").unwrap();
        file.set_modified(modified).unwrap();
    }));
}

#[test]
fn copy_rejects_source_written_before_copy() {
    assert_changed(copy_with(CancelFlag::default(), |path| writable(path).write_all(b"y").unwrap(), |_| {}));
}

#[test]
fn copy_rejects_source_replaced_before_copy() {
    let replace = |path: &Path| {
        std::fs::write(path.with_extension("new"), vec![b'y'; 4 * BUFFER_BYTES]).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    };
    assert_changed(copy_with(CancelFlag::default(), replace, |_| {}));
}

#[test]
fn copy_rejects_source_linked_during_copy() {
    assert_changed(copy(|path| {
        // The second and later pieces find an existing link.
        let _ = std::fs::hard_link(path, path.with_extension("link"));
    }));
}

#[test]
fn copy_rejects_source_that_differs_when_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("from"), b"new").unwrap();
    let root = OwnedFd::from(File::open(folder.path()).unwrap());
    let place = ObjectPath::of("from").unwrap();
    let Ok(OpenResult::After(_, mut source)) = Source::open(&root, &place, QUIET) else {
        panic!("it cannot be opened")
    };
    let hash = |bytes: &[u8]| -> Hash { Sha256::digest(bytes).into() };
    assert!(source.reads_as(&hash(b"new"), || false).unwrap());
    assert!(!source.reads_as(&hash(b"old"), || false).unwrap());
}

#[test]
fn copy_ends_when_cancelled() {
    let cancelled = CancelFlag::default();
    let mut pieces = 0;
    let copied = copy_with(
        cancelled.clone(),
        |_| {},
        |_| {
            pieces += 1;
            drop(CancelOnDrop(cancelled.clone()));
        },
    );
    assert!(matches!(copied.outcome, Err(StoreError::Unavailable(_))));
    assert_eq!(pieces, 1);
    assert!(!copied.folder.path().join("to").exists());
}
