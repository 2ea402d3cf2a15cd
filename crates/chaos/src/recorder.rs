//! The history while it grows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::history::{Account, Call, Key, KeyLimit, Millis, Operation, Outcome};

/// The keys that the load uses, by purpose; each an index of the keys.
#[derive(Debug, Clone, Default)]
pub struct KeySet {
    /// A key without a limit.
    pub unlimited: usize,
    /// The keys that every replica answers when it has recovered.
    pub lasting: Vec<usize>,
    /// All keys of the current phase: the lasting ones, those whose limits end in the phase, and one with a rate.
    pub all: Vec<usize>,
    /// The keys that use the preset: of the default workspace, and charged within their holds.
    pub staged: Vec<usize>,
}

/// A client's view of a run: its keys, and the place for its calls.
pub struct Recorder {
    start: Instant,
    incarnations: Vec<AtomicUsize>,
    keys: Mutex<Vec<(Key, String)>>,
    accounts: Mutex<Vec<Account>>,
    active: Mutex<KeySet>,
    calls: Mutex<Vec<Call>>,
    provider_calls: Mutex<BTreeMap<usize, i64>>,
}

/// A call that has begun.
pub struct StartedCall {
    operation: Operation,
    replica: usize,
    incarnation: usize,
    key: usize,
    invoked: Millis,
}

impl Recorder {
    /// Creates an empty history.
    pub fn new(replicas: usize) -> Self {
        Self {
            start: Instant::now(),
            incarnations: (0..replicas).map(|_| AtomicUsize::new(0)).collect(),
            keys: Mutex::default(),
            accounts: Mutex::default(),
            active: Mutex::default(),
            calls: Mutex::default(),
            provider_calls: Mutex::default(),
        }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Millis {
        Millis::try_from(self.start.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Records the beginning of a call.
    pub fn invoke(&self, operation: Operation, replica: usize, key: usize) -> StartedCall {
        StartedCall { operation, replica, incarnation: self.incarnation(replica), key, invoked: self.now() }
    }

    /// Records the outcome of a call.
    pub fn complete(&self, started: &StartedCall, outcome: Outcome) {
        let StartedCall { operation, replica, incarnation, key, invoked } = *started;
        let completed = self.now();
        lock(&self.calls).push(Call { operation, replica, incarnation, key, invoked, completed, outcome });
    }

    /// Returns the number of restarts of a replica.
    pub fn incarnation(&self, replica: usize) -> usize {
        self.incarnations.get(replica).map_or(0, |count| count.load(Ordering::SeqCst))
    }

    /// Counts a restart of a replica.
    pub fn restart(&self, replica: usize) {
        if let Some(count) = self.incarnations.get(replica) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Adds a key; returns its index.
    pub fn add_key(&self, name: String, secret: String, limit: KeyLimit) -> usize {
        let key = Key { name, limit, created: self.now(), revocation: None };
        let mut keys = lock(&self.keys);
        keys.push((key, secret));
        keys.len() - 1
    }

    /// Changes a key.
    pub fn update_key(&self, key: usize, change: impl FnOnce(&mut Key)) {
        if let Some((key, _)) = lock(&self.keys).get_mut(key) {
            change(key);
        }
    }

    /// Returns the secret of a key.
    pub fn secret(&self, key: usize) -> String {
        lock(&self.keys).get(key).map(|(_, secret)| secret.clone()).unwrap_or_default()
    }

    /// Returns the limit of a key.
    pub fn limit(&self, key: usize) -> Option<KeyLimit> {
        lock(&self.keys).get(key).map(|(key, _)| key.limit)
    }

    /// Adds an account.
    pub fn add_account(&self, account: Account) {
        lock(&self.accounts).push(account);
    }

    /// Replaces the keys of the load.
    pub fn activate(&self, keys: KeySet) {
        *lock(&self.active) = keys;
    }

    /// Returns the keys of the load.
    pub fn active(&self) -> KeySet {
        lock(&self.active).clone()
    }

    /// Counts calls at the provider.
    pub fn add_provider_calls(&self, keys: impl IntoIterator<Item = usize>) {
        let mut counts = lock(&self.provider_calls);
        for key in keys {
            *counts.entry(key).or_default() += 1;
        }
    }

    /// Returns the calls at the provider, by key.
    pub fn provider_calls(&self) -> BTreeMap<usize, i64> {
        lock(&self.provider_calls).clone()
    }

    /// Returns the keys and accounts.
    pub fn subjects(&self) -> (Vec<Key>, Vec<Account>) {
        (lock(&self.keys).iter().map(|(key, _)| key.clone()).collect(), lock(&self.accounts).clone())
    }

    /// Runs a function over the calls so far.
    pub fn with_calls<T>(&self, read: impl FnOnce(&[Call]) -> T) -> T {
        read(&lock(&self.calls))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
