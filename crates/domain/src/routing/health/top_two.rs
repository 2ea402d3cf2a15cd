//! The two latest times that different workspaces reached.

use std::time::Duration;

use crate::ids::WorkspaceId;

/// The two latest times of different workspaces. At least two workspaces have reached the second one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TopTwo {
    first: Option<(WorkspaceId, Duration)>,
    second: Option<(WorkspaceId, Duration)>,
}

impl TopTwo {
    /// Records a time of a workspace. Only its latest time is kept.
    pub(super) fn note(&mut self, workspace: WorkspaceId, at: Duration) {
        match self.first {
            Some((first, latest)) if first == workspace => self.first = Some((first, latest.max(at))),
            Some((_, latest)) if at > latest => {
                self.second = self.first;
                self.first = Some((workspace, at));
            }
            Some(_) => {
                if self.second.is_none_or(|(_, latest)| at > latest) {
                    self.second = Some((workspace, at));
                }
            }
            None => self.first = Some((workspace, at)),
        }
    }

    /// Returns the time that at least two workspaces have reached.
    pub(super) fn second(&self) -> Option<Duration> {
        self.second.map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn second_returns_second_latest_time(notes in proptest::collection::vec((0..5_u128, 0..40_u64), 0..60)) {
            let (mut two, mut all) = (TopTwo::default(), HashMap::new());
            for (workspace, at) in notes {
                let workspace = WorkspaceId::from_uuid(uuid::Uuid::from_u128(workspace));
                let at = Duration::from_secs(at);
                two.note(workspace, at);
                let latest = all.entry(workspace).or_insert(at);
                *latest = at.max(*latest);
                let mut times: Vec<Duration> = all.values().copied().collect();
                times.sort_unstable();
                prop_assert_eq!(two.second(), times.iter().rev().nth(1).copied());
            }
        }
    }
}
