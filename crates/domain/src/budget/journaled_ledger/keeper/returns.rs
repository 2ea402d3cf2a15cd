//! Returns of allowances.

use chrono::{DateTime, Utc};

use super::super::calls::lock;
use super::Keeper;
use super::progress::PendingCall;
use crate::budget::ReturnRequest;
use crate::error::StoreError;

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
