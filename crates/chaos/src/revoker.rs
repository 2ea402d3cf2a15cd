//! Keys that are created, used on every replica, and revoked while they are used.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tollgate_tests::Instance;

use crate::cluster;
use crate::driver::decide;
use crate::history::{KeyLimit, Millis, Operation, Revocation};
use crate::recorder::Recorder;
use crate::subjects::text;

/// The use of a key before it is revoked.
const USED_FOR: Duration = Duration::from_millis(700);
/// The pause between two uses of a key on a replica.
const PAUSE: Duration = Duration::from_millis(150);
/// The pause between two keys.
const BETWEEN: Duration = Duration::from_millis(500);
/// The use of a key after the longest promise.
const AFTERWARDS: Millis = 1_500;
/// The longest time for a command; its outcome is unknown afterwards.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates, uses and revokes keys until it is stopped.
pub struct Revoker {
    stopped: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Revoker {
    /// Starts with a folder of its own for commands.
    pub fn start(recorder: &Arc<Recorder>, admin: Instance, replicas: &[SocketAddr], max_stale: Millis) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        let revoking = Revoking {
            recorder: Arc::clone(recorder),
            replicas: replicas.to_vec(),
            max_stale,
            stopped: stopped.clone(),
        };
        tasks.spawn(async move {
            let mut uses = JoinSet::new();
            let mut number = 0_usize;
            while !revoking.stopped.load(Ordering::Relaxed) {
                // Without the database no key is created or revoked.
                let _ = revoking.revoke_key(&admin, number, &mut uses).await;
                number += 1;
                sleep(BETWEEN).await;
            }
            while uses.join_next().await.is_some() {}
        });
        Self { stopped, tasks }
    }

    /// Waits for the last use.
    pub async fn stop(mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        while self.tasks.join_next().await.is_some() {}
    }
}

#[derive(Clone)]
struct Revoking {
    recorder: Arc<Recorder>,
    replicas: Vec<SocketAddr>,
    max_stale: Millis,
    stopped: Arc<AtomicBool>,
}

impl Revoking {
    async fn revoke_key(&self, admin: &Instance, number: usize, uses: &mut JoinSet<()>) -> Result<()> {
        let name = format!("revoked-{number}");
        let create = ["key", "create", "--allow-duplicate", "--name", &name];
        let made = timeout(COMMAND_TIMEOUT, cluster::json(admin, &create)).await??;
        let (secret, hash) = (text(&made, "key")?, text(&made, "hash")?);
        let key = self.recorder.add_key(name, secret, KeyLimit::None);
        let ended = Arc::new(AtomicBool::new(false));
        for (replica, address) in self.replicas.iter().copied().enumerate() {
            let (recorder, ended) = (Arc::clone(&self.recorder), Arc::clone(&ended));
            uses.spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    decide(&recorder, replica, address, (key, Operation::Decide)).await;
                    sleep(PAUSE).await;
                }
            });
        }
        sleep(USED_FOR).await;
        let invoked = self.recorder.now();
        self.recorder.update_key(key, |key| key.revocation = Some(Revocation { invoked, acknowledged: None }));
        let revoke = if number.is_multiple_of(2) { "disable" } else { "delete" };
        let done = timeout(COMMAND_TIMEOUT, cluster::run(admin, &["key", revoke, &hash])).await;
        let acknowledged = matches!(done, Ok(Ok(_))).then(|| self.recorder.now());
        self.recorder.update_key(key, |key| key.revocation = Some(Revocation { invoked, acknowledged }));
        let stopped = Arc::clone(&self.stopped);
        let watched = Duration::from_millis(self.max_stale + AFTERWARDS);
        uses.spawn(async move {
            let end = tokio::time::Instant::now() + watched;
            while tokio::time::Instant::now() < end && !stopped.load(Ordering::Relaxed) {
                sleep(PAUSE).await;
            }
            ended.store(true, Ordering::Relaxed);
        });
        Ok(())
    }
}
