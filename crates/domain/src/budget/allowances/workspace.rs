//! The allowances and holds of one workspace.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::CounterId;
use super::counter::{CounterState, pico, usd};
use super::journal_order::UnsyncedReleases;
use crate::budget::Account;
use crate::ids::DecisionId;
use crate::money::Usd;

/// The settings of allowances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowanceSettings {
    /// A counter that was not used for so long returns what is free.
    pub idle_return: Duration,
}

impl Default for AllowanceSettings {
    /// Ten seconds.
    fn default() -> Self {
        Self { idle_return: Duration::from_secs(10) }
    }
}

/// A hold was not made; nothing is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Counters lack money.
    #[error("{} counters lack allowance", .0.lacking.len())]
    Short(Shortfall),
    /// A hold of this id is open, or for an increase: none is, or it is being charged.
    #[error("the hold {0} is not in the state for this")]
    State(DecisionId),
}

/// The counters that lack money, and how much each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// Each counter once, in the order of the request.
    pub lacking: Vec<(CounterId, Usd)>,
}

/// A charge was not begun or not finished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hold {0} is not in the state for this")]
pub struct ChargeError(pub DecisionId);

/// The part of a charge that one counter bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterCharge {
    /// The counter.
    pub counter: CounterId,
    /// The cost.
    pub cost: Usd,
    /// The part of it that this process has an allowance for. The rest was billed beyond every bound and is added to
    /// what the counter has spent alone.
    pub from_allowance: Usd,
}

/// A counter that is to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The counter.
    pub counter: CounterId,
    /// The target amount.
    pub amount: Usd,
    /// The free amount.
    pub free: Usd,
}

/// The status of a counter in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterStatus {
    /// Drawn, and neither returned nor folded.
    pub amount: Usd,
    /// In open holds.
    pub held: Usd,
    /// Charged in the journal and not folded.
    pub charged: Usd,
    /// Neither held nor charged.
    pub free: Usd,
    /// The free amount that a hold may take: without the part that goes back after a change of a limit.
    pub available: Usd,
}

#[derive(Debug)]
struct HoldState {
    amounts: Vec<(CounterId, i128)>,
    /// From the beginning of its charge: what is taken of each amount.
    taken: Option<Vec<i128>>,
}

/// The allowances and holds of one workspace in this process.
#[derive(Debug, Default)]
pub struct WorkspaceAllowances {
    settings: AllowanceSettings,
    counters: HashMap<CounterId, CounterState>,
    holds: HashMap<DecisionId, HoldState>,
    releases: UnsyncedReleases,
    /// The newest change of each account's limits that was handled, by its number in the change feed.
    changes: HashMap<Account, u64>,
}

