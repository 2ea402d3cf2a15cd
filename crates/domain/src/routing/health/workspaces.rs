//! The requests of each workspace at one endpoint, in bounded memory.

use std::time::Duration;

use super::window::{OutcomeWindow, bucket_number};
use super::{AttemptError, HealthPolicy};
use crate::ids::{IdMap, WorkspaceId};

/// The counts of one workspace, or of all workspaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) window: OutcomeWindow,
    pub(super) last_admitted: Option<Duration>,
    pub(super) last_failure_at: Option<Duration>,
    pub(super) last_error: Option<AttemptError>,
}

/// One workspace at one endpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkspaceScope {
    pub(super) scope: Scope,
    pub(super) backoff_until: Duration,
    last_seen: Duration,
}

/// Content failures of all workspaces, by weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ContentFailures {
    total: u64,
    largest: u64,
}

impl ContentFailures {
    /// Returns the failures that count for all workspaces. The workspace with the most failures counts no more than all
    /// others together, so that failures of a single workspace do not count.
    pub(super) fn shared(self) -> u64 {
        let others = self.total - self.largest;
        others.saturating_add(self.largest.min(others))
    }
}

/// The workspaces that were seen at one endpoint.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    entries: IdMap<WorkspaceId, WorkspaceScope>,
    /// The content failures as of a bucket; `None` after a change.
    content: Option<(u64, ContentFailures)>,
}

impl Workspaces {
    /// Returns the counts of a known workspace.
    pub(super) fn get(&mut self, workspace: WorkspaceId) -> Option<&mut WorkspaceScope> {
        self.entries.get_mut(&workspace)
    }

    /// Returns the counts of a workspace. Adds an unknown one, and drops the least recently seen if there are too many.
    pub(super) fn see(&mut self, policy: &HealthPolicy, workspace: WorkspaceId, now: Duration) -> &mut WorkspaceScope {
        if !self.entries.contains_key(&workspace) && self.entries.len() >= policy.max_workspaces.max(1) {
            let oldest = self.entries.iter().min_by_key(|(id, entry)| (entry.last_seen, **id)).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.entries.remove(&oldest);
                self.content = None;
            }
        }
        let entry = self.entries.entry(workspace).or_default();
        entry.last_seen = entry.last_seen.max(now);
        entry
    }

    /// Invalidates the cached content failures before a workspace reports one.
    pub(super) fn content_changes(&mut self) {
        self.content = None;
    }

    /// Returns the content failures of all workspaces. Computed after a change or a new bucket, cached otherwise.
    pub(super) fn content(&mut self, policy: &HealthPolicy, now: Duration) -> ContentFailures {
        let bucket = bucket_number(policy.throttle_window, now);
        if let Some((cached_bucket, content)) = self.content
            && cached_bucket >= bucket
        {
            return content;
        }
        let mut content = ContentFailures::default();
        for entry in self.entries.values_mut() {
            let own = u64::from(entry.scope.window.total(policy.throttle_window, now).content);
            content.total = content.total.saturating_add(own);
            content.largest = content.largest.max(own);
        }
        self.content = Some((bucket, content));
        content
    }

    /// Iterates over every workspace.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorkspaceScope> {
        self.entries.values_mut()
    }
}
