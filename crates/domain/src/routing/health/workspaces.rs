//! The requests of each workspace at one endpoint, in bounded memory.

use std::collections::HashMap;
use std::time::Duration;

use super::window::{OutcomeWindow, bucket_number};
use super::{AttemptError, HealthPolicy};
use crate::ids::WorkspaceId;

/// What is counted for one workspace, or for all of them.
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
    /// The failures that count for all workspaces: those of the workspace with the most count up to the sum of those of
    /// the others. So the failures of one workspace alone do not count, and one workspace among several cannot outweigh
    /// them.
    pub(super) fn shared(self) -> u64 {
        let others = self.total - self.largest;
        others.saturating_add(self.largest.min(others))
    }
}

/// The workspaces that were seen at one endpoint.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    entries: HashMap<WorkspaceId, WorkspaceScope>,
    /// The content failures as of a bucket; `None` after a change.
    content: Option<(u64, ContentFailures)>,
}

impl Workspaces {
    /// The counts of a workspace that was seen before.
    pub(super) fn get(&mut self, workspace: WorkspaceId) -> Option<&mut WorkspaceScope> {
        self.entries.get_mut(&workspace)
    }

    /// The counts of a workspace, which is added if need be; the least recently seen is dropped then.
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

    /// Notes that a workspace is about to report a content failure.
    pub(super) fn content_changes(&mut self) {
        self.content = None;
    }

    /// The content failures of all workspaces. Looks at each of them after a change or a new bucket, else remembers.
    pub(super) fn content(&mut self, policy: &HealthPolicy, now: Duration) -> ContentFailures {
        let bucket = bucket_number(policy.throttle_window, now);
        if let Some((of, content)) = self.content
            && of >= bucket
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

    /// Every workspace.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorkspaceScope> {
        self.entries.values_mut()
    }
}
