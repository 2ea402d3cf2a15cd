//! Folding of journalled charges into records, returns of allowances, and the ends of processes.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use domain::audit::AuditDraft;
use domain::budget::allowances::CounterId;
use domain::budget::{
    Account, BudgetStoreError, FoldEntry, FoldRequest, ProcessState, RemainingAllowances, ResetInterval, ReturnRequest,
};
use domain::error::StoreError;
use domain::ids::{ProcessId, WorkspaceId};
use sea_orm::{ConnectionTrait, Value};

use super::alerts;
use super::counters::{
    Amounts, Change, add_to_counters, all_amounts, clear_amounts, counters_at, positive, read_amounts, set_amounts, sum,
};
use super::processes::{self, CallNumber};
use super::records::{Cost, NewRecords};
use crate::audit::{RowChanges, append};
use crate::convert::{millis, parse};
use crate::database::Database;
use crate::journal;
use crate::statements::{column, list, pieces, read, run};

/// Implements the port. Counters come late and in key order; only the alerts that follow from them come after.
pub(super) async fn fold(database: &Database, request: &FoldRequest) -> Result<(), BudgetStoreError> {
    let transaction = database.begin().await?;
    let row = processes::find(&transaction, request.process).await?.ok_or(BudgetStoreError::NotLive(None))?;
    let status = processes::status(&row)?;
    if request.up_to == status.folded_sequence {
        return Ok(());
    }
    if request.after != status.folded_sequence || request.up_to < request.after {
        return Err(BudgetStoreError::Number { expected: status.folded_sequence, found: request.after });
    }
    let fresh = NewRecords::choose(&transaction, &request.entries).await?;
    fresh.insert(&transaction, database.now()).await?;
    let late = raise_credit_bases(&transaction, &fresh.costs).await?;
    let mut changes = BTreeMap::new();
    add_costs(&mut changes, &fresh.costs);
    take_amounts(&transaction, status.state, request, &mut changes).await?;
    processes::set_folded(&transaction, request.process, request.up_to).await?;
    let spent = add_to_counters(&transaction, changes).await?;
    alerts::add(database, &transaction, &spent, &late).await?;
    Ok(transaction.commit().await?)
}

/// Adds costs to every counter of their accounts.
fn add_costs(changes: &mut BTreeMap<CounterId, Change>, costs: &[Cost]) {
    // Most costs belong to a few accounts and one day.
    let mut days: HashMap<(Account, DateTime<Utc>), i128> = HashMap::new();
    for Cost { payer, at, pico } in costs {
        let day = ResetInterval::Daily.start_of(*at);
        for account in payer.accounts() {
            *days.entry((account, day)).or_default() += pico;
        }
    }
    for ((account, day), pico) in days {
        for counter in counters_at(account, day) {
            changes.entry(counter).or_default().spent += pico;
        }
    }
}

/// Takes the part covered by allowances from those of a running process, else from its adjustments, as far as
/// available.
async fn take_amounts(
    transaction: &impl ConnectionTrait,
    state: ProcessState,
    request: &FoldRequest,
    changes: &mut BTreeMap<CounterId, Change>,
) -> Result<(), StoreError> {
    let (amounts, process) = match state {
        ProcessState::Live | ProcessState::Adopted => (Amounts::Allowances, request.process),
        ProcessState::Ended | ProcessState::Lost => (Amounts::Adjustments, request.process),
    };
    let borne = sum_borne(&request.entries)?;
    let mut left = read_amounts(transaction, amounts, process, borne.keys().copied()).await?;
    for (counter, own) in &mut left {
        let taken = borne.get(counter).copied().unwrap_or_default().min(i128::from(*own));
        *own = sum(*own, -taken)?;
        let change = changes.entry(*counter).or_default();
        match amounts {
            Amounts::Allowances => change.allotted -= taken,
            Amounts::Adjustments => change.spent -= taken,
        }
    }
    set_amounts(transaction, amounts, process, &left).await
}

fn sum_borne(entries: &[FoldEntry]) -> Result<BTreeMap<CounterId, i128>, StoreError> {
    let mut borne = BTreeMap::new();
    for (counter, amount) in entries.iter().flat_map(|entry| &entry.allowances) {
        *borne.entry(*counter).or_default() += i128::from(positive(*amount)?);
    }
    Ok(borne)
}

/// Raises the base of each credit by the costs that were charged before it began. Returns these costs by workspace.
async fn raise_credit_bases(
    transaction: &impl ConnectionTrait,
    costs: &[Cost],
) -> Result<BTreeMap<WorkspaceId, i128>, StoreError> {
    let mut raised = BTreeMap::new();
    let mut ids: Vec<WorkspaceId> = costs.iter().map(|cost| cost.payer.workspace_id).collect();
    ids.sort_unstable();
    ids.dedup();
    for piece in pieces(&ids) {
        let text = format!(
            "SELECT id, credit_began_at, credit_late_pico FROM workspaces \
             WHERE credit_pico IS NOT NULL AND credit_began_at IS NOT NULL AND id IN ({})",
            list(piece.len())
        );
        let values = piece.iter().map(|id| Value::from(id.to_string())).collect();
        for row in read(transaction, &text, values).await? {
            let (id, began_at, late): (String, i64, i64) = (column(&row, 0)?, column(&row, 1)?, column(&row, 2)?);
            let is_late = |cost: &&Cost| cost.payer.workspace_id.to_string() == id && millis(cost.at) < began_at;
            let added: i128 = costs.iter().filter(is_late).map(|cost| cost.pico).sum();
            if added != 0 {
                let update = "UPDATE workspaces SET credit_late_pico = ? WHERE id = ?";
                raised.insert(parse(&id, "workspaces.id", &id)?, added);
                run(transaction, update, vec![sum(late, added)?.into(), id.into()]).await?;
            }
        }
    }
    Ok(raised)
}

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
    Ok(transaction.commit().await?)
}

/// Implements the port.
pub(super) async fn end(
    database: &Database,
    process: ProcessId,
    remaining: RemainingAllowances,
    audit: Option<&AuditDraft>,
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
    if let Some(audit) = audit {
        append(&transaction, audit, database.now(), &RowChanges::default()).await?;
    }
    transaction.commit().await
}
