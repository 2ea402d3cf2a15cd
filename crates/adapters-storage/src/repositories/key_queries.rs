//! Queries that select keys by their names and filters.

use chrono::{DateTime, Utc};
use domain::api_key::KeyFilter;
use domain::authority::ManagementScope;
use domain::ids::{ApiKeyId, WorkspaceId};
use domain::naming::ResourceName;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, Select};

use crate::convert::{hash_column, key_column, millis};
use crate::entities::api_keys::{Column, Entity};

/// Returns the condition for the hash of the current secret, or of the previous one while it is valid.
pub(super) fn has_secret(hash: Vec<u8>, now: DateTime<Utc>) -> Condition {
    let previous =
        Condition::all().add(Column::PreviousHash.eq(hash.clone())).add(Column::PreviousExpiresAt.gt(millis(now)));
    Condition::any().add(Column::Hash.eq(hash)).add(previous)
}

/// Orders keys by their creation, newest first, and then by their ids.
pub(super) fn newest_first(query: Select<Entity>) -> Select<Entity> {
    query.order_by_desc(Column::CreatedAt).order_by_desc(Column::Id)
}

/// Selects the live keys with a name that exist within a scope.
pub(super) fn select_named(name: &ResourceName, within: &ManagementScope, now: DateTime<Utc>) -> Select<Entity> {
    let has_name = match (name.id::<ApiKeyId>(), name.hashes()) {
        (Some(id), _) => Condition::all().add(Column::Id.eq(key_column(id))),
        (None, None) => Condition::all().add(Column::Name.eq(name.as_str())),
        // A whole hash is nothing else: a key with such a name must not hide the key of the hash.
        (None, Some((first, last))) if first == last => has_secret(hash_column(&first), now),
        (None, Some((first, last))) => Condition::any()
            .add(Column::Hash.between(hash_column(&first), hash_column(&last)))
            .add(Column::Name.eq(name.as_str())),
    };
    let is_within = match within.workspaces() {
        Some(own) => within_workspaces(own),
        None if within.is_unrestricted() => Condition::all(),
        None => Condition::all().add(Column::WorkspaceId.is_not_null()),
    };
    newest_first(Entity::find().filter(Column::Deleted.eq(false)).filter(has_name).filter(is_within))
}

fn within_workspaces(own: &[WorkspaceId]) -> Condition {
    Condition::all().add(Column::WorkspaceId.is_in(own.iter().map(ToString::to_string)))
}

/// Returns the condition of a filter, for live keys.
pub(super) fn matching(filter: &KeyFilter) -> Condition {
    let is_kind = match (&filter.workspaces, filter.is_management) {
        (_, true) => Condition::all().add(Column::WorkspaceId.is_null()),
        (Some(own), false) => within_workspaces(own),
        (None, false) => Condition::all().add(Column::WorkspaceId.is_not_null()),
    };
    let unexpired = |at| Condition::any().add(Column::ExpiresAt.is_null()).add(Column::ExpiresAt.gt(millis(at)));
    is_kind
        .add(Column::Deleted.eq(false))
        .add_option(filter.name.as_deref().map(|name| Column::Name.eq(name)))
        .add_option(filter.external_user.as_deref().map(|user| Column::ExternalUser.eq(user)))
        .add_option(filter.guardrail_id.map(|id| Column::GuardrailId.eq(id.to_string())))
        .add_option(filter.only_enabled.then(|| Column::Disabled.eq(false)))
        .add_option(filter.unexpired_at.map(unexpired))
}
