//! The secrets of destinations in the database, with and without an encryption key.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use adapters_storage::{Database, EncryptionKey, KeySetting, SeaOrmDestinationRepository, SeaOrmWorkspaceRepository};
use common::*;
use domain::error::StoreError;
use domain::ids::DestinationId;
use domain::observability::{Destination, DestinationInsert, DestinationKind, DestinationRepository};
use domain::secret::SecretString;
use domain::workspace::WorkspaceRepository;
use uuid::Uuid;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn destination(number: u128) -> Destination {
    Destination {
        id: DestinationId::from_uuid(Uuid::from_u128(number)),
        workspace_id: workspace_id(1),
        name: "hook".to_owned(),
        kind: DestinationKind::Webhook,
        url: "https://example.org/in?token=t0ken".to_owned(),
        headers: vec![("x-key".to_owned(), SecretString::new("h1dden"))],
        signing_secret: Some(SecretString::new("s1gning secret ✓")),
        enabled: true,
        privacy_mode: true,
        sampling: 10_000,
        api_key_ids: None,
        created_at: at(0),
        updated_at: None,
    }
}

/// Opens the database of a folder with a key.
async fn open_with(folder: &Folder, key: Option<&str>) -> Database {
    let key = key.map_or(KeySetting::Unset, |text| KeySetting::Key(EncryptionKey::from_base64(text).unwrap()));
    let settings = adapters_storage::StorageSettings { encryption_key: key, ..folder.settings() };
    open(&settings).await
}

async fn add(database: &Database, number: u128) {
    let added = SeaOrmDestinationRepository::new(database.clone()).insert(&destination(number), 5, &audit()).await;
    assert_eq!(added.unwrap(), DestinationInsert::Added);
}

/// Returns the configuration of a destination as it is stored.
async fn stored(folder: &Folder, number: u128) -> String {
    let pool = folder.raw().await;
    let sql = format!("SELECT config FROM destinations WHERE id = '{}'", destination(number).id);
    let sql = sea_orm::sqlx::AssertSqlSafe(sql);
    let config = sea_orm::sqlx::query_scalar(sql).fetch_one(&pool).await.unwrap();
    pool.close().await;
    config
}

fn is_plain(config: &str) -> bool {
    ["t0ken", "h1dden", "s1gning"].into_iter().all(|secret| config.contains(secret))
}

fn is_hidden(config: &str) -> bool {
    !["t0ken", "h1dden", "s1gning", "example.org"].into_iter().any(|secret| config.contains(secret))
}

#[tokio::test]
async fn secrets_are_encrypted_with_a_key() {
    let folder = Folder::new();
    let database = open_with(&folder, Some(KEY)).await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    add(&database, 1).await;
    let config = stored(&folder, 1).await;
    assert!(is_hidden(&config), "{config}");
    let repository = SeaOrmDestinationRepository::new(database);
    assert_eq!(repository.find(destination(1).id).await.unwrap(), Some(destination(1)));
    assert_eq!(repository.list(None).await.unwrap(), [destination(1)]);
    assert_eq!(repository.encryption_status().await.unwrap(), (1, 0));
}

#[tokio::test]
async fn plain_rows_are_read_and_encrypted_when_written() {
    let folder = Folder::new();
    let plain = open_with(&folder, None).await;
    SeaOrmWorkspaceRepository::new(plain.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    for number in 1..=2 {
        add(&plain, number).await;
        assert!(is_plain(&stored(&folder, number).await));
    }
    let database = open_with(&folder, Some(KEY)).await;
    let repository = SeaOrmDestinationRepository::new(database);
    assert_eq!(repository.list(None).await.unwrap().len(), 2);
    let changed = Destination { updated_at: Some(at(5)), ..destination(1) };
    assert!(repository.update(&changed, None, &audit()).await.unwrap());
    assert!(is_hidden(&stored(&folder, 1).await) && is_plain(&stored(&folder, 2).await));
    assert_eq!(repository.encryption_status().await.unwrap(), (1, 1));
    assert_eq!(repository.list(None).await.unwrap(), [changed, destination(2)]);
}

#[tokio::test]
async fn missing_and_wrong_keys_are_unavailable_and_change_nothing() {
    let folder = Folder::new();
    let database = open_with(&folder, Some(KEY)).await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    add(&database, 1).await;
    let before = stored(&folder, 1).await;
    for (key, expected) in [(None, "are encrypted"), (Some(OTHER_KEY), "another key")] {
        let repository = SeaOrmDestinationRepository::new(open_with(&folder, key).await);
        let found = repository.find(destination(1).id).await.map(drop);
        let listed = repository.list(None).await.map(drop);
        for result in [found, listed] {
            let Err(StoreError::Unavailable(cause)) = result else { panic!("{result:?}") };
            let text = cause.to_string();
            assert!(text.contains(expected) && text.contains(&destination(1).id.to_string()), "{text}");
        }
    }
    assert_eq!(stored(&folder, 1).await, before);
    let keyless = SeaOrmDestinationRepository::new(open_with(&folder, None).await);
    assert_eq!(keyless.names(None).await.unwrap(), [destination(1).named()], "to delete it after a loss of the key");
    // A row of another destination is not accepted, even with the right key.
    add(&database, 2).await;
    folder.execute(&format!("UPDATE destinations SET config = '{before}' WHERE id = '{}'", destination(2).id)).await;
    assert!(SeaOrmDestinationRepository::new(database).find(destination(2).id).await.is_err());
}

#[tokio::test]
async fn destination_is_not_added_with_another_key() {
    let folder = Folder::new();
    let database = open_with(&folder, Some(KEY)).await;
    SeaOrmWorkspaceRepository::new(database.clone()).insert(&workspace(1), false, &audit()).await.unwrap();
    add(&database, 1).await;
    for key in [Some(OTHER_KEY), None] {
        let other = SeaOrmDestinationRepository::new(open_with(&folder, key).await);
        let added = other.insert(&destination(2), 5, &audit()).await;
        assert!(matches!(added, Err(StoreError::Corrupt(_) | StoreError::Unavailable(_))), "{added:?}");
    }
    assert_eq!(SeaOrmDestinationRepository::new(database).list(None).await.unwrap(), [destination(1)]);
}
