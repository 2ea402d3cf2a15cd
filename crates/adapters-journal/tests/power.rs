//! Power failures, after which any of the unsynced writes may have reached the disk.

use std::time::Duration;

use adapters_journal::testing::LocalMachine;
use domain::budget::EntryKind;
use domain::ids::ProcessId;
use domain::testing::contract::JournalMachine;
use domain::testing::{FixedClock, JournalBounds, JournalContent};
use proptest::prelude::*;
use uuid::Uuid;

const PROCESS: ProcessId = ProcessId::from_uuid(Uuid::from_u128(2));
const BOUNDS: JournalBounds =
    JournalBounds { max_bytes: 1 << 20, max_payload_bytes: 300, is_synced_by_hand: true, keeps_folded: false };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(48, ProptestConfig::default().cases)))]

    /// For any surviving writes: synced entries are present, no entry is invented, and gaps are reported.
    #[test]
    fn synced_entries_survive_power_failure_and_gaps_are_reported(
        synced in prop::collection::vec(0_usize..300, 0..30),
        unsynced in prop::collection::vec(0_usize..300, 0..30),
        survivors in prop::collection::vec(any::<bool>(), 30),
    ) {
        let machine = LocalMachine::new(Uuid::from_u128(1), FixedClock::default()).unwrap();
        let journal = machine.start(PROCESS, BOUNDS);
        let mut payloads = Vec::new();
        let mut append = |size: &usize| {
            let payload = vec![u8::try_from(payloads.len()).unwrap(); *size];
            journal.append_end(EntryKind::Charged, &payload, 0).unwrap();
            payloads.push(payload);
        };
        synced.iter().for_each(&mut append);
        machine.sync(PROCESS);
        unsynced.iter().for_each(&mut append);
        drop(journal);
        let mut survivors = survivors.into_iter();
        machine.disk().lose_power(Uuid::from_u128(9), || survivors.next().unwrap_or(false)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(async {
            let mut found = machine.orphans(Duration::MAX).find().await.unwrap();
            JournalContent::of(&*found.remove(0)).await.unwrap()
        });
        prop_assert!(found.damage.is_of_another_boot);
        // The journal does not know its first number: recovery compares it with the folded sequence.
        let mut next = found.entries.first().map_or(1, |first| first.sequence);
        for entry in &found.entries {
            prop_assert_eq!(&*entry.payload, &payloads[usize::try_from(entry.sequence - 1).unwrap()][..]);
            let is_named = |missing| found.damage.gaps.iter().any(|gap| (gap.first..gap.end).contains(&missing));
            prop_assert!((next..entry.sequence).all(is_named), "{} to {} of {:?}", next, entry.sequence, found.damage.gaps);
            next = entry.sequence + 1;
        }
        prop_assert!(found.entries.len() >= synced.len() && found.entries.iter().zip(1..).take(synced.len()).all(|(entry, n)| entry.sequence == n));
    }
}
