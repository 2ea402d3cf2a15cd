//! All deliveries of a process.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::DeliverySettings;
use super::line::Line;
use super::turn::Turn;
use crate::error::StoreError;
use crate::ids::DestinationId;
use crate::observability::{DestinationRepository, MessageSender, Outbox};
use crate::system::{Clock, Randomness, Timer};

/// Destinations that are delivered to at the same time.
const MOST_AT_ONCE: usize = 32;

/// What delivering needs.
pub struct DeliverOutboxPorts {
    /// What is to be delivered.
    pub outbox: Arc<dyn Outbox>,
    /// Where to.
    pub destinations: Arc<dyn DestinationRepository>,
    /// Delivers.
    pub sender: Arc<dyn MessageSender>,
    /// What is due.
    pub clock: Arc<dyn Clock>,
    /// Waits.
    pub timer: Arc<dyn Timer>,
    /// Spreads attempts.
    pub random: Arc<dyn Randomness>,
}

/// Delivers what is in the outbox, again and again. Each destination is served by itself: one that is slow or away keeps
/// nobody else waiting, and is itself left alone for longer and longer. Several processes may do so on one outbox.
pub struct DeliverOutbox {
    pub(super) ports: DeliverOutboxPorts,
    pub(super) settings: DeliverySettings,
}

type Turns<'a> = FuturesUnordered<BoxFuture<'a, (DestinationId, Result<Turn, StoreError>)>>;

impl DeliverOutbox {
    /// Wires the ports.
    pub fn new(ports: DeliverOutboxPorts, settings: DeliverySettings) -> Self {
        Self { ports, settings }
    }

    /// Delivers until `stopped` ends, and then waits a little for what is under way. What is not delivered stays where
    /// it is.
    pub async fn run(&self, stopped: impl Future<Output = ()>) {
        let mut stopped = pin!(stopped.fuse());
        let mut lines = Lines::default();
        let mut turns: Turns<'_> = FuturesUnordered::new();
        loop {
            self.begin(&mut lines, &mut turns).await;
            let pause = self.ports.timer.sleep(self.settings.poll_every);
            let ended = pin!(next_of(&mut turns));
            let next = select(ended, pause);
            let ended = match select(&mut stopped, next).await {
                Either::Left(_) => break,
                Either::Right((Either::Left((ended, _)), _)) => ended,
                Either::Right((Either::Right(_), _)) => None,
            };
            if let Some((id, turn)) = ended {
                self.end(&mut lines, id, turn);
            }
        }
        let grace = self.ports.timer.sleep(self.settings.grace);
        let all = async { while turns.next().await.is_some() {} };
        select(pin!(all), grace).await;
    }

    /// Begins a turn with every destination that something is due for and that may be sent to. Turns under way go on
    /// while the store is asked: among what they hold may be what the store needs to answer.
    async fn begin<'a>(&'a self, lines: &mut Lines, turns: &mut Turns<'a>) {
        let free = MOST_AT_ONCE.saturating_sub(turns.len());
        if free == 0 {
            return;
        }
        let closed = lines.closed(self.ports.clock.monotonic());
        let mut ended = Vec::new();
        let mut asked = self.ports.outbox.due(self.ports.clock.now(), &closed);
        let due = loop {
            match select(asked, pin!(next_of(turns))).await {
                Either::Left((due, _)) => break due,
                Either::Right((turn, still_asked)) => {
                    ended.extend(turn);
                    asked = still_asked;
                }
            }
        };
        match due {
            Ok(due) => {
                lines.store_answers();
                lines.forget_idle(&due, self.ports.clock.monotonic());
                for id in due.into_iter().take(free) {
                    let line = lines.of(id);
                    line.busy = true;
                    let width = line.width;
                    turns.push(async move { (id, self.turn(id, width).await) }.boxed());
                }
            }
            Err(error) => lines.store_failed(&error),
        }
        for (id, turn) in ended {
            self.end(lines, id, turn);
        }
    }

    fn end(&self, lines: &mut Lines, id: DestinationId, turn: Result<Turn, StoreError>) {
        let now = self.ports.clock.monotonic();
        let line = lines.of(id);
        line.busy = false;
        line.rests_until = Duration::ZERO;
        match turn {
            Ok(Turn::Delivered(messages)) => {
                tracing::debug!(destination.id = %id, messages, "traces were delivered");
                if line.failures > 0 {
                    tracing::info!(destination.id = %id, "a destination of traces takes them again");
                }
                line.failures = 0;
                line.widen();
            }
            Ok(Turn::Nothing) => {}
            Ok(Turn::Paused(pause)) => line.rests_until = now.saturating_add(pause),
            Ok(Turn::Apart) => line.width = 1,
            Ok(Turn::Refused { dead, reason }) => {
                tracing::warn!(destination.id = %id, dead_letters = dead, reason, "a trace was not taken");
            }
            Ok(Turn::Away { dead, reason, asked }) => {
                if line.failures == 0 || dead > 0 {
                    tracing::warn!(destination.id = %id, dead_letters = dead, reason, "traces were not delivered");
                }
                line.failures = line.failures.saturating_add(1);
                line.width = 1;
                let wait = self.settings.wait(line.failures, asked, self.ports.random.next_u64());
                line.rests_until = now.saturating_add(wait);
            }
            Err(error) => {
                line.rests_until = now.saturating_add(self.settings.retry_initial_delay);
                lines.store_failed(&error);
            }
        }
    }
}

/// The next turn that ends; never where none is under way.
async fn next_of(turns: &mut Turns<'_>) -> Option<(DestinationId, Result<Turn, StoreError>)> {
    match turns.next().await {
        Some(ended) => Some(ended),
        None => std::future::pending().await,
    }
}

/// What this process knows of the ways to destinations.
#[derive(Default)]
struct Lines {
    by_destination: HashMap<DestinationId, Line>,
    store_is_away: bool,
}

impl Lines {
    fn of(&mut self, id: DestinationId) -> &mut Line {
        self.by_destination.entry(id).or_default()
    }

    fn closed(&self, now: Duration) -> Vec<DestinationId> {
        self.by_destination.iter().filter(|(_, line)| line.is_closed(now)).map(|(id, _)| *id).collect()
    }

    /// Forgets destinations that nothing is due for and that nothing is the matter with.
    fn forget_idle(&mut self, due: &[DestinationId], now: Duration) {
        self.by_destination.retain(|id, line| line.is_closed(now) || line.failures > 0 || due.contains(id));
    }

    /// One line in the log when the store goes, not one a turn.
    fn store_failed(&mut self, error: &StoreError) {
        if !self.store_is_away {
            tracing::warn!(error = error as &dyn std::error::Error, "the outbox cannot be read; it is tried again");
        }
        self.store_is_away = true;
    }

    fn store_answers(&mut self) {
        if self.store_is_away {
            tracing::info!("the outbox can be read again");
        }
        self.store_is_away = false;
    }
}