impl WorkspaceAllowances {
    /// Without any allowance.
    pub fn new(settings: AllowanceSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes a request's ceiling out of the allowances of all its counters, or out of none.
    ///
    /// # Errors
    /// [`HoldError::Short`] names every counter that lacks money; [`HoldError::State`] where the id has a hold.
    pub fn hold(&mut self, id: &DecisionId, now: Duration, amounts: &[(CounterId, Usd)]) -> Result<(), HoldError> {
        if self.holds.contains_key(id) {
            return Err(HoldError::State(id.clone()));
        }
        let amounts = sum_by_counter(amounts);
        self.take(now, &amounts)?;
        self.holds.insert(id.clone(), HoldState { amounts, taken: None });
        Ok(())
    }

    /// Adds to an open hold, in all counters or in none.
    ///
    /// # Errors
    /// As [`Self::hold`]; [`HoldError::State`] where no hold is open.
    pub fn increase(&mut self, id: &DecisionId, now: Duration, amounts: &[(CounterId, Usd)]) -> Result<(), HoldError> {
        if self.holds.get(id).is_none_or(|hold| hold.taken.is_some()) {
            return Err(HoldError::State(id.clone()));
        }
        let amounts = sum_by_counter(amounts);
        self.take(now, &amounts)?;
        if let Some(hold) = self.holds.get_mut(id) {
            for (counter, amount) in amounts {
                match hold.amounts.iter_mut().find(|(held, _)| *held == counter) {
                    Some((_, held)) => *held += amount,
                    None => hold.amounts.push((counter, amount)),
                }
            }
        }
        Ok(())
    }

    /// Ends a hold for which nothing was written to the journal.
    ///
    /// # Errors
    /// No such hold, or it is being charged.
    pub fn cancel(&mut self, id: &DecisionId) -> Result<(), ChargeError> {
        if self.holds.get(id).is_none_or(|hold| hold.taken.is_some()) {
            return Err(ChargeError(id.clone()));
        }
        if let Some(hold) = self.holds.remove(id) {
            for (counter, amount) in hold.amounts {
                self.state(counter).held -= amount;
            }
        }
        Ok(())
    }

    /// Begins a charge: says how much of each cost the allowances bear, and keeps it until [`Self::finish_charge`]. A
    /// cost above its hold takes what is free. A counter without a cost costs nothing; one outside of the hold bears
    /// its cost beyond the allowances. A release is a charge without costs.
    ///
    /// # Errors
    /// No such hold, or it is being charged already.
    pub fn begin_charge(
        &mut self,
        id: &DecisionId,
        now: Duration,
        costs: &[(CounterId, Usd)],
    ) -> Result<Vec<CounterCharge>, ChargeError> {
        let Some(hold) = self.holds.get_mut(id).filter(|hold| hold.taken.is_none()) else {
            return Err(ChargeError(id.clone()));
        };
        let mut costs = sum_by_counter(costs);
        let mut taken = Vec::with_capacity(hold.amounts.len());
        let mut charges = Vec::with_capacity(hold.amounts.len());
        for (counter, held) in &mut hold.amounts {
            let at = costs.iter().position(|(other, _)| other == counter);
            let cost = at.map_or(0, |at| costs.swap_remove(at).1);
            let state = self.counters.entry(*counter).or_default();
            let extra = (cost - *held).clamp(0, state.available());
            state.hold(extra, now);
            *held += extra;
            let borne = cost.min(*held);
            taken.push(borne);
            charges.push(CounterCharge { counter: *counter, cost: usd(cost), from_allowance: usd(borne) });
        }
        let outside = costs.into_iter().map(|(counter, cost)| CounterCharge {
            counter,
            cost: usd(cost),
            from_allowance: Usd::ZERO,
        });
        charges.extend(outside);
        hold.taken = Some(taken);
        Ok(charges)
    }

    /// Ends a charge whose entry is in the journal: what was held and not charged is free again.
    ///
    /// # Errors
    /// No charge of this id was begun.
    pub fn finish_charge(&mut self, id: &DecisionId, sequence: u64) -> Result<(), ChargeError> {
        if self.holds.get(id).is_none_or(|hold| hold.taken.is_none()) {
            return Err(ChargeError(id.clone()));
        }
        let Some(HoldState { amounts, taken: Some(taken) }) = self.holds.remove(id) else { return Ok(()) };
        for ((counter, held), taken) in amounts.into_iter().zip(taken) {
            let state = self.counters.entry(counter).or_default();
            state.held -= held;
            state.charged += taken;
            state.return_due = (state.return_due - taken).max(0);
            let freed = held - taken;
            if freed > 0 {
                state.unsynced += freed;
                self.releases.push(sequence, counter, freed);
            }
        }
        Ok(())
    }

    /// Journal entries up to a number are on the disk: what they freed may be returned.
    pub fn synced(&mut self, up_to: u64) {
        for (counter, amount) in self.releases.take_synced(up_to) {
            self.counters.entry(counter).or_default().unsynced -= amount;
        }
    }

    /// Charges are in the store, which took these amounts from the allowances.
    pub fn folded(&mut self, charges: impl IntoIterator<Item = (CounterId, Usd)>) {
        for (counter, amount) in charges {
            let state = self.counters.entry(counter).or_default();
            state.amount -= pico(amount);
            state.charged -= pico(amount);
        }
    }

    /// The store granted an amount, by limits as they were at a number of the change feed. A grant older than a change
    /// that was handled goes back.
    pub fn granted(&mut self, counter: CounterId, amount: Usd, now: Duration, feed: u64) {
        let is_stale = self.changes.get(&counter.account).is_some_and(|changed| feed < *changed);
        let state = self.state(counter);
        state.amount += pico(amount);
        state.last_used = now;
        if is_stale {
            state.return_due += pico(amount);
        }
    }

    /// A limit of an account was lowered or removed by a change of the feed: what is free now goes back.
    pub fn limits_changed(&mut self, account: Account, feed: u64) {
        let changed = self.changes.entry(account).or_default();
        *changed = feed.max(*changed);
        for (_, state) in self.counters.iter_mut().filter(|(counter, _)| counter.account == account) {
            state.return_due = state.amount - state.charged;
        }
    }

    /// The numbers of the feed begin anew: no grant is older than a change.
    pub fn forget_changes(&mut self) {
        self.changes.clear();
    }

    /// Another process lacks what is free here: until a time it goes back as soon as it is free.
    pub fn recalled(&mut self, counter: CounterId, until: Duration) {
        // Without an allowance, too: a grant may be on its way.
        let state = self.state(counter);
        state.recalled_until = state.recalled_until.max(Some(until));
    }

    /// Removes and returns the amounts for the store: recalled, idle, of a period that is over or of a limit that changed. It
    /// has left the allowances when this returns, so that nothing can spend it while the return is on its way.
    pub fn take_returnable(&mut self, now: Duration, at: DateTime<Utc>) -> Vec<(CounterId, Usd)> {
        let idle = self.settings.idle_return;
        let mut returned = Vec::new();
        for (counter, state) in &mut self.counters {
            let is_idle = now.saturating_sub(state.last_used) >= idle;
            let all = is_idle || state.is_recalled(now) || counter.period.is_over(at);
            let due = if all { state.returnable() } else { state.returnable().min(state.free_to_return()) };
            let amount = usd(due);
            if amount > Usd::ZERO {
                state.amount -= pico(amount);
                state.return_due = (state.return_due - pico(amount)).max(0);
                returned.push((*counter, amount));
            }
        }
        self.counters.retain(|_, state| !state.is_empty() || state.is_recalled(now));
        returned.sort_unstable();
        returned
    }

    /// The counters to be filled ahead of need: less than half of the wish is free, and nobody recalls it.
    pub fn wishes(&self, now: Duration, at: DateTime<Utc>) -> Vec<Wish> {
        let wishes = self.counters.iter().filter_map(|(counter, state)| {
            let wish = state.wish(now);
            let is_wanted = now.saturating_sub(state.last_used) < self.settings.idle_return
                && state.return_due == 0
                && !state.is_recalled(now)
                && !counter.period.is_over(at)
                && state.free() * 2 < wish;
            is_wanted.then(|| Wish { counter: *counter, amount: usd(wish), free: usd(state.free()) })
        });
        let mut wishes: Vec<_> = wishes.collect();
        wishes.sort_unstable_by_key(|wish| wish.counter);
        wishes
    }

    /// Returns the status of a counter.
    pub fn status(&self, counter: CounterId) -> CounterStatus {
        self.counters.get(&counter).map_or_else(CounterStatus::default, |state| CounterStatus {
            amount: usd(state.amount),
            held: usd(state.held),
            charged: usd(state.charged),
            free: usd(state.free()),
            available: usd(state.available()),
        })
    }

    /// True where amounts go back after a change of a limit.
    pub fn has_returns_due(&self) -> bool {
        self.counters.values().any(|state| state.return_due > 0)
    }

    /// All counters with an allowance.
    pub fn counters(&self) -> impl Iterator<Item = (CounterId, CounterStatus)> {
        self.counters.keys().map(|counter| (*counter, self.status(*counter)))
    }

    /// The number of open holds.
    pub fn open_holds(&self) -> usize {
        self.holds.len()
    }

    fn take(&mut self, now: Duration, amounts: &[(CounterId, i128)]) -> Result<(), HoldError> {
        let lacking: Vec<_> = amounts
            .iter()
            .filter_map(|(counter, amount)| {
                let free = self.counters.get(counter).map_or(0, CounterState::available);
                (free < *amount).then(|| (*counter, usd(amount - free)))
            })
            .collect();
        if !lacking.is_empty() {
            return Err(HoldError::Short(Shortfall { lacking }));
        }
        for (counter, amount) in amounts {
            self.state(*counter).hold(*amount, now);
        }
        Ok(())
    }

    fn state(&mut self, counter: CounterId) -> &mut CounterState {
        self.counters.entry(counter).or_default()
    }
}

/// Each counter once.
fn sum_by_counter(amounts: &[(CounterId, Usd)]) -> Vec<(CounterId, i128)> {
    let mut sums: Vec<(CounterId, i128)> = Vec::with_capacity(amounts.len());
    for (counter, amount) in amounts {
        match sums.iter_mut().find(|(other, _)| other == counter) {
            Some((_, sum)) => *sum += pico(*amount),
            None => sums.push((*counter, pico(*amount))),
        }
    }
    sums
}
