//! The journal on a working and on a failing disk.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adapters_journal::{
    Disk, Gap, GapReason, Journal, JournalError, JournalPorts, JournalSettings, LocalDisk, LocalJournals, Origin,
    ReadReport, SegmentFile, find_orphans, quarantine_gaps, read_folder,
};
use async_trait::async_trait;
use domain::budget::{EntrySink, JournalEntry, OrphanedJournals, UsageJournalError};
use domain::testing::FixedClock;
use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

const PROCESS: Uuid = Uuid::from_u128(2);
const STORE: Uuid = Uuid::from_u128(1);

/// Number, kind and payload of each entry.
type Entries = Vec<(u64, u8, Vec<u8>)>;

fn origin() -> Origin {
    Origin { store: STORE, process: PROCESS, boot: Uuid::from_u128(3) }
}

/// Small segments, and manual syncs.
fn settings() -> JournalSettings {
    JournalSettings {
        segment_bytes: 4096,
        max_payload_bytes: 512,
        sync_interval: None,
        sync_retry: Duration::ZERO,
        ..JournalSettings::default()
    }
}

fn ports(disk: impl Disk + 'static) -> JournalPorts {
    JournalPorts { disk: Arc::new(disk), clock: Arc::new(FixedClock::default()) }
}

fn journal(root: &TempDir) -> Journal {
    Journal::create(root.path(), origin(), settings(), &ports(LocalDisk)).unwrap()
}

fn append(journal: &Journal, payload: &[u8]) -> u64 {
    let sequence = journal.append_and_reserve(1, payload, 0).unwrap();
    journal.append_reserved(2, b"end", 0).unwrap();
    sequence
}

fn folder(root: &TempDir) -> PathBuf {
    root.path().join(PROCESS.to_string())
}

fn read(folder: &Path) -> (Entries, ReadReport) {
    let mut entries = Vec::new();
    let report = read_folder::<JournalError>(folder, STORE, PROCESS, |entry| {
        entries.push((entry.sequence, entry.kind, entry.payload.to_vec()));
        Ok(())
    });
    (entries, report.unwrap())
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    paths.sort();
    paths
}

/// A local disk with injected failures.
#[derive(Debug, Default, Clone)]
struct FaultyDisk(Arc<Faults>);

#[derive(Debug, Default)]
struct Faults {
    writes: AtomicBool,
    syncs: AtomicBool,
    creates: AtomicBool,
    /// The number of bytes that a failing write still writes.
    torn_bytes: AtomicU64,
}

impl Faults {
    fn check(flag: &AtomicBool) -> io::Result<()> {
        if flag.load(Ordering::SeqCst) { Err(io::Error::other("planted")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct FaultyFile(Arc<dyn SegmentFile>, Arc<Faults>);

impl Disk for FaultyDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        Faults::check(&self.0.creates)?;
        Ok(Arc::new(FaultyFile(LocalDisk.create(path, bytes)?, Arc::clone(&self.0))))
    }
}

impl SegmentFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = Faults::check(&self.1.writes) {
            let torn = usize::try_from(self.1.torn_bytes.load(Ordering::SeqCst)).unwrap().min(bytes.len());
            self.0.write_at(&bytes[..torn], offset)?;
            return Err(error);
        }
        self.0.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        Faults::check(&self.1.syncs)?;
        self.0.sync()
    }
}

fn faulty(root: &TempDir) -> (Journal, FaultyDisk) {
    let disk = FaultyDisk::default();
    (Journal::create(root.path(), origin(), settings(), &ports(disk.clone())).unwrap(), disk)
}

#[test]
fn reader_returns_what_was_appended_over_many_segments() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    let payloads: Vec<Vec<u8>> = (0..100_u8).map(|n| vec![n; usize::from(n) * 3]).collect();
    for payload in &payloads {
        append(&journal, payload);
    }
    assert!(segments(journal.folder()).len() > 3);
    let (entries, report) = read(journal.folder());
    let starts: Vec<_> = entries.iter().filter(|entry| entry.1 == 1).map(|entry| entry.2.clone()).collect();
    assert_eq!(starts, payloads);
    assert_eq!((report.first_sequence, report.last_sequence), (Some(1), Some(200)));
    assert!(report.gaps.is_empty() && report.torn_bytes == 0 && report.boots == [origin().boot]);
    assert_eq!(journal.reserved_bytes(), 0);
}

