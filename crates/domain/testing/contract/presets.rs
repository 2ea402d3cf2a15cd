//! Cases of [`crate::preset::PresetRepository`].

use super::super::{SequentialIds, join_all};
use super::Stores;
use super::samples::{add_workspace, at, audit, changed_since, newest_change, workspace, workspace_id};
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::ids::PresetId;
use crate::json::Json;
use crate::preset::{DesignatedPreset, Preset, PresetConfig, PresetSave, PresetSlug, PresetStatus, PresetVersion};
use crate::workspace::{WorkspaceContents, WorkspaceDeletion};

suite! {
    /// Every case of the port's contract.
    preset_repository_cases as preset_repository_contract over Stores {
        find_returns_saved_preset_with_designated_version,
        save_rejects_another_state_and_taken_slug,
        concurrent_saves_of_one_state_succeed_once,
        concurrent_creations_never_exceed_the_limit,
        page_is_last_changed_first,
        versions_are_oldest_first,
        saves_write_feed_and_audit_log,
        deletion_of_workspace_deletes_its_presets,
    }
}

fn preset(number: u64, of: u64) -> Preset {
    let created_at = at(i64::try_from(number).unwrap());
    Preset {
        id: PresetId::from_uuid(SequentialIds::uuid(number)),
        workspace_id: workspace_id(of),
        slug: PresetSlug::try_new(&format!("preset-{number}")).unwrap(),
        name: format!("préset {number} ✓ 'quoted'"),
        status: PresetStatus::Active,
        status_updated_at: None,
        designated_version: 1,
        newest_version: 1,
        created_by: "key:k \"quoted\"".to_owned(),
        created_at,
        updated_at: created_at,
    }
}

fn version(number: u32) -> PresetVersion {
    let text = format!(
        r#"{{"models":["a/b","a/c"],"questions":{{"ü {number}":{{"type":"noul","instructions":"✓ \u0000?"}}}}}}"#
    );
    let config = PresetConfig::read(&Json::parse(&text).unwrap()).unwrap();
    PresetVersion { number, config, created_by: format!("user:{number}"), created_at: at(number.into()) }
}

/// Returns the preset with the next version designated.
fn next(before: &Preset, minutes: i64) -> Preset {
    let number = before.newest_version + 1;
    Preset { designated_version: number, newest_version: number, updated_at: at(minutes), ..before.clone() }
}

/// Returns true if the preset was saved, false after a conflict.
async fn save(stores: &Stores, before: Option<&Preset>, after: &Preset, added: Option<u32>) -> bool {
    match try_save(stores, before, after, added).await {
        PresetSave::Saved => true,
        PresetSave::Conflict => false,
        PresetSave::TooMany => panic!("the workspace has few presets"),
    }
}

async fn try_save(stores: &Stores, before: Option<&Preset>, after: &Preset, added: Option<u32>) -> PresetSave {
    let added = added.map(version);
    stores.presets.save(before, after, added.as_ref(), &audit()).await.unwrap()
}

async fn found(stores: &Stores, of: u64, slug: &str) -> Option<DesignatedPreset> {
    stores.presets.find(workspace_id(of), &PresetSlug::try_new(slug).unwrap()).await.unwrap()
}

async fn find_returns_saved_preset_with_designated_version(stores: &Stores) {
    assert!(!save(stores, None, &preset(1, 1), Some(1)).await, "the workspace does not exist");
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    let first = preset(1, 1);
    assert!(save(stores, None, &first, Some(1)).await);
    let expected = DesignatedPreset { preset: first.clone(), version: version(1) };
    assert_eq!(found(stores, 1, "preset-1").await, Some(expected));
    assert_eq!(found(stores, 2, "preset-1").await, None, "another workspace");
    assert_eq!(found(stores, 1, "preset-2").await, None);
    let second = next(&first, 60);
    assert!(save(stores, Some(&first), &second, Some(2)).await);
    assert_eq!(found(stores, 1, "preset-1").await.unwrap().version, version(2));
    let third = Preset {
        name: "other".to_owned(),
        status: PresetStatus::Archived,
        status_updated_at: Some(at(70)),
        designated_version: 1,
        updated_at: at(71),
        ..second.clone()
    };
    assert!(save(stores, Some(&second), &third, None).await);
    let expected = DesignatedPreset { preset: third, version: version(1) };
    assert_eq!(found(stores, 1, "preset-1").await, Some(expected), "field by field");
}

async fn save_rejects_another_state_and_taken_slug(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    let first = preset(1, 1);
    assert!(!save(stores, Some(&first), &next(&first, 60), Some(2)).await, "it does not exist");
    assert!(save(stores, None, &first, Some(1)).await);
    assert!(!save(stores, None, &Preset { slug: first.slug.clone(), ..preset(2, 1) }, Some(1)).await, "taken");
    assert!(save(stores, None, &Preset { slug: first.slug.clone(), ..preset(2, 2) }, Some(1)).await);
    let second = next(&first, 60);
    assert!(save(stores, Some(&first), &second, Some(2)).await);
    assert!(!save(stores, Some(&first), &next(&first, 61), Some(2)).await, "it was changed since");
    assert_eq!(found(stores, 1, "preset-1").await.unwrap().preset, second);
}

