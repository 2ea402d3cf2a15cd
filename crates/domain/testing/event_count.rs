//! Events that tests wait for, without a runtime.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use async_trait::async_trait;

use super::system::lock;
use crate::decision::ClientConnection;

/// A count of events that futures wait for. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct EventCount(Arc<Mutex<Events>>);

#[derive(Debug, Default)]
struct Events {
    count: usize,
    waiting: Vec<Waker>,
}

impl EventCount {
    /// Counts an event and wakes all waiting futures.
    pub fn add(&self) {
        let waiting = {
            let mut events = lock(&self.0);
            events.count += 1;
            std::mem::take(&mut events.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the number of events so far.
    pub fn get(&self) -> usize {
        lock(&self.0).count
    }

    /// Returns once `count` events have occurred.
    pub async fn reached(&self, count: usize) {
        std::future::poll_fn(|context| {
            let mut events = lock(&self.0);
            if events.count >= count {
                return Poll::Ready(());
            }
            events.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A client that stays connected until the test disconnects it. Clones share the connection.
#[derive(Debug, Clone, Default)]
pub struct ManualClient(EventCount);

impl ManualClient {
    /// Disconnects.
    pub fn disconnect(&self) {
        self.0.add();
    }
}

#[async_trait]
impl ClientConnection for ManualClient {
    async fn disconnected(&self) {
        self.0.reached(1).await;
    }
}