/// The number of entries of each part of a journal.
#[derive(Default)]
struct Parts(Vec<usize>);

#[async_trait]
impl EntrySink for Parts {
    async fn take(&mut self, entries: Vec<JournalEntry>) -> Result<(), UsageJournalError> {
        self.0.push(entries.len());
        Ok(())
    }
}

#[tokio::test]
async fn journal_of_a_dead_process_is_read_one_segment_at_a_time() {
    let root = TempDir::new().unwrap();
    let dead = journal(&root);
    for _ in 0..200 {
        append(&dead, &[7; 100]);
    }
    let segments = segments(dead.folder()).len();
    drop(dead);
    let orphan = LocalJournals::new(root.path(), STORE, Duration::MAX).find().await.unwrap().remove(0);
    let mut parts = Parts::default();
    assert_eq!(orphan.read(&mut parts).await.unwrap().gaps, []);
    assert!(segments > 5 && parts.0.len() == segments, "{segments} segments, {:?}", parts.0);
    assert_eq!(parts.0.iter().sum::<usize>(), 400);
}

#[test]
fn append_is_readable_before_any_sync() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    append(&journal, b"one");
    assert_eq!(read(journal.folder()).0.len(), 2);
    assert_eq!(journal.status().synced_sequence, 0);
}

#[test]
fn concurrent_appends_have_distinct_numbers_and_none_is_lost() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    let sequences = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..4_u8 {
            let (journal, sequences) = (&journal, &sequences);
            scope.spawn(move || {
                for _ in 0..200 {
                    let sequence = append(journal, &[worker; 40]);
                    sequences.lock().unwrap().push(sequence);
                    if sequence.is_multiple_of(7) {
                        journal.sync().unwrap();
                    }
                }
            });
        }
    });
    let mut sequences = sequences.into_inner().unwrap();
    sequences.sort_unstable();
    let (entries, report) = read(journal.folder());
    let starts: Vec<_> = entries.iter().filter(|entry| entry.1 == 1).map(|entry| entry.0).collect();
    assert_eq!(starts, sequences);
    assert_eq!((report.entries, report.gaps), (1600, vec![]));
}

#[test]
fn append_is_rejected_above_the_bounds_and_leaves_no_trace() {
    let root = TempDir::new().unwrap();
    let bounds = JournalSettings { max_unfolded_bytes: 200, ..settings() };
    let journal = Journal::create(root.path(), origin(), bounds, &ports(LocalDisk)).unwrap();
    assert!(matches!(journal.append_and_reserve(1, &[0; 513], 0), Err(JournalError::TooLarge { bytes: 513, .. })));
    assert!(matches!(journal.append_and_reserve(1, &[], 513), Err(JournalError::TooLarge { bytes: 513, .. })));
    journal.append_and_reserve(1, &[1; 50], 50).unwrap();
    assert!(matches!(journal.append_and_reserve(1, &[1; 50], 50), Err(JournalError::Full { max_bytes: 200, .. })));
    journal.append_reserved(2, &[2; 50], 50).expect("its room was kept");
    journal.sync().unwrap();
    journal.remove_folded(2);
    journal.append_and_reserve(1, &[1; 50], 50).expect("what is folded counts no more");
    assert_eq!(read(journal.folder()).0.len(), 3);
}