async fn concurrent_saves_of_one_state_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    let creations = (1..=8).map(|number| async move {
        let rival = Preset { slug: preset(1, 1).slug, ..preset(number, 1) };
        save(stores, None, &rival, Some(1)).await
    });
    assert_eq!(join_all(creations).await.into_iter().filter(|won| *won).count(), 1);
    let first = found(stores, 1, "preset-1").await.unwrap().preset;
    let changes = (1..=8).map(|minutes| {
        let after = next(&first, 60 + minutes);
        let first = &first;
        async move { save(stores, Some(first), &after, Some(2)).await }
    });
    assert_eq!(join_all(changes).await.into_iter().filter(|won| *won).count(), 1);
}

async fn concurrent_creations_never_exceed_the_limit(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    let most = Preset::MAX_IN_WORKSPACE;
    for number in 1..=most - 3 {
        assert!(save(stores, None, &preset(number, 1), Some(1)).await);
    }
    assert!(save(stores, None, &preset(2 * most, 2), Some(1)).await, "presets of others do not count");
    let creations = (0..8).map(|number| async move {
        let new = preset(most + number, 1);
        try_save(stores, None, &new, Some(1)).await
    });
    let mut effects = join_all(creations).await;
    effects.sort_by_key(|effect| *effect == PresetSave::TooMany);
    assert_eq!(effects, [[PresetSave::Saved; 3].as_slice(), &[PresetSave::TooMany; 5]].concat());
    let own = ManagementScope::of_one(workspace_id(1));
    assert_eq!(stores.presets.page(&own, 0, 1).await.unwrap().1, most);
    // A further version is no further preset.
    assert!(save(stores, Some(&preset(1, 1)), &next(&preset(1, 1), 60), Some(2)).await);
}

async fn page_is_last_changed_first(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    for (number, of) in [(1, 1), (2, 2), (3, 1)] {
        assert!(save(stores, None, &preset(number, of), Some(1)).await);
    }
    let changed = next(&preset(1, 1), 60);
    assert!(save(stores, Some(&preset(1, 1)), &changed, Some(2)).await);
    let page =
        async |within: &ManagementScope, offset, limit| stores.presets.page(within, offset, limit).await.unwrap();
    let all = ManagementScope::UNRESTRICTED;
    assert_eq!(page(&all, 0, 9).await, (vec![changed.clone(), preset(3, 1), preset(2, 2)], 3));
    assert_eq!(page(&all, 1, 1).await, (vec![preset(3, 1)], 3));
    let own = ManagementScope::of_one(workspace_id(1));
    assert_eq!(page(&own, 0, 9).await, (vec![changed, preset(3, 1)], 2));
}

async fn versions_are_oldest_first(stores: &Stores) {
    add_workspace(stores, 1).await;
    let mut before = preset(1, 1);
    assert!(save(stores, None, &before, Some(1)).await);
    for number in 2..=4 {
        let after = next(&before, number.into());
        assert!(save(stores, Some(&before), &after, Some(number)).await);
        before = after;
    }
    assert!(save(stores, None, &preset(2, 1), Some(1)).await);
    let read = async |first, limit| stores.presets.versions(before.id, first, limit).await.unwrap();
    assert_eq!(read(1, 9).await, [1, 2, 3, 4].map(version));
    assert_eq!(read(2, 2).await, [2, 3].map(version));
    assert_eq!(read(5, 9).await, []);
}

async fn saves_write_feed_and_audit_log(stores: &Stores) {
    add_workspace(stores, 1).await;
    let entries = async || stores.audit.newest(100).await.unwrap().len();
    let (first, second) = (preset(1, 1), next(&preset(1, 1), 60));
    for before in [None, Some(&first)] {
        let (position, count) = (newest_change(stores).await, entries().await);
        let after = if before.is_some() { &second } else { &first };
        assert!(save(stores, before, after, Some(after.newest_version)).await);
        assert_eq!(changed_since(stores, position).await, [ChangeSubject::Preset(first.id)]);
        assert_eq!(entries().await, count + 1);
        assert!(!save(stores, before, after, Some(after.newest_version)).await, "it has another state");
        assert_eq!(entries().await, count + 1);
    }
}

async fn deletion_of_workspace_deletes_its_presets(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    for (number, of) in [(1, 1), (2, 2)] {
        assert!(save(stores, None, &preset(number, of), Some(1)).await);
    }
    let delete = async |with_presets, files| {
        stores.workspaces.delete(&workspace(1), with_presets, files, &audit()).await.unwrap()
    };
    let contents = |presets, container_files| {
        WorkspaceDeletion::NotEmpty(WorkspaceContents { presets, container_files, ..WorkspaceContents::default() })
    };
    assert_eq!((delete(false, 0).await, delete(true, 7).await), (contents(1, 0), contents(0, 7)));
    assert!(found(stores, 1, "preset-1").await.is_some(), "nothing was changed");
    assert_eq!(delete(true, 0).await, WorkspaceDeletion::Deleted);
    assert_eq!(found(stores, 1, "preset-1").await, None);
    assert_eq!(stores.presets.versions(preset(1, 1).id, 1, 9).await.unwrap(), []);
    let page = stores.presets.page(&ManagementScope::UNRESTRICTED, 0, 9).await.unwrap();
    assert_eq!(page, (vec![preset(2, 2)], 1));
}
