//! Draws of allowances, and their returns.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::super::asks::{Answer, Ask};
use super::super::calls::lock;
use super::Keeper;
use super::progress::{PendingCall, PendingDraw};
use crate::budget::allowances::{CounterId, HoldError};
use crate::budget::{DrawAhead, DrawAsk, DrawReply, DrawRequest, LimitExceeded, ReturnRequest};
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// The most draws for one service of the queue: one more after charges were folded, and the others if requests that do
/// not wait took the amounts meanwhile, as they can again and again near the end of a limit.
const MAX_ROUNDS: usize = 50;

impl Keeper {
    /// Serves all waiting requests: from memory, else by one draw.
    pub(in crate::budget::journaled_ledger) async fn serve_asks(&mut self) {
        let mut asks = Vec::new();
        let mut is_flushed = false;
        for round in 1..=MAX_ROUNDS {
            asks = self.state.asks.waiting();
            asks.retain(|ask| !self.try_answer(ask, None));
            if asks.is_empty() {
                return;
            }
            let drawn = self.draw(&asks).await;
            self.state.set_store_away(drawn.is_err());
            let answers = match drawn {
                Ok(answers) => answers,
                Err(error) => return Self::fail(&asks, &error),
            };
            // An exact 402 needs the charges of this process in the store.
            let may_flush = !is_flushed && self.progress.folded < self.journal.status().last_sequence;
            let waits = |answer: &Result<(), LimitExceeded>| answer.is_err_and(|by| by.waits_for_others());
            if may_flush && answers.iter().any(waits) {
                is_flushed = true;
                if let Err(error) = self.flush().await {
                    return Self::fail(&asks, &error);
                }
                for (ask, answer) in asks.iter().zip(&answers) {
                    let rejected = answer.err().filter(|by| !by.waits_for_others());
                    self.try_answer(ask, rejected);
                }
            } else {
                for (ask, answer) in asks.iter().zip(&answers) {
                    self.try_answer(ask, answer.err());
                }
            }
            asks.retain(|ask| ask.is_waiting());
            if asks.is_empty() || round == MAX_ROUNDS {
                break;
            }
        }
        let crowded = StoreError::unavailable("other requests took the allowances that were drawn for this one");
        Self::fail(&asks, &crowded);
    }

    /// Answers a request that can be served from memory, or that a limit rejects. Returns false if it keeps waiting.
    fn try_answer(&self, ask: &Ask, rejected: Option<LimitExceeded>) -> bool {
        let now = self.clock.monotonic();
        ask.answer(|| match self.state.take_for(ask, now) {
            Ok(()) => Some(Ok(Ok(()))),
            Err(HoldError::Short(_)) => rejected.map(|by| Ok(Err(by))),
            Err(HoldError::State(id)) => Some(Err(StoreError::Corrupt(format!("the hold {id} is not open")))),
        })
    }

    /// Fails all waiting requests.
    pub(in crate::budget::journaled_ledger) fn fail_waiting(&self, error: &StoreError) {
        Self::fail(&self.state.asks.waiting(), error);
    }

    fn fail(asks: &[Arc<Ask>], error: &StoreError) {
        for ask in asks {
            let answer: Answer = Err(match error {
                StoreError::Corrupt(text) => StoreError::Corrupt(text.clone()),
                StoreError::Repeated => StoreError::Repeated,
                StoreError::Unavailable(source) => StoreError::unavailable(source.to_string()),
            });
            ask.answer(|| Some(answer));
        }
    }

    /// Draws the missing amounts of requests, and fills their counters for another second like the last one: under load
    /// each request would draw for itself until the next scan.
    async fn draw(&mut self, asks: &[Arc<Ask>]) -> Result<Vec<Result<(), LimitExceeded>>, StoreError> {
        self.register().await?;
        self.resolve_pending().await?;
        self.fold_excesses(asks).await?;
        // Under constant load the idle branch never runs, so recalls are answered here as well.
        if self.clock.monotonic() >= self.progress.next_signals {
            self.follow_signals(false).await?;
        }
        if asks.iter().any(|ask| self.has_returns_due(ask.payer.workspace_id)) {
            self.return_allowances(None).await?;
        }
        let (request, owners) = self.request_of(asks);
        Ok(self.send_draw(self.pending_draw(request, owners)).await?.answers)
    }

    /// Folds the charges that exceed the allowances of requests' counters: the store must count them before it grants
    /// more.
    async fn fold_excesses(&mut self, asks: &[Arc<Ask>]) -> Result<(), StoreError> {
        let last = |ask: &Arc<Ask>| {
            lock(&self.state.workspaces.get(ask.payer.workspace_id)).allowances.last_excess(&ask.counters)
        };
        match asks.iter().filter_map(last).max() {
            Some(last) if last > self.progress.folded => self.flush().await,
            _ => Ok(()),
        }
    }

