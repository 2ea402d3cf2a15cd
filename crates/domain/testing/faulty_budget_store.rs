//! A store of allowances whose calls fail.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::{FixedClock, yield_now};
use crate::audit::AuditDraft;
use crate::budget::{
    BudgetSignals, BudgetStore, BudgetStoreError, CounterLimits, DrawReply, DrawRequest, FoldRequest, LiveProcess,
    Payer, ProcessStatus, RemainingAllowances, ReturnRequest,
};
use crate::error::StoreError;
use crate::ids::ProcessId;

/// The failure of calls to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// Calls succeed.
    None,
    /// Calls have no effect.
    Away,
    /// Calls take effect, and their answers are lost.
    LostAnswer,
    /// One answer is lost, after this many calls that succeed. All later calls succeed.
    LostAnswerAfter(u32),
    /// Calls hang.
    Hangs,
    /// Other tasks run before each call fails without effect.
    TimesOut,
    /// Other tasks run before and after each call takes effect.
    Slow,
}

/// The duration of each call.
struct Delay {
    clock: FixedClock,
    duration: Duration,
}

/// Decorates a store: its calls can fail, and the store can be replaced.
pub struct FaultyBudgetStore {
    store: Mutex<Arc<dyn BudgetStore>>,
    fault: Mutex<StoreFault>,
    delay: Mutex<Option<Delay>>,
    draws: AtomicU32,
}

impl FaultyBudgetStore {
    /// Creates a decorator of a store, without a fault.
    pub fn new(store: Arc<dyn BudgetStore>) -> Self {
        Self {
            store: Mutex::new(store),
            fault: Mutex::new(StoreFault::None),
            delay: Mutex::new(None),
            draws: AtomicU32::new(0),
        }
    }

    /// Sets the fault of the next calls.
    pub fn set(&self, fault: StoreFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Makes each call take this long on a clock.
    pub fn slow_down(&self, clock: FixedClock, duration: Duration) {
        *self.delay.lock().unwrap_or_else(PoisonError::into_inner) = Some(Delay { clock, duration });
    }

    /// Returns the fault of the next calls.
    pub fn fault(&self) -> StoreFault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the store.
    pub fn replace(&self, store: Arc<dyn BudgetStore>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    /// Returns the number of draws so far.
    pub fn draws(&self) -> u32 {
        self.draws.load(Ordering::Relaxed)
    }

    fn store(&self) -> Arc<dyn BudgetStore> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the fault of the next call, and counts the call.
    fn next_fault(&self) -> StoreFault {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match *fault {
            StoreFault::LostAnswerAfter(0) => {
                *fault = StoreFault::None;
                StoreFault::LostAnswer
            }
            StoreFault::LostAnswerAfter(calls) => {
                *fault = StoreFault::LostAnswerAfter(calls - 1);
                StoreFault::None
            }
            other => other,
        }
    }

    async fn call<T, E: From<StoreError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let away = || Err(StoreError::unavailable("away").into());
        if let Some(Delay { clock, duration }) = &*self.delay.lock().unwrap_or_else(PoisonError::into_inner) {
            clock.advance(*duration);
        }
        match self.next_fault() {
            StoreFault::None => call.await,
            StoreFault::Away => away(),
            StoreFault::Slow => {
                yield_now().await;
                let answer = call.await;
                yield_now().await;
                answer
            }
            StoreFault::TimesOut => {
                yield_now().await;
                away()
            }
            StoreFault::Hangs => std::future::pending().await,
            StoreFault::LostAnswer | StoreFault::LostAnswerAfter(_) => {
                drop(call.await);
                away()
            }
        }
    }
}
#[async_trait]
impl BudgetStore for FaultyBudgetStore {
    async fn register(&self, process: ProcessId) -> Result<(), StoreError> {
        self.call(self.store().register(process)).await
    }

    async fn process(&self, process: ProcessId) -> Result<Option<ProcessStatus>, StoreError> {
        self.call(self.store().process(process)).await
    }

    async fn draw(&self, request: &DrawRequest) -> Result<DrawReply, BudgetStoreError> {
        self.draws.fetch_add(1, Ordering::Relaxed);
        self.call(self.store().draw(request)).await
    }

    async fn return_allowances(&self, request: &ReturnRequest) -> Result<(), BudgetStoreError> {
        self.call(self.store().return_allowances(request)).await
    }

    async fn fold(&self, request: &FoldRequest) -> Result<(), BudgetStoreError> {
        self.call(self.store().fold(request)).await
    }

    async fn declare_older(&self) -> Result<(), StoreError> {
        self.call(self.store().declare_older()).await
    }

    async fn end(&self, process: ProcessId, remaining: RemainingAllowances) -> Result<(), StoreError> {
        self.call(self.store().end(process, remaining)).await
    }

    async fn forget(
        &self,
        process: ProcessId,
        remaining: RemainingAllowances,
        audit: &AuditDraft,
    ) -> Result<(), StoreError> {
        self.call(self.store().forget(process, remaining, audit)).await
    }

    async fn live_processes(&self) -> Result<Vec<LiveProcess>, StoreError> {
        self.call(self.store().live_processes()).await
    }

    async fn limits(&self, payer: &Payer) -> Result<(Vec<CounterLimits>, u64), StoreError> {
        self.call(self.store().limits(payer)).await
    }

    async fn signals(&self) -> Result<BudgetSignals, StoreError> {
        self.call(self.store().signals()).await
    }
}
