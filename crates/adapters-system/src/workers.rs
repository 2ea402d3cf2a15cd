//! Worker threads for long tasks, shared fairly among workspaces.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use async_trait::async_trait;
use domain::system::{TaskError, Work, WorkOwner, Workers};
use tokio::sync::oneshot;

/// The limits of [`FairWorkers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The number of threads, at least one.
    pub threads: usize,
    /// The most waiting tasks of one owner.
    pub queue_per_owner: usize,
}

/// Runs tasks on worker threads in round-robin order of their owners: a free thread takes the first task of the owner
/// that waited longest. With several threads, one owner gets at most half of them.
///
/// Clones share the threads, which end with the last clone.
#[derive(Debug, Clone)]
pub struct FairWorkers {
    handle: Arc<Handle>,
}

/// The running and waiting tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The number of threads.
    pub threads: usize,
    /// The number of busy threads.
    pub busy: usize,
    /// The number of waiting tasks.
    pub waiting: usize,
    /// The number of tasks that were rejected because their owner had too many waiting tasks.
    pub rejected: u64,
    /// The number of tasks that were removed from the queue because their caller left.
    pub abandoned: u64,
}

impl FairWorkers {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system cannot start more threads.
    pub fn start(settings: WorkerSettings) -> io::Result<Self> {
        let threads = settings.threads.max(1);
        let shared = Arc::new(Shared {
            threads,
            share: if threads > 1 { threads / 2 } else { 1 },
            queue_per_owner: settings.queue_per_owner,
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let handle = Arc::new(Handle(Arc::clone(&shared)));
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            // If a thread cannot be started, dropping the handle ends the previous ones.
            drop(thread::Builder::new().name(format!("work-{number}")).spawn(move || shared.work())?);
        }
        Ok(Self { handle })
    }

    /// Returns the running and waiting tasks.
    pub fn status(&self) -> WorkerStatus {
        let shared = &self.handle.0;
        let state = shared.lock();
        let waiting = state.queues.values().map(VecDeque::len).sum();
        let busy = state.running.values().sum();
        WorkerStatus { threads: shared.threads, busy, waiting, rejected: state.rejected, abandoned: state.abandoned }
    }
}

#[async_trait]
impl Workers for FairWorkers {
    async fn run(&self, owner: WorkOwner, work: Work) -> Result<(), TaskError> {
        let (end, ended) = oneshot::channel();
        let shared = &self.handle.0;
        let _ticket = Ticket { shared, owner, id: shared.add(owner, work, end)? };
        // A task without a result was never started: the threads are ending.
        ended.await.unwrap_or(Err(TaskError::Stopped))
    }
}

/// Ends the threads on drop.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.stopped = true;
        let dropped = std::mem::take(&mut state.queues);
        state.rotation.clear();
        drop(state);
        self.0.wake.notify_all();
        drop(dropped);
    }
}

#[derive(Debug)]
struct Shared {
    threads: usize,
    /// The most threads of one owner.
    share: usize,
    queue_per_owner: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Waiting tasks; no queue is empty.
    queues: HashMap<WorkOwner, VecDeque<Entry>>,
    /// The owners of the queues in round-robin order.
    rotation: VecDeque<WorkOwner>,
    /// The number of busy threads per owner, if any.
    running: HashMap<WorkOwner, usize>,
    next_id: u64,
    rejected: u64,
    abandoned: u64,
    stopped: bool,
}

/// A waiting task.
struct Entry {
    id: u64,
    work: Work,
    end: oneshot::Sender<Result<(), TaskError>>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, owner: WorkOwner, work: Work, end: oneshot::Sender<Result<(), TaskError>>) -> Result<u64, TaskError> {
        let mut state = self.lock();
        if state.stopped {
            return Err(TaskError::Stopped);
        }
        let waiting = state.queues.get(&owner).map_or(0, VecDeque::len);
        if waiting >= self.queue_per_owner {
            state.rejected += 1;
            return Err(TaskError::QueueFull);
        }
        let id = state.next_id;
        state.next_id += 1;
        state.queues.entry(owner).or_default().push_back(Entry { id, work, end });
        if waiting == 0 {
            state.rotation.push_back(owner);
        }
        drop(state);
        self.wake.notify_one();
        Ok(id)
    }

    /// Removes a task that has not started.
    fn abandon(&self, owner: WorkOwner, id: u64) {
        let mut state = self.lock();
        let Some(queue) = state.queues.get_mut(&owner) else { return };
        let Some(place) = queue.iter().position(|entry| entry.id == id) else { return };
        let dropped = queue.remove(place);
        if queue.is_empty() {
            state.queues.remove(&owner);
            state.rotation.retain(|other| *other != owner);
        }
        state.abandoned += 1;
        drop(state);
        drop(dropped);
    }

    /// Runs tasks until the threads end.
    fn work(&self) {
        while let Some((owner, Entry { work, end, .. })) = self.next() {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|_| TaskError::Panicked);
            self.lock().release(owner);
            // The caller may have left.
            let _ = end.send(done);
        }
    }

    /// Waits for a task; `None` at the end.
    fn next(&self) -> Option<(WorkOwner, Entry)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(next) = state.next(self.share) {
                return Some(next);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    /// Returns the next task of the first owner with fewer threads than its share.
    fn next(&mut self, share: usize) -> Option<(WorkOwner, Entry)> {
        let running = |owner: &WorkOwner| self.running.get(owner).copied().unwrap_or_default();
        let place = self.rotation.iter().position(|owner| running(owner) < share)?;
        let owner = self.rotation.remove(place)?;
        let queue = self.queues.get_mut(&owner)?;
        let entry = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.rotation.push_back(owner);
        }
        *self.running.entry(owner).or_default() += 1;
        Some((owner, entry))
    }

    fn release(&mut self, owner: WorkOwner) {
        if let Some(running) = self.running.get_mut(&owner) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                self.running.remove(&owner);
            }
        }
    }
}

/// Removes the task from the queue if its caller leaves.
struct Ticket<'s> {
    shared: &'s Shared,
    owner: WorkOwner,
    id: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.shared.abandon(self.owner, self.id);
    }
}

#[cfg(test)]
mod tests;