#[test]
fn append_reserved_succeeds_on_full_disk() {
    let root = TempDir::new().unwrap();
    let (journal, disk) = faulty(&root);
    let mut granted = 0;
    disk.0.creates.store(true, Ordering::SeqCst);
    while journal.append_and_reserve(1, &[1; 400], 500).is_ok() {
        granted += 1;
        assert!(granted < 1000, "the disk is never full");
    }
    assert!(granted > 1);
    for _ in 0..granted {
        journal.append_reserved(2, &[2; 500], 500).unwrap();
    }
    assert_eq!(read(journal.folder()).1.entries, granted * 2);
}

#[test]
fn journal_without_room_is_not_writable_until_the_disk_has_room_again() {
    let root = TempDir::new().unwrap();
    let (journal, disk) = faulty(&root);
    assert!(journal.status().is_writable);
    disk.0.creates.store(true, Ordering::SeqCst);
    while journal.append_and_reserve(1, &[1; 400], 500).is_ok() {
        assert!(journal.status().last_sequence < 1000, "the disk is never full");
    }
    assert!(!journal.status().is_writable, "requests are rejected");
    disk.0.creates.store(false, Ordering::SeqCst);
    // No request is needed: a load balancer sends none to a server that is not ready.
    let recovers = (0..3_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        journal.status().is_writable
    });
    assert!(recovers, "it stays unwritable");
    append(&journal, b"after");
}

#[test]
fn rejected_entry_is_written_later_in_order() {
    let root = TempDir::new().unwrap();
    let (journal, disk) = faulty(&root);
    append(&journal, b"before");
    journal.append_and_reserve(1, b"start", 10).unwrap();
    disk.0.torn_bytes.store(9, Ordering::SeqCst);
    disk.0.writes.store(true, Ordering::SeqCst);
    assert!(matches!(journal.append_reserved(2, b"end", 10), Err(JournalError::Retained { sequence: 4, .. })));
    let segments_before = segments(journal.folder()).len();
    for _ in 0..20 {
        assert!(matches!(journal.append_and_reserve(1, b"new", 0), Err(JournalError::Write(_))), "nothing is taken in");
    }
    // One allocation may have been pending, and the allocating thread retries as well.
    assert!(segments(journal.folder()).len() <= segments_before + 2, "no segment a try");
    assert!(!journal.status().is_writable);
    disk.0.writes.store(false, Ordering::SeqCst);
    append(&journal, b"after");
    assert!(journal.status().is_writable);
    let (entries, report) = read(journal.folder());
    let payloads: Vec<_> = entries.iter().map(|entry| entry.2.as_slice()).collect();
    assert_eq!(payloads, [&b"before"[..], b"end", b"start", b"end", b"after", b"end"]);
    assert_eq!((report.gaps, report.torn_bytes), (vec![], 0));
}

#[tokio::test]
async fn wait_synced_resolves_after_sync() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    let sequence = append(&journal, b"one");
    assert!(tokio::time::timeout(Duration::from_millis(20), journal.wait_synced(sequence)).await.is_err());
    journal.sync().unwrap();
    journal.wait_synced(sequence).await.unwrap();
}

#[tokio::test]
async fn entries_are_synced_after_interval() {
    let root = TempDir::new().unwrap();
    let interval = JournalSettings { sync_interval: Some(Duration::from_millis(1)), ..settings() };
    let journal = Journal::create(root.path(), origin(), interval, &ports(LocalDisk)).unwrap();
    let sequence = append(&journal, b"one");
    tokio::time::timeout(Duration::from_secs(30), journal.wait_synced(sequence)).await.unwrap().unwrap();
}

#[test]
fn failed_sync_rewrites_entries_to_new_segment() {
    let root = TempDir::new().unwrap();
    let (journal, disk) = faulty(&root);
    append(&journal, b"synced");
    journal.sync().unwrap();
    append(&journal, b"unsynced");
    disk.0.syncs.store(true, Ordering::SeqCst);
    // The header of a new segment is synced, too: the segment allocated ahead is used, then none can be created.
    assert!(journal.sync().is_err());
    assert_eq!(journal.status().synced_sequence, 2);
    disk.0.syncs.store(false, Ordering::SeqCst);
    journal.sync().unwrap();
    assert_eq!(journal.status().synced_sequence, 4);
    // The unsynced bytes are gone, as after a power failure.
    let first = segments(journal.folder())[0].clone();
    let mut bytes = std::fs::read(&first).unwrap();
    let unsynced = bytes.windows(8).position(|window| window == b"unsynced").unwrap();
    bytes[unsynced - 17..].fill(0);
    let (entries, report) = read(journal.folder());
    assert_eq!((entries.len(), report.gaps.len()), (4, 0), "each is read once");
    std::fs::write(&first, bytes).unwrap();
    let (entries, report) = read(journal.folder());
    assert_eq!((entries.len(), report.gaps.len()), (4, 0), "none is lost");
}

