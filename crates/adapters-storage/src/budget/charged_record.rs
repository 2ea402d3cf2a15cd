//! The columns of a record with its cost and payer.

use chrono::{DateTime, Utc};
use domain::budget::Payer;
use domain::error::StoreError;
use sea_orm::QueryResult;

use super::statements::column;
use crate::convert::{key_id, moment};
use crate::errors::corrupt;
use crate::usage::ids;

/// The columns for [`ChargedRecord::read`].
pub(super) const CHARGE_COLUMNS: &str = "id, workspace_id, api_key, guardrails, cost_pico, charged_at";

/// The cost of a record, its payer and the time of the charge.
pub(super) struct ChargedRecord {
    /// The raw column.
    pub(super) id: Vec<u8>,
    pub(super) payer: Payer,
    pub(super) at: DateTime<Utc>,
    pub(super) pico: i64,
}

impl ChargedRecord {
    /// Reads a row that begins with the columns of [`CHARGE_COLUMNS`].
    pub(super) fn read(row: &QueryResult) -> Result<Self, StoreError> {
        let id: Vec<u8> = column(row, 0)?;
        let payer = PayerColumns::read(row, 1)?.decode(&id)?;
        let at = moment(column(row, 5)?, "usage_records.charged_at", ids::display_id(&id))?;
        Ok(Self { payer, at, pico: column(row, 4)?, id })
    }

    /// Returns the id of an unreadable row, for reports.
    pub(super) fn id_of(row: &QueryResult) -> String {
        match column::<Vec<u8>>(row, 0) {
            Ok(id) => ids::decision_id(&id).map_or_else(|_| ids::display_id(&id), |id| id.to_string()),
            Err(_) => "a record whose id cannot be read".to_owned(),
        }
    }
}

/// The columns that identify the payer of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PayerColumns {
    workspace_id: Vec<u8>,
    api_key: Vec<u8>,
    guardrails: Option<Vec<u8>>,
}

impl PayerColumns {
    /// Reads `workspace_id, api_key, guardrails` from the given column on.
    pub(super) fn read(row: &QueryResult, first: usize) -> Result<Self, StoreError> {
        Ok(Self {
            workspace_id: column(row, first)?,
            api_key: column(row, first + 1)?,
            guardrails: column(row, first + 2)?,
        })
    }

    /// Decodes the payer; `id` is the column of the record's id, for errors.
    pub(super) fn decode(&self, id: &[u8]) -> Result<Payer, StoreError> {
        let unreadable = |column| corrupt(column, ids::display_id(id));
        let workspace_id = ids::workspace_id(&self.workspace_id);
        let guardrails = ids::guardrails(self.guardrails.as_deref());
        Ok(Payer {
            workspace_id: workspace_id.ok_or_else(|| unreadable("usage_records.workspace_id"))?,
            api_key: key_id(&self.api_key, "usage_records.api_key", ids::display_id(id))?,
            guardrails: guardrails.ok_or_else(|| unreadable("usage_records.guardrails"))?,
        })
    }
}
