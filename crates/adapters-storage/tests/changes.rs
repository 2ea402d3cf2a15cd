//! The change feed with several processes on one database; each handle represents one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{
    Database, SeaOrmApiKeyRepository, SeaOrmChangeFeed, SeaOrmGuardrailRepository, SeaOrmWorkspaceRepository,
};
use common::*;
use domain::api_key::{ApiKeyRepository, ApiKeyScope, KeyReference, LastKeyRule, StoreKeyError};
use domain::audit::Actor;
use domain::change_feed::{Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use domain::error::StoreError;
use domain::guardrail::GuardrailRepository;
use domain::testing::set_disabled;
use domain::workspace::WorkspaceRepository;
use tokio::task::JoinSet;

/// A process that follows the feed.
struct Process {
    keys: SeaOrmApiKeyRepository,
    guardrails: SeaOrmGuardrailRepository,
    feed: SeaOrmChangeFeed,
    last: ChangePosition,
}

impl Process {
    async fn start(database: Database) -> Self {
        let feed = SeaOrmChangeFeed::new(database.clone());
        let Changes::StartOver(last) = feed.changes_since(None).await.unwrap() else { panic!("it has no position") };
        let keys = SeaOrmApiKeyRepository::new(database.clone());
        Self { keys, guardrails: SeaOrmGuardrailRepository::new(database), feed, last }
    }

    async fn disable(&self, number: u64, disabled: bool) {
        assert!(set_disabled(&self.keys, key_id(number), disabled, LastKeyRule::Waived, &audit()).await.unwrap());
    }

    /// Returns the changes since the last call; `None` if the feed does not continue.
    async fn poll(&mut self) -> Option<Vec<Change>> {
        match self.feed.changes_since(Some(self.last)).await.unwrap() {
            Changes::Continued(changes) => {
                self.last = changes.last().map_or(self.last, |change| change.position);
                Some(changes)
            }
            Changes::StartOver(newest) => {
                self.last = newest;
                None
            }
        }
    }

    async fn subjects(&mut self) -> Vec<ChangeSubject> {
        self.poll().await.unwrap().iter().map(|change| change.subject).collect()
    }
}

/// Returns two processes on a database with a workspace and a number of keys.
async fn two(folder: &Folder, keys: u64) -> [Process; 2] {
    let databases = [folder.open().await, folder.open().await];
    SeaOrmWorkspaceRepository::new(databases[0].clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    let repository = SeaOrmApiKeyRepository::new(databases[0].clone());
    for number in 1..=keys {
        assert!(
            repository
                .insert(&key(number, ApiKeyScope::Inference(workspace_id(1))), &audit())
                .await
                .unwrap()
                .is_inserted()
        );
    }
    let [one, two] = databases;
    [Process::start(one).await, Process::start(two).await]
}

fn keys(numbers: impl IntoIterator<Item = u64>) -> Vec<ChangeSubject> {
    numbers.into_iter().map(|number| ChangeSubject::Key(hash(number))).collect()
}

#[tokio::test]
async fn processes_see_changes_of_each_other_in_order() {
    let folder = Folder::new();
    let [mut one, mut two] = two(&folder, 4).await;
    one.disable(1, true).await;
    two.disable(2, true).await;
    one.disable(3, true).await;
    assert_eq!(two.subjects().await, keys([1, 2, 3]));
    two.disable(4, true).await;
    assert_eq!(one.subjects().await, keys([1, 2, 3, 4]));
    assert_eq!((one.subjects().await, two.subjects().await), (vec![], keys([4])));
    for number in [4, 2, 1] {
        one.disable(number, false).await;
        assert_eq!(two.subjects().await, keys([number]), "a process that found nothing finds the next change");
        assert_eq!(one.subjects().await, keys([number]), "its own as well");
        assert_eq!((one.subjects().await, two.subjects().await), (vec![], vec![]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_sees_all_changes_of_concurrent_writers() {
    const EACH: u64 = 40;
    let folder = Folder::new();
    let [mut reader, writer] = two(&folder, 2 * EACH).await;
    let mut writers = JoinSet::new();
    for (first, repository) in [(1, reader.keys.clone()), (EACH + 1, writer.keys.clone())] {
        writers.spawn(async move {
            for number in first..first + EACH {
                assert!(set_disabled(&repository, key_id(number), true, LastKeyRule::Waived, &audit()).await.unwrap());
            }
        });
    }
    let mut seen: Vec<Change> = Vec::new();
    while seen.len() < 2 * usize::try_from(EACH).unwrap() {
        seen.extend(reader.poll().await.expect("no number is missing"));
    }
    writers.join_all().await;
    let first = seen[0].position.number;
    assert!(seen.iter().zip(first..).all(|(change, number)| change.position.number == number));
    let of = |range: std::ops::Range<u64>| {
        let range = keys(range);
        seen.iter().map(|change| change.subject).filter(|subject| range.contains(subject)).collect::<Vec<_>>()
    };
    assert_eq!(of(1..EACH + 1), keys(1..=EACH), "the changes of a writer in its order");
    assert_eq!(of(EACH + 1..2 * EACH + 1), keys(EACH + 1..=2 * EACH));
    assert_eq!(reader.subjects().await, []);
}

#[tokio::test]
async fn rolled_back_transaction_leaves_no_gap() {
    let folder = Folder::new();
    let [one, mut two] = two(&folder, 2).await;
    let before = two.last.number;
    // The entry of the audit log is written after the change.
    folder.execute("ALTER TABLE audit_log RENAME TO audit_log_away").await;
    for _ in 0..3 {
        let undone = set_disabled(&one.keys, key_id(1), true, LastKeyRule::Waived, &audit()).await;
        assert!(matches!(undone, Err(StoreKeyError::Store(StoreError::Corrupt(_)))), "{undone:?}");
    }
    folder.execute("ALTER TABLE audit_log_away RENAME TO audit_log").await;
    assert_eq!(two.subjects().await, []);
    one.disable(2, true).await;
    assert_eq!(two.subjects().await, keys([2]));
    assert_eq!(two.last.number, before + 1);
}

/// A restored backup with new changes may have the same numbers.
#[tokio::test]
async fn restored_backup_has_new_feed() {
    let folder = Folder::new();
    let [mut one, mut two] = two(&folder, 2).await;
    one.disable(1, true).await;
    let backup = two.last.number + 1;
    assert_eq!((one.subjects().await, two.subjects().await), (keys([1]), keys([1])));
    for (lost, since) in [(3, 0), (3, 1), (3, 3), (2, 5)] {
        for number in 0..lost {
            one.disable(2, number % 2 == 0).await;
        }
        assert_eq!((one.poll().await.unwrap().len(), two.poll().await.unwrap().len()), (lost, lost));
        let restore = format!(
            "DELETE FROM changes WHERE number > {backup}; UPDATE change_feed SET number = {backup}; \
             UPDATE api_keys SET disabled = 0 WHERE deleted = 0"
        );
        folder.execute(&restore).await;
        for number in 0..since {
            one.disable(2, number % 2 == 0).await;
        }
        assert_eq!((one.poll().await, two.poll().await), (None, None), "{since} changes since");
        one.disable(1, true).await;
        assert_eq!((one.subjects().await, two.subjects().await), (keys([1]), keys([1])), "it starts over once");
        folder.execute(&restore).await;
        assert_eq!((one.poll().await, two.poll().await), (None, None));
    }
}

#[tokio::test]
async fn bulk_assignment_writes_one_change() {
    const KEYS: u64 = 5_000;
    let folder = Folder::new();
    let [mut one, mut two] = two(&folder, KEYS).await;
    assert!(one.guardrails.insert(&guardrail(1, 1), false, &audit()).await.unwrap());
    let before = folder.count("changes").await;
    let names: Vec<KeyReference> = (1..=KEYS).map(|number| key_id(number).into()).collect();
    assert_eq!(
        domain::testing::assign_keys(&one.guardrails, guardrail_id(1), &names, &Actor::system()).await.unwrap(),
        Some(KEYS)
    );
    assert_eq!(folder.count("changes").await, before + 1);
    let workspace = vec![ChangeSubject::Workspace(workspace_id(1))];
    assert_eq!((one.subjects().await, two.subjects().await), (workspace.clone(), workspace));
}

#[tokio::test]
async fn unreadable_subject_counts_as_everything() {
    let folder = Folder::new();
    let [one, mut two] = two(&folder, 1).await;
    for damage in ["area = 'of a newer version'", "subject = 'no digest'", "subject = NULL"] {
        one.disable(1, true).await;
        folder.execute(&format!("UPDATE changes SET {damage} WHERE area = 'key'")).await;
        assert_eq!(two.subjects().await, [ChangeSubject::Everything], "{damage}");
        one.disable(1, false).await;
        assert_eq!(two.subjects().await, keys([1]));
    }
}