#[test]
fn unfolded_returns_synced_entries_from_memory_and_disk() {
    let root = TempDir::new().unwrap();
    let small = JournalSettings { max_memory_bytes: 100, ..settings() };
    let journal = Journal::create(root.path(), origin(), small, &ports(LocalDisk)).unwrap();
    for n in 0..50 {
        append(&journal, &[n; 30]);
    }
    assert_eq!(journal.unfolded(10, 1 << 20).unwrap(), [], "not synced");
    journal.sync().unwrap();
    let mut folded = Vec::new();
    loop {
        let batch = journal.unfolded(7, 200).unwrap();
        let Some(last) = batch.last().map(|entry| entry.sequence) else { break };
        assert!(batch.len() <= 7 && batch.iter().map(|entry| entry.payload.len()).sum::<usize>() <= 200);
        assert_eq!(batch, journal.unfolded(7, 200).unwrap(), "the same until it is folded");
        folded.extend(batch);
        journal.remove_folded(last);
    }
    let expected = read(journal.folder()).0;
    let folded: Vec<_> = folded.iter().map(|entry| (entry.sequence, entry.kind, entry.payload.to_vec())).collect();
    assert_eq!(folded, expected);
    assert_eq!((journal.status().unfolded_entries, journal.status().unfolded_bytes), (0, 0));
}

#[test]
fn remove_segments_keeps_unfolded_and_pending_ones() {
    let root = TempDir::new().unwrap();
    let clock = FixedClock::default();
    let ports = JournalPorts { clock: Arc::new(clock.clone()), ..ports(LocalDisk) };
    let journal = Journal::create(root.path(), origin(), settings(), &ports).unwrap();
    for _ in 0..100 {
        append(&journal, &[1; 100]);
    }
    journal.sync().unwrap();
    let before = segments(journal.folder());
    assert_eq!(journal.remove_segments(u64::MAX, Duration::ZERO).unwrap(), 0, "nothing is folded");
    journal.remove_folded(150);
    assert_eq!(journal.remove_segments(1, Duration::ZERO).unwrap(), 0, "a call of the first is in flight");
    let keep = Duration::from_hours(1);
    assert_eq!(journal.remove_segments(u64::MAX, keep).unwrap(), 0, "kept for a while");
    clock.advance(keep);
    let removed = journal.remove_segments(u64::MAX, keep).unwrap();
    assert!(removed > 1);
    // The allocating thread may have added one in the meantime.
    assert_eq!(before.iter().filter(|path| !path.exists()).count(), removed);
    let (entries, report) = read(journal.folder());
    assert!(entries[0].0 <= 151 && entries.last().unwrap().0 == 200 && report.gaps.is_empty());
}

#[test]
fn folded_segments_are_limited_in_size() {
    let root = TempDir::new().unwrap();
    let bounds = JournalSettings { max_unfolded_bytes: 3 * settings().segment_bytes, ..settings() };
    let journal = Journal::create(root.path(), origin(), bounds, &ports(LocalDisk)).unwrap();
    for _ in 0..20 {
        for _ in 0..10 {
            append(&journal, &[1; 100]);
        }
        journal.sync().unwrap();
        journal.remove_folded(u64::MAX);
        journal.remove_segments(u64::MAX, Duration::from_hours(1)).unwrap();
        // Three full segments, the current one, and one or two allocated ahead.
        assert!(segments(journal.folder()).len() <= 6);
    }
    assert_eq!(read(journal.folder()).0.last().unwrap().0, 400, "the newest are kept");
}

