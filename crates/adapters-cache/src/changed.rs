//! The cache invalidations from one read of the change feed.

use std::collections::HashSet;

use domain::change_feed::{Change, ChangeSubject};
use domain::ids::{GuardrailId, WorkspaceId};
use domain::secret::ApiKeyHash;

/// The cache entries that a set of changes makes outdated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Every entry.
    Everything,
    /// The subjects that the changes name.
    Named {
        keys: HashSet<ApiKeyHash>,
        workspaces: HashSet<WorkspaceId>,
        guardrails: HashSet<GuardrailId>,
        catalogue: bool,
        destinations: bool,
    },
}

/// A cache that drops changed entries.
pub(crate) trait DropChanged: Send + Sync {
    /// Drops changed entries, and discards pending reads of them that began earlier.
    fn drop_changed(&self, changed: &Changed);
}

impl Changed {
    pub(crate) fn of(changes: &[Change]) -> Self {
        let (mut keys, mut workspaces, mut guardrails) = (HashSet::new(), HashSet::new(), HashSet::new());
        let (mut catalogue, mut destinations) = (false, false);
        for change in changes {
            match change.subject {
                ChangeSubject::Key(hash) => drop(keys.insert(hash)),
                ChangeSubject::Workspace(id) => drop(workspaces.insert(id)),
                ChangeSubject::Guardrail(id) => drop(guardrails.insert(id)),
                ChangeSubject::Catalogue => catalogue = true,
                ChangeSubject::Destinations => destinations = true,
                ChangeSubject::Everything => return Self::Everything,
            }
        }
        Self::Named { keys, workspaces, guardrails, catalogue, destinations }
    }

    pub(crate) fn has_catalogue(&self) -> bool {
        matches!(self, Self::Everything | Self::Named { catalogue: true, .. })
    }

    pub(crate) fn has_destinations(&self) -> bool {
        matches!(self, Self::Everything | Self::Named { destinations: true, .. })
    }
}
