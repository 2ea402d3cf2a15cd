//! The prepaid credit of a workspace.

use super::WorkspaceError;
use crate::audit::{AuditDraft, RowHasher};
use crate::money::Usd;
use crate::version::Version;

/// The prepaid credit of a workspace, and its spend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Credit {
    /// The sum of the credit since the workspace last had none; `None` is unlimited.
    pub granted: Option<Usd>,
    /// The spend of the credit; of an unlimited workspace the spend of all time.
    pub spent: Usd,
}

/// Returns the granted credit after a change of the credit, and the audit entry; an error changes nothing.
pub type CreditEdit<'a> = dyn Fn(&Credit) -> Result<(Option<Usd>, AuditDraft), WorkspaceError> + Send + Sync + 'a;

impl Credit {
    /// Returns the version of the granted credit; spend does not change it.
    pub fn version(&self) -> Version {
        RowHasher::new("credit").number(self.granted.map(Usd::pico)).finish().into()
    }

    /// Returns the credit that is not spent.
    pub fn remaining(&self) -> Option<Usd> {
        self.granted.map(|granted| Usd::from_pico(granted.pico().saturating_sub(self.spent.pico())))
    }

    /// Returns the credit after a grant of `amount`. A first credit starts now: earlier spend does not count.
    ///
    /// # Errors
    /// A negative amount without credit; an amount or a balance out of the range of [`Usd`].
    pub(super) fn plus(&self, amount: Usd) -> Result<Self, WorkspaceError> {
        if self.granted.is_none() && amount < Usd::ZERO {
            return Err(WorkspaceError::NoCreditToTake);
        }
        let spent = if self.granted.is_some() { self.spent } else { Usd::ZERO };
        let granted = self.granted.unwrap_or_default().checked_add(amount).ok_or(WorkspaceError::CreditOutOfRange)?;
        granted.pico().checked_sub(spent.pico()).ok_or(WorkspaceError::CreditOutOfRange)?;
        Ok(Self { granted: Some(granted), spent })
    }
}