#[test]
fn folder_is_orphan_after_journal_is_dropped() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    append(&journal, b"one");
    let find_own = || find_orphans(root.path(), |_, _| Ok(false));
    assert!(find_own().unwrap().is_empty());
    drop(journal);
    let [orphan] = find_own().unwrap().try_into().unwrap();
    assert_eq!(orphan.process, PROCESS);
    assert_eq!(read(orphan.lock.path()).1.entries, 2);
    orphan.lock.remove().unwrap();
    assert!(!folder(&root).exists());
    Journal::create(root.path(), origin(), settings(), &ports(LocalDisk)).expect("the folder is free again");
}

/// Returns a closed journal with entries in at least three segments.
fn written(root: &TempDir) -> (Entries, Vec<PathBuf>) {
    let journal = journal(root);
    let used = || {
        let mut used = segments(&folder(root));
        // A segment that was allocated ahead, or overtaken by that of another thread, is empty after its header.
        used.retain(|path| std::fs::read(path).unwrap().iter().skip(72).any(|byte| *byte != 0));
        used
    };
    while used().len() < 3 {
        append(&journal, &[7; 200]);
    }
    drop(journal);
    let used = used();
    (read(&folder(root)).0, used)
}

#[test]
fn reader_reports_missing_segment() {
    let root = TempDir::new().unwrap();
    let (all, segments) = written(&root);
    std::fs::remove_file(&segments[1]).unwrap();
    let (entries, report) = read(&folder(&root));
    let [Gap { reason: GapReason::Missing, sequences, bytes: None }] = &report.gaps[..] else { panic!("{report:?}") };
    assert_eq!(entries.len() as u64 + (sequences.end - sequences.start), all.len() as u64);
    assert!(entries.iter().all(|entry| !sequences.contains(&entry.0)));
}

#[test]
fn reader_reports_foreign_segments() {
    for (offset, expected) in [
        (20, GapReason::ForeignStore(Uuid::from_u128(9))),
        (36, GapReason::ForeignProcess(Uuid::from_u128(9))),
        (8, GapReason::Version(9)),
    ] {
        let root = TempDir::new().unwrap();
        let (all, segments) = written(&root);
        let mut bytes = std::fs::read(&segments[1]).unwrap();
        if expected == GapReason::Version(9) {
            bytes[8] = 9;
        } else {
            bytes[offset..offset + 16].copy_from_slice(Uuid::from_u128(9).as_bytes());
            let checksum = crc32c::crc32c(&bytes[..68]).to_le_bytes();
            bytes[68..72].copy_from_slice(&checksum);
        }
        std::fs::write(&segments[1], &bytes).unwrap();
        let (entries, report) = read(&folder(&root));
        assert!(entries.len() < all.len());
        assert_eq!(report.gaps[0].reason, expected);
        assert_eq!(report.gaps[1].reason, GapReason::Missing, "its numbers are missing, too");
        let quarantine = root.path().join("quarantine");
        let copies = quarantine_gaps(&report.gaps, PROCESS, &quarantine).unwrap();
        assert_eq!(std::fs::read(&copies[0]).unwrap(), bytes);
        assert!(quarantine_gaps(&report.gaps, PROCESS, &quarantine).unwrap().is_empty(), "once");
    }
}

