//! The state that requests and the keeper share.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::asks::{Ask, AskQueue, RecentRejections};
use super::calls::{OpenCalls, lock};
use super::omission::OmittedTraces;
use super::sync::AtomicBool;
use super::workspaces::{LedgerSettings, Workspaces};
use crate::budget::allowances::{CounterId, HoldError};
use crate::budget::{LimitExceeded, Payer};
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;

/// The state that requests and the keeper share.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) workspaces: Workspaces,
    pub(super) calls: OpenCalls,
    pub(super) asks: AskQueue,
    pub(super) omitted_traces: OmittedTraces,
    rejections: RecentRejections,
    /// True from a failed call to the store until the next successful one.
    is_store_away: AtomicBool,
    /// True from a read of limits that timed out until the next successful round with the store. Meanwhile requests use
    /// the last known limits.
    are_limits_delayed: AtomicBool,
    /// True once the store does not accept the process under its id.
    is_superseded: AtomicBool,
}

impl SharedState {
    pub(super) fn new(settings: LedgerSettings) -> Self {
        Self {
            workspaces: Workspaces::new(settings),
            calls: OpenCalls::new(),
            asks: AskQueue::default(),
            omitted_traces: OmittedTraces::default(),
            rejections: RecentRejections::default(),
            is_store_away: AtomicBool::new(false),
            are_limits_delayed: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
        }
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    /// Records that the store does not accept the process any more.
    pub(super) fn set_superseded(&self) {
        self.is_superseded.store(true, Ordering::Release);
    }

    pub(super) fn is_store_away(&self) -> bool {
        self.is_store_away.load(Ordering::Relaxed)
    }

    pub(super) fn set_store_away(&self, is_away: bool) {
        self.is_store_away.store(is_away, Ordering::Relaxed);
    }

    pub(super) fn are_limits_delayed(&self) -> bool {
        self.are_limits_delayed.load(Ordering::Relaxed)
    }

    pub(super) fn set_limits_delayed(&self, are_delayed: bool) {
        self.are_limits_delayed.store(are_delayed, Ordering::Relaxed);
    }

    /// Holds the amount of a new request, or increases an open hold, from the allowances.
    pub(super) fn take(
        &self,
        workspace: WorkspaceId,
        id: &DecisionId,
        now: Duration,
        amounts: &[(CounterId, Usd)],
        is_increase: bool,
    ) -> Result<(), HoldError> {
        let money = self.workspaces.get(workspace);
        let mut money = lock(&money);
        if is_increase { money.allowances.increase(id, now, amounts) } else { money.allowances.hold(id, now, amounts) }
    }

    /// Holds the amount of a waiting request.
    pub(super) fn take_for(&self, ask: &Ask, now: Duration) -> Result<(), HoldError> {
        self.take(ask.payer.workspace_id, &ask.id, now, &ask.amounts(), ask.is_increase)
    }

    /// Returns a rejection that is known without the store.
    pub(super) fn known_rejection(
        &self,
        payer: &Payer,
        wanted: Usd,
        now: (Duration, DateTime<Utc>),
    ) -> Option<LimitExceeded> {
        self.rejections.find(payer, wanted, self.workspaces.feed(), now)
    }

    /// Keeps an exact rejection for the next requests.
    pub(super) fn keep_rejection(&self, payer: &Payer, by: LimitExceeded, now: Duration) {
        self.rejections.keep(payer, by, self.workspaces.feed(), now);
    }

    /// Ends a hold that is not in the journal.
    pub(super) fn cancel(&self, workspace: WorkspaceId, id: &DecisionId) {
        lock(&self.workspaces.get(workspace)).allowances.cancel(id).ok();
    }
}
