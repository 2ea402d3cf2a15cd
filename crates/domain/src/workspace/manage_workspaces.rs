//! Changing workspaces.

use std::sync::Arc;

use super::changes::differences;
use super::{
    BudgetsChange, Credit, Workspace, WorkspaceChange, WorkspaceError, WorkspaceRepository, WorkspaceUpdate,
    find_visible,
};
use crate::audit::AuditDraft;
use crate::authority::Right;
use crate::budget::{LedgerReader, ResetInterval};
use crate::change::{Change, MAX_ATTEMPTS};
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::json::{Json, ObjectWriter};
use crate::money::Usd;
use crate::naming::{NameError, ResourceName};
use crate::system::Clock;
use crate::version::Version;

/// Changes workspaces. Every change needs [`Right::Unrestricted`].
pub struct ManageWorkspaces {
    workspaces: Arc<dyn WorkspaceRepository>,
    ledger: Arc<dyn LedgerReader>,
    clock: Arc<dyn Clock>,
}

impl ManageWorkspaces {
    /// Wires the ports; `ledger` is that of the process.
    pub fn new(workspaces: Arc<dyn WorkspaceRepository>, ledger: Arc<dyn LedgerReader>, clock: Arc<dyn Clock>) -> Self {
        Self { workspaces, ledger, clock }
    }

    /// Changes settings and returns the workspace. Absent members keep their value; a change of nothing writes nothing.
    /// Concurrent changes of other members are not lost.
    ///
    /// # Errors
    /// A change without a member; an invalid one; a slug of another workspace; a default guardrail of another one; an
    /// unknown workspace, or a version of it that the caller does not accept; concurrent changes; a store failure.
    pub async fn update(
        &self,
        change: &Change<'_, Workspace>,
        name: &ResourceName,
        edit: &WorkspaceChange,
    ) -> Result<Workspace, WorkspaceError> {
        change.by().check(Right::Unrestricted)?;
        if edit.is_empty() {
            return Err(WorkspaceError::NothingToChange);
        }
        let after = |before: &Workspace| {
            change.check_version(before.version())?;
            edit.of(before)
        };
        self.change(change, "workspace.update", name, after).await
    }

    /// Sets or removes the budget of a period (`None` is all time), and returns the workspace. Concurrent changes are not
    /// lost, and cannot break the order of the budgets together.
    ///
    /// # Errors
    /// A removed budget that is not set; an invalid amount; a version that the caller does not accept; an unknown
    /// workspace; concurrent changes; a store failure.
    pub async fn set_budget(
        &self,
        change: &Change<'_, Workspace>,
        name: &ResourceName,
        period: Option<ResetInterval>,
        amount: Option<Usd>,
    ) -> Result<Workspace, WorkspaceError> {
        let edit = BudgetsChange::one(period, amount.map_or(Edit::Clear, Edit::Set));
        let after = |before: &Workspace| {
            let current = before.budget_version(period);
            if amount.is_none() && current.is_none() {
                return Err(WorkspaceError::UnknownBudget);
            }
            change.check_version(current)?;
            Ok(Workspace { budgets: edit.of(&before.budgets)?, ..before.clone() })
        };
        self.change(change, "workspace.set_budgets", name, after).await
    }

    /// Changes several budgets at once, and returns the workspace. Concurrent changes are not lost.
    ///
    /// # Errors
    /// As [`Self::set_budget`]. No version is accepted: the budgets have none together.
    pub async fn change_budgets(
        &self,
        change: &Change<'_, Workspace>,
        name: &ResourceName,
        edit: BudgetsChange,
    ) -> Result<Workspace, WorkspaceError> {
        change.check_version(None::<Version>)?;
        let after = |before: &Workspace| Ok(Workspace { budgets: edit.of(&before.budgets)?, ..before.clone() });
        self.change(change, "workspace.set_budgets", name, after).await
    }