#[test]
fn reader_names_what_is_no_segment_and_reads_the_rest() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    type Replace = fn(&Path);
    let cases: [(&str, GapReason, Replace); 7] = [
        ("pipe", GapReason::NotAFile("a pipe"), |path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap()),
        ("folder", GapReason::NotAFile("a folder"), |path| std::fs::create_dir(path).unwrap()),
        ("socket", GapReason::NotAFile("a socket"), |path| {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }),
        ("link to a device", GapReason::NotAFile("a symbolic link"), |path| {
            std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        }),
        ("link to a file", GapReason::NotAFile("a symbolic link"), |path| {
            std::os::unix::fs::symlink("elsewhere", path).unwrap();
        }),
        ("sparse file", GapReason::TooLarge(1 << 40), |path| {
            std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        }),
        ("file of one byte too many", GapReason::TooLarge((32 << 20) + 1), |path| {
            std::fs::File::create(path).unwrap().set_len((32 << 20) + 1).unwrap();
        }),
    ];
    for (name, expected, replace) in cases {
        let root = TempDir::new().unwrap();
        let (all, segments) = written(&root);
        std::fs::rename(&segments[1], folder(&root).join("elsewhere")).unwrap();
        replace(&segments[1]);
        let (entries, report) = read(&folder(&root));
        assert_eq!(report.gaps[0].reason, expected, "{name}");
        assert_eq!(report.gaps[0].bytes.as_ref().unwrap().0, segments[1], "{name}");
        assert_eq!(report.gaps[1].reason, GapReason::Missing, "{name}: its numbers are missing, too");
        assert_eq!(entries.last(), all.last(), "{name}: the segments behind it are read");
        let copies = quarantine_gaps(&report.gaps, PROCESS, &root.path().join("quarantine")).unwrap();
        assert_eq!(copies.len(), usize::from(name.contains("file of") || name.contains("sparse")), "{name}");
        assert!(copies.iter().all(|copy| copy.metadata().unwrap().len() <= 32 << 20), "{name}: only its beginning");
    }
}

#[tokio::test]
async fn journal_with_a_pipe_is_recovered_and_locks_are_files() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let root = TempDir::new().unwrap();
    let (all, segments) = written(&root);
    std::fs::remove_file(&segments[1]).unwrap();
    mknodat(CWD, &segments[1], FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let journals = LocalJournals::new(root.path(), STORE, Duration::ZERO);
    assert!(journals.live().unwrap().is_empty());
    let found = journals.find().await.unwrap();
    let mut parts = Parts::default();
    let damage = found[0].read(&mut parts).await.unwrap();
    assert_eq!(damage.gaps[0].reason, format!("a pipe instead of a segment at {}", segments[1].display()));
    let read = parts.0.iter().sum::<usize>();
    assert!(read > 0 && read < all.len(), "{read} of {}", all.len());
    found[0].quarantine().await.unwrap();
    found[0].finish().await.unwrap();
    assert!(found[0].remove_if_old().await.unwrap());

    let lock = root.path().join("lock");
    std::fs::remove_file(&lock).unwrap();
    mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = find_orphans(root.path(), |_, _| Ok(false)).unwrap_err().to_string();
    assert!(error.contains(&lock.display().to_string()) && error.contains("no regular file"), "{error}");
}

