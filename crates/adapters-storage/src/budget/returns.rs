//! Returns of allowances, and the ends of processes.

use std::collections::BTreeMap;

use domain::budget::{BudgetStoreError, ProcessState, RemainingAllowances, ReturnRequest};
use domain::error::StoreError;
use domain::ids::ProcessId;

use super::alerts;
use super::counters::{
    Amounts, Change, add_to_counters, all_amounts, clear_amounts, positive, read_amounts, set_amounts, sum,
};
use super::processes::{self, CallNumber};
use crate::database::Database;
use crate::errors::store_error;
use crate::journal;

/// Implements the port. Never returns more than the process has.
pub(super) async fn return_allowances(database: &Database, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
    let transaction = database.begin().await?;
    let number = processes::check_number(&transaction, request.process, request.number).await?;
    match number {
        CallNumber::Next => {}
        CallNumber::Repeated(None) => return Ok(()),
        // The number belongs to a draw.
        CallNumber::Repeated(Some(_)) => {
            return Err(BudgetStoreError::Number { expected: request.number.saturating_add(1), found: request.number });
        }
    }
    let counters = request.amounts.iter().map(|(counter, _)| *counter);
    let own = read_amounts(&transaction, Amounts::Allowances, request.process, counters).await?;
    let (mut changes, mut left) = (BTreeMap::<_, Change>::new(), own);
    for (counter, amount) in &request.amounts {
        let own = left.entry(*counter).or_default();
        let returned = positive(*amount)?.min(*own);
        *own -= returned;
        changes.entry(*counter).or_default().allotted -= i128::from(returned);
    }
    set_amounts(&transaction, Amounts::Allowances, request.process, &left).await?;
    add_to_counters(&transaction, changes).await?;
    processes::advance(&transaction, request.process, request.number, None).await?;
    if let Some(at) = request.answered {
        processes::set_seen(&transaction, request.process, at).await?;
    }
    Ok(transaction.commit().await.map_err(store_error)?)
}

/// Implements the port.
pub(super) async fn end(
    database: &Database,
    process: ProcessId,
    remaining: RemainingAllowances,
) -> Result<(), StoreError> {
    let state = match remaining {
        RemainingAllowances::Return => ProcessState::Ended,
        RemainingAllowances::Adjust => ProcessState::Lost,
    };
    let transaction = database.begin().await?;
    if !processes::end(&transaction, process, state).await? {
        return Ok(());
    }
    let allowances = all_amounts(&transaction, Amounts::Allowances, process).await?;
    if remaining == RemainingAllowances::Adjust {
        let mut adjustments =
            read_amounts(&transaction, Amounts::Adjustments, process, allowances.keys().copied()).await?;
        for (counter, amount) in &allowances {
            let adjusted = adjustments.entry(*counter).or_default();
            *adjusted = sum(*adjusted, i128::from(*amount))?;
        }
        set_amounts(&transaction, Amounts::Adjustments, process, &adjustments).await?;
    }
    let change = |amount: i64| Change {
        spent: if remaining == RemainingAllowances::Adjust { i128::from(amount) } else { 0 },
        allotted: -i128::from(amount),
    };
    let mut changes: BTreeMap<_, Change> =
        allowances.iter().map(|(counter, amount)| (*counter, change(*amount))).collect();
    if remaining == RemainingAllowances::Return {
        // Amounts of a process that was considered lost, whose whole journal was folded after all.
        for (counter, amount) in all_amounts(&transaction, Amounts::Adjustments, process).await? {
            changes.entry(counter).or_default().spent -= i128::from(amount);
        }
        clear_amounts(&transaction, Amounts::Adjustments, process).await?;
    }
    let spent = add_to_counters(&transaction, changes).await?;
    alerts::add(database, &transaction, &spent, &BTreeMap::new()).await?;
    clear_amounts(&transaction, Amounts::Allowances, process).await?;
    journal::remove_entries(&transaction, process).await?;
    transaction.commit().await.map_err(store_error)
}