    /// Replaces a workspace with the result of `after`. It repeats the change on the newest state if it lost a race.
    async fn change(
        &self,
        change: &Change<'_, Workspace>,
        action: &'static str,
        name: &ResourceName,
        after: impl Fn(&Workspace) -> Result<Workspace, WorkspaceError>,
    ) -> Result<Workspace, WorkspaceError> {
        let by = change.by();
        by.check(Right::Unrestricted)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = find_visible(&*self.workspaces, by, name).await?;
            let after = after(&before)?;
            if after.has_settings_of(&before) {
                return Ok(before);
            }
            let after = Workspace { updated_at: Some(self.clock.now()), ..after };
            let (was, is) = differences(Some(&before), &after);
            let audit = AuditDraft::change(by.actor(), action, subject(before.id), was, Some(is));
            match self.workspaces.update(&before, &after, &change.audited(audit, &after)).await? {
                WorkspaceUpdate::Updated => return Ok(after),
                WorkspaceUpdate::Differs => {}
                WorkspaceUpdate::SlugTaken => return Err(WorkspaceError::SlugTaken(after.slug.as_str().to_owned())),
                WorkspaceUpdate::UnknownGuardrail => return Err(WorkspaceError::UnknownGuardrail),
            }
        }
        Err(WorkspaceError::Contended)
    }

    /// Adds `amount`, which may be negative, and returns the credit. A workspace without credit starts from zero and
    /// becomes limited.
    ///
    /// # Errors
    /// An amount of zero; a negative one for an unlimited workspace; a credit out of the range of [`Usd`]; an unknown
    /// workspace, or a version of the credit that the caller does not accept; a store failure.
    pub async fn add_credit(
        &self,
        change: &Change<'_, Credit>,
        name: &ResourceName,
        amount: Usd,
    ) -> Result<Credit, WorkspaceError> {
        if amount == Usd::ZERO {
            return Err(WorkspaceError::NoCreditToAdd);
        }
        self.change_credit(change, name, "workspace.credit", |before| {
            let details = ObjectWriter::new().json("before", &credit(before)).shown("add_usd", amount).finish();
            Ok((before.plus(amount)?, details))
        })
        .await
    }

    /// Clears the credit and its balance, and returns the credit: the workspace is not limited by credit, and later
    /// credit starts from zero. Budgets stay.
    ///
    /// # Errors
    /// No credit; an unknown workspace, or a version of the credit that the caller does not accept; a store failure.
    pub async fn clear_credit(
        &self,
        change: &Change<'_, Credit>,
        name: &ResourceName,
    ) -> Result<Credit, WorkspaceError> {
        self.change_credit(change, name, "workspace.clear_credit", |before| {
            if before.granted.is_none() {
                return Err(WorkspaceError::UnknownCredit);
            }
            let after = Credit { granted: None, ..*before };
            let details = ObjectWriter::new().json("before", &credit(before)).json("after", &credit(&after)).finish();
            Ok((after, details))
        })
        .await
    }

    /// Replaces the credit by that of `after`, in one transaction: requests are charged at the same time. Pending charges
    /// are stored before, so that the returned credit is that of a read.
    async fn change_credit(
        &self,
        change: &Change<'_, Credit>,
        name: &ResourceName,
        action: &'static str,
        after: impl Fn(&Credit) -> Result<(Credit, Json), WorkspaceError> + Send + Sync,
    ) -> Result<Credit, WorkspaceError> {
        let by = change.by();
        by.check(Right::Unrestricted)?;
        let id = find_visible(&*self.workspaces, by, name).await?.id;
        self.ledger.store_pending().await?;
        let edit = |before: &Credit| {
            change.check_version(before.version())?;
            let (after, details) = after(before)?;
            let audit = AuditDraft::done(by.actor(), action, subject(id), details);
            Ok((after.granted, change.audited(audit, &after)))
        };
        Ok(self.workspaces.change_credit(id, &edit).await?.ok_or(NameError::Unknown)?)
    }
}

fn subject(id: WorkspaceId) -> String {
    format!("workspace {id}")
}

fn credit(credit: &Credit) -> String {
    ObjectWriter::new().shown_or_null("credit_usd", credit.remaining()).end()
}

#[cfg(test)]
mod tests;