#[tokio::test]
async fn journal_of_another_store_is_not_found_and_stays_as_it_is() {
    const OTHER: Uuid = Uuid::from_u128(9);
    let root = TempDir::new().unwrap();
    let (_, used) = written(&root);
    let files = || {
        let mut files: Vec<_> = std::fs::read_dir(folder(&root)).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let journals = |store| LocalJournals::new(root.path(), store, Duration::ZERO);
    let count = async |store| journals(store).find().await.unwrap().len();
    let damage = |segment: &Path| {
        let mut bytes = std::fs::read(segment).unwrap();
        bytes[70] ^= 1;
        std::fs::write(segment, bytes).unwrap();
    };
    damage(&used[0]);
    let before = files();
    let elsewhere = journals(OTHER);
    for _ in 0..2 {
        assert!(elsewhere.find().await.unwrap().is_empty());
    }
    assert_eq!(files(), before);
    assert_eq!(count(STORE).await, 1);
    // A journal that can be of this store is never skipped.
    let mut mixed = std::fs::read(&used[1]).unwrap();
    mixed[20..36].copy_from_slice(OTHER.as_bytes());
    let checksum = crc32c::crc32c(&mixed[..68]).to_le_bytes();
    mixed[68..72].copy_from_slice(&checksum);
    std::fs::write(&used[1], mixed).unwrap();
    assert_eq!((count(STORE).await, count(OTHER).await), (1, 1));
    for segment in &segments(&folder(&root))[1..] {
        damage(segment);
    }
    assert_eq!((count(STORE).await, count(OTHER).await), (1, 1));
}

#[test]
fn reader_ignores_unfinished_segment() {
    let root = TempDir::new().unwrap();
    let (all, segments) = written(&root);
    let header = std::fs::read(&segments[0]).unwrap()[..72].to_vec();
    let unfinished = folder(&root).join("0000000000009999.segment");
    for length in [0, 1, 36, 71] {
        let bytes = [&header[..length], &vec![0; 4096 - length]].concat();
        std::fs::write(&unfinished, bytes).unwrap();
        let (entries, report) = read(&folder(&root));
        assert_eq!((entries, report.gaps), (all.clone(), vec![]), "{length} bytes of the header");
    }
    let used = std::fs::read(segments.last().unwrap()).unwrap();
    std::fs::write(&unfinished, [&header[..36], &[0; 36], &used[72..]].concat()).unwrap();
    assert_eq!(read(&folder(&root)).1.gaps.len(), 1, "a segment with entries had a header");
}

#[test]
fn reader_cuts_torn_end_without_gap() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    for _ in 0..5 {
        append(&journal, &[7; 100]);
    }
    drop(journal);
    let first = segments(&folder(&root))[0].clone();
    let bytes = std::fs::read(&first).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in 1..=20 {
        let mut torn = bytes.clone();
        torn[used - cut..].fill(0);
        std::fs::write(&first, &torn).unwrap();
        let (entries, report) = read(&folder(&root));
        assert_eq!((entries.len(), report.gaps.len()), (9, 0), "{cut}");
        assert_eq!(report.torn_bytes > 0, cut < 20, "{cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(64, ProptestConfig::default().cases)))]

    /// For any damage: returned entries were written, and missing ones are reported or at the end.
    #[test]
    fn reader_reports_any_damage(
        sizes in prop::collection::vec(0_usize..300, 1..60),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..200, any::<u8>()), 1..4),
    ) {
        let root = TempDir::new().unwrap();
        let journal = journal(&root);
        for size in sizes {
            append(&journal, &vec![9; size]);
        }
        drop(journal);
        let (all, _) = read(&folder(&root));
        let segments = segments(&folder(&root));
        for (at, length, byte) in damage {
            let at = at.index(segments.len() * 4096);
            let (segment, offset) = (&segments[at / 4096], at % 4096);
            let mut bytes = std::fs::read(segment).unwrap();
            let end = bytes.len().min(offset + length);
            bytes[offset..end].fill(byte);
            std::fs::write(segment, bytes).unwrap();
        }
        let (entries, report) = read(&folder(&root));
        prop_assert!(entries.iter().all(|entry| all.contains(entry)), "something was invented");
        for entry in &all {
            let read = entries.contains(entry);
            let named = report.gaps.iter().any(|gap| gap.sequences.contains(&entry.0));
            let before = report.first_sequence.is_none_or(|first| entry.0 < first);
            let after = report.last_sequence.is_none_or(|last| entry.0 > last);
            prop_assert!(read || named || before || after, "{} of {report:?}", entry.0);
            prop_assert!(!(read && named), "{} was read and named", entry.0);
        }
    }
}

#[test]
fn reservation_of_zero_reserves_no_bytes() {
    let root = TempDir::new().unwrap();
    let journal = journal(&root);
    journal.append_and_reserve(1, b"sent", 100).unwrap();
    let reserved = journal.reserved_bytes();
    for _ in 0..10 {
        journal.append_and_reserve(2, b"more", 0).unwrap();
    }
    assert_eq!(journal.reserved_bytes(), reserved);
    journal.append_reserved(3, b"end", 100).unwrap();
    assert_eq!(journal.reserved_bytes(), 0);
}