    fn has_returns_due(&self, workspace: WorkspaceId) -> bool {
        lock(&self.state.workspaces.get(workspace)).allowances.has_returns_due()
    }

    /// Returns the draw of requests, and the workspace of each counter.
    fn request_of(&self, asks: &[Arc<Ask>]) -> (DrawRequest, HashMap<CounterId, WorkspaceId>) {
        let now = self.clock.monotonic();
        let (mut owners, mut free, mut ahead) = (HashMap::new(), BTreeMap::new(), BTreeMap::new());
        for ask in asks {
            let money = self.state.workspaces.get(ask.payer.workspace_id);
            let money = lock(&money);
            for counter in &ask.counters {
                owners.insert(*counter, ask.payer.workspace_id);
                free.insert(*counter, money.allowances.status(*counter).available);
                ahead.insert(*counter, money.allowances.ahead(*counter, now, ask.at));
            }
        }
        let ahead = ahead.into_iter().filter(|(_, amount)| *amount > Usd::ZERO);
        let ahead = ahead.map(|(counter, amount)| DrawAhead { counter, amount }).collect();
        let of = |ask: &Arc<Ask>| DrawAsk {
            payer: ask.payer.clone(),
            at: ask.at,
            amount: ask.amount,
            counters: ask.counters.clone(),
        };
        let request = DrawRequest {
            process: self.journal.process(),
            number: self.progress.number + 1,
            asks: asks.iter().map(of).collect(),
            free,
            ahead,
        };
        (request, owners)
    }

    /// Draws for counters that are used and nearly empty, so that requests do not wait.
    pub(super) async fn draw_ahead(&mut self) -> Result<(), StoreError> {
        let (now, at) = (self.clock.monotonic(), self.clock.now());
        let mut owners = HashMap::new();
        let mut ahead = Vec::new();
        for (workspace, money) in self.state.workspaces.all() {
            for wish in lock(&money).allowances.take_wishes(now, at) {
                let amount = Usd::from_pico(wish.amount.pico().saturating_sub(wish.free.pico()));
                ahead.push(DrawAhead { counter: wish.counter, amount });
                owners.insert(wish.counter, workspace);
            }
        }
        if ahead.is_empty() {
            return Ok(());
        }
        self.resolve_pending().await?;
        let request = DrawRequest {
            process: self.journal.process(),
            number: self.progress.number + 1,
            asks: Vec::new(),
            free: BTreeMap::new(),
            ahead,
        };
        self.send_draw(self.pending_draw(request, owners)).await.map(drop)
    }

    fn pending_draw(&self, request: DrawRequest, owners: HashMap<CounterId, WorkspaceId>) -> PendingDraw {
        PendingDraw { request, owners, folded: self.progress.folded }
    }

    /// Sends a draw. If its answer does not arrive, the same draw is repeated before any other.
    pub(super) async fn send_draw(&mut self, draw: PendingDraw) -> Result<DrawReply, StoreError> {
        // Stored before it is sent, because the caller may leave at any time.
        self.progress.pending = Some(PendingCall::Draw(draw.clone()));
        let reply = self.store.draw(&draw.request).await.map_err(|error| self.store_failed(error))?;
        self.progress.pending = None;
        if !reply.grants.is_empty() {
            self.progress.number = draw.request.number;
        }
        self.grant(&reply, &draw);
        Ok(reply)
    }
}

impl Keeper {
    /// Returns allowances that are recalled, idle, of a past period, or of a lowered limit. They leave memory before
    /// the call to the store. `answered` is the time of the answered signals.
    pub(super) async fn return_allowances(&mut self, answered: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        self.resolve_pending().await?;
        let synced = self.journal.status().synced_sequence;
        let (now, at) = (self.clock.monotonic(), self.clock.now());
        let mut amounts = Vec::new();
        for (_, money) in self.state.workspaces.all() {
            let mut money = lock(&money);
            money.allowances.synced(synced);
            money.allowances.excesses_folded(self.progress.folded);
            amounts.extend(money.allowances.take_returnable(now, at));
        }
        if amounts.is_empty() && answered.is_none() {
            return Ok(());
        }
        let number = self.progress.number + 1;
        self.send_return(ReturnRequest { process: self.journal.process(), number, amounts, answered }).await
    }

    pub(super) async fn send_return(&mut self, request: ReturnRequest) -> Result<(), StoreError> {
        let (number, answered) = (request.number, request.answered);
        self.progress.pending = Some(PendingCall::Return(request.clone()));
        self.store.return_allowances(&request).await.map_err(|error| self.store_failed(error))?;
        self.progress.pending = None;
        self.progress.number = number;
        if let Some(at) = answered {
            self.progress.answers.sent(at, self.clock.monotonic());
        }
        Ok(())
    }
}
