//! The allowances and holds of one workspace.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::CounterId;
use super::counter::{CounterState, UnsyncedReleases, pico, usd};
use crate::budget::Account;
use crate::ids::{DecisionId, IdMap};
use crate::money::Usd;

/// The time between two searches for idle counters and past periods. A search visits every counter under the lock of
/// the workspace, so requests of the workspace wait for it.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// The settings of allowances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowanceSettings {
    /// The idle time after which a counter returns its free amount.
    pub idle_return: Duration,
}

impl Default for AllowanceSettings {
    /// Returns an idle time of one minute: a key that is used less often draws for each request. A process that needs
    /// the amount earlier recalls it.
    fn default() -> Self {
        Self { idle_return: Duration::from_mins(1) }
    }
}

/// An error of a hold; nothing is held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Counters lack allowance.
    #[error("{} counters lack allowance", .0.lacking.len())]
    Short(Shortfall),
    /// The id has a hold; or for an increase, it has none or is being charged.
    #[error("the hold {0} is not in the state for this")]
    State(DecisionId),
}

/// The missing amounts by counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// Each counter once, in the order of the request.
    pub lacking: Vec<(CounterId, Usd)>,
}

/// An error of beginning or finishing a charge.
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
    /// The part of the cost that the allowance bears. The rest, its excess, only raises the spent amount of the counter.
    pub from_allowance: Usd,
}

/// A counter to fill ahead.
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
    /// The amount that is neither held nor charged.
    pub free: Usd,
    /// The free amount that a hold may take, without amounts that are due for return.
    pub available: Usd,
}

/// The amounts of a hold in the counters of its payer.
#[derive(Debug)]
struct HeldAmounts {
    amounts: Vec<(CounterId, i128)>,
    /// The parts of the charge, in the order of the amounts; `None` before it begins.
    taken: Option<Vec<ChargePart>>,
}

/// The part of a charge that one counter bears.
#[derive(Debug, Clone, Copy)]
struct ChargePart {
    from_allowance: i128,
    /// The rest of the cost.
    excess: i128,
}

/// The allowances and holds of one workspace in this process.
#[derive(Debug, Default)]
pub struct WorkspaceAllowances {
    settings: AllowanceSettings,
    counters: IdMap<CounterId, CounterState>,
    /// Every counter with an amount due for return, so that no request waits for a search through all counters.
    returns_due: HashSet<CounterId>,
    /// Every recalled counter, and some whose recall is over.
    recalled: HashSet<CounterId>,
    /// The counters with a hold since the last call of [`Self::take_wishes`].
    used: Vec<CounterId>,
    /// The monotonic time of the next search for idle counters and past periods.
    next_search: Duration,
    holds: IdMap<DecisionId, HeldAmounts>,
    releases: UnsyncedReleases,
    /// Counters with an excess, by the number of its last journal entry, until the store has it.
    excesses: HashMap<CounterId, u64>,
    /// The newest handled change of each account's limits, by its number in the change feed.
    changes: HashMap<Account, u64>,
}

impl WorkspaceAllowances {
    /// Creates a workspace without allowances.
    pub fn new(settings: AllowanceSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Holds the upper bound of a request in all its counters, or in none.
    ///
    /// # Errors
    /// [`HoldError::Short`] names every counter that lacks allowance; [`HoldError::State`] if the id has a hold.
    pub fn hold(&mut self, id: &DecisionId, now: Duration, amounts: &[(CounterId, Usd)]) -> Result<(), HoldError> {
        if self.holds.contains_key(id) {
            return Err(HoldError::State(id.clone()));
        }
        let amounts = sum_by_counter(amounts);
        self.take(now, &amounts)?;
        self.holds.insert(id.clone(), HeldAmounts { amounts, taken: None });
        Ok(())
    }

    /// Increases an open hold in all counters, or in none.
    ///
    /// # Errors
    /// As [`Self::hold`]; [`HoldError::State`] if no hold is open.
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

    /// Ends a hold that is not in the journal.
    ///
    /// # Errors
    /// The hold does not exist, or is being charged.
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

    /// Begins a charge: returns the part of each cost that the allowances bear, and keeps it until
    /// [`Self::finish_charge`]. A cost above its hold takes free amounts. The cost of a counter outside of the hold is
    /// an excess. A release is a charge without costs.
    ///
    /// # Errors
    /// The hold does not exist, or is being charged already.
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
            let from_allowance = cost.min(*held);
            taken.push(ChargePart { from_allowance, excess: cost - from_allowance });
            charges.push(CounterCharge { counter: *counter, cost: usd(cost), from_allowance: usd(from_allowance) });
        }
        for (counter, cost) in costs {
            hold.amounts.push((counter, 0));
            taken.push(ChargePart { from_allowance: 0, excess: cost });
            charges.push(CounterCharge { counter, cost: usd(cost), from_allowance: Usd::ZERO });
        }
        hold.taken = Some(taken);
        Ok(charges)
    }

    /// Ends a charge whose entry is in the journal, and frees the rest of its hold. An excess counts like a lowered
    /// limit: amounts that were drawn before are returned when they are free, and so are grants that the store decides
    /// before it has the excess.
    ///
    /// # Errors
    /// The charge was not begun.
    pub fn finish_charge(&mut self, id: &DecisionId, sequence: u64) -> Result<(), ChargeError> {
        if self.holds.get(id).is_none_or(|hold| hold.taken.is_none()) {
            return Err(ChargeError(id.clone()));
        }
        let Some(HeldAmounts { amounts, taken: Some(taken) }) = self.holds.remove(id) else { return Ok(()) };
        for ((counter, held), ChargePart { from_allowance, excess }) in amounts.into_iter().zip(taken) {
            let state = self.counters.entry(counter).or_default();
            state.held -= held;
            state.charged += from_allowance;
            if state.return_due > 0 {
                state.return_due = (state.return_due - from_allowance).max(0);
                if state.return_due == 0 {
                    self.returns_due.remove(&counter);
                }
            }
            if excess > 0 {
                let last = self.excesses.entry(counter).or_default();
                *last = sequence.max(*last);
                if state.set_return_due() {
                    self.returns_due.insert(counter);
                }
            }
            let freed = held - from_allowance;
            if freed > 0 {
                state.unsynced += freed;
                self.releases.push(sequence, counter, freed);
            }
        }
        Ok(())
    }

    /// Records that journal entries up to a number are synced: the amounts that they freed may be returned.
    pub fn synced(&mut self, up_to: u64) {
        for (counter, amount) in self.releases.take_synced(up_to) {
            self.counters.entry(counter).or_default().unsynced -= amount;
        }
    }

    /// Removes the amounts of charges that the store has folded.
    pub fn folded(&mut self, charges: impl IntoIterator<Item = (CounterId, Usd)>) {
        for (counter, amount) in charges {
            let state = self.counters.entry(counter).or_default();
            state.amount -= pico(amount);
            state.charged -= pico(amount);
        }
    }

    /// Forgets excesses that the store has: those of journal entries up to a number.
    pub fn excesses_folded(&mut self, up_to: u64) {
        self.excesses.retain(|_, sequence| *sequence > up_to);
    }

    /// Returns the number of the last journal entry with an excess of any of the counters. The store must have it
    /// before it grants more.
    pub fn last_excess(&self, counters: &[CounterId]) -> Option<u64> {
        counters.iter().filter_map(|counter| self.excesses.get(counter)).max().copied()
    }

    /// Adds a grant that the store decided by the limits at a number of the change feed, when it had the journal
    /// entries up to `folded`. A grant older than a handled change or than an excess is returned.
    pub fn granted(&mut self, counter: CounterId, amount: Usd, now: Duration, feed: u64, folded: u64) {
        let is_stale = self.changes.get(&counter.account).is_some_and(|changed| feed < *changed)
            || self.excesses.get(&counter).is_some_and(|sequence| folded < *sequence);
        let state = self.state(counter);
        state.amount += pico(amount);
        state.last_used = now;
        if is_stale && amount > Usd::ZERO {
            state.return_due += pico(amount);
            self.returns_due.insert(counter);
        }
    }

    /// Records that a change of the feed lowered or removed a limit of an account: free amounts are returned.
    pub fn limits_changed(&mut self, account: Account, feed: u64) {
        let changed = self.changes.entry(account).or_default();
        *changed = feed.max(*changed);
        for (counter, state) in self.counters.iter_mut().filter(|(counter, _)| counter.account == account) {
            if state.set_return_due() {
                self.returns_due.insert(*counter);
            } else {
                self.returns_due.remove(counter);
            }
        }
    }

    /// Forgets all changes, because the numbers of the feed restarted.
    pub fn forget_changes(&mut self) {
        self.changes.clear();
    }

    /// Records a recall by another process: until a time, free amounts are returned at once.
    pub fn recalled(&mut self, counter: CounterId, until: Duration) {
        // Also without an allowance: a grant may be on its way.
        let state = self.state(counter);
        state.recalled_until = state.recalled_until.max(Some(until));
        self.recalled.insert(counter);
    }

    /// Removes and returns the amounts to return to the store: recalled, idle, of a past period or of a changed limit.
    /// They leave the allowances first, so that no request can spend them while the return is on its way.
    pub fn take_returnable(&mut self, now: Duration, at: DateTime<Utc>) -> Vec<(CounterId, Usd)> {
        let idle = self.settings.idle_return;
        let mut returned = Vec::new();
        let mut take = |counter: &CounterId, state: &mut CounterState| {
            let is_idle = now.saturating_sub(state.last_used) >= idle;
            let all = is_idle || state.is_recalled(now) || counter.period.is_over(at);
            let due = if all { state.returnable() } else { state.returnable().min(state.free_to_return()) };
            let amount = usd(due);
            if amount > Usd::ZERO {
                state.amount -= pico(amount);
                state.return_due = (state.return_due - pico(amount)).max(0);
                returned.push((*counter, amount));
            }
        };
        if now >= self.next_search {
            self.next_search = now.saturating_add(SEARCH_EVERY);
            self.counters.iter_mut().for_each(|(counter, state)| take(counter, state));
            self.counters.retain(|_, state| !state.is_empty() || state.is_recalled(now));
        } else {
            for counter in self.returns_due.union(&self.recalled) {
                if let Some(state) = self.counters.get_mut(counter) {
                    take(counter, state);
                }
            }
        }
        let counters = &self.counters;
        self.returns_due.retain(|counter| counters.get(counter).is_some_and(|state| state.return_due > 0));
        self.recalled.retain(|counter| counters.get(counter).is_some_and(|state| state.is_recalled(now)));
        returned.sort_unstable();
        returned
    }

    /// Returns the counters to fill ahead, among those with a hold since the last call: less than half of their target
    /// is free.
    pub fn take_wishes(&mut self, now: Duration, at: DateTime<Utc>) -> Vec<Wish> {
        let used = std::mem::take(&mut self.used);
        let wishes = used.into_iter().filter_map(|counter| {
            let state = self.counters.get_mut(&counter)?;
            state.is_listed_as_used = false;
            let state = self.to_fill(counter, now, at)?;
            let (wish, free) = (state.wish(now), state.free());
            let is_idle = now.saturating_sub(state.last_used) >= self.settings.idle_return;
            (!is_idle && free * 2 < wish).then(|| Wish { counter, amount: usd(wish), free: usd(free) })
        });
        let mut wishes: Vec<_> = wishes.collect();
        wishes.sort_unstable_by_key(|wish| wish.counter);
        wishes
    }

    /// Returns the amount to draw beside what a request lacks: the holds of the last second, nothing for a cold counter.
    pub fn ahead(&self, counter: CounterId, now: Duration, at: DateTime<Utc>) -> Usd {
        let missing = |state: &CounterState| (state.last_second(now) - state.free()).max(0);
        self.to_fill(counter, now, at).map_or(Usd::ZERO, |state| usd(missing(state)))
    }

    /// Returns a counter that may be filled ahead: no process recalls it, its period is not over, and it has no excess
    /// that the store lacks.
    fn to_fill(&self, counter: CounterId, now: Duration, at: DateTime<Utc>) -> Option<&CounterState> {
        let may_fill = |state: &&CounterState| state.return_due == 0 && !state.is_recalled(now);
        let is_settled = !self.excesses.contains_key(&counter) && !counter.period.is_over(at);
        self.counters.get(&counter).filter(may_fill).filter(|_| is_settled)
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

    /// Returns true if amounts are due for return after a change of a limit.
    pub fn has_returns_due(&self) -> bool {
        !self.returns_due.is_empty()
    }

    /// Searches all counters for what [`Self::has_returns_due`] knows.
    #[cfg(test)]
    pub(super) fn finds_returns_due(&self) -> bool {
        self.counters.values().any(|state| state.return_due > 0)
    }

    /// Returns all counters with an allowance.
    pub fn counters(&self) -> impl Iterator<Item = (CounterId, CounterStatus)> {
        self.counters.keys().map(|counter| (*counter, self.status(*counter)))
    }

    /// Returns the number of open holds.
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
            let state = self.counters.entry(*counter).or_default();
            state.hold(*amount, now);
            if !state.is_listed_as_used {
                state.is_listed_as_used = true;
                self.used.push(*counter);
            }
        }
        Ok(())
    }

    fn state(&mut self, counter: CounterId) -> &mut CounterState {
        self.counters.entry(counter).or_default()
    }
}

/// Sums the amounts of each counter.
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
