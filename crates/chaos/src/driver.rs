//! The load: clients of every replica that send requests and record the outcomes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tollgate_tests::{Reply, decisions, promotion};

use crate::history::{KeyLimit, Operation, Outcome};
use crate::money::parse_usd;
use crate::random::Random;
use crate::recorder::Recorder;

/// The clients of each replica.
pub const CLIENTS: usize = 4;
/// The preset of the load.
pub const PRESET_SLUG: &str = "triage";
/// The pause of a client between calls. The load is far below what the replicas can answer, so that a busy machine can
/// carry it, too.
const PAUSE: Duration = Duration::from_millis(60);
/// The pause after a refused connection.
const RETRY: Duration = Duration::from_millis(100);
/// One of so many calls is a promotion.
const PROMOTIONS: usize = 12;
/// One of so many Decisions requests uses the preset.
const STAGED: usize = 5;
/// The beginning of each idempotency key, before the number of the promotion.
pub const PROMOTION: &str = "chaos-";
/// The container of all files.
pub const CONTAINER: &str = "sess_chaos";
/// The beginning of the state of each request, before the number of its key.
pub const MARK: &str = "chaos-key-";

/// The files that clients promote: their ids.
pub type Files = Arc<[String]>;

/// The clients of a run.
pub struct Load {
    stopped: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients.
    pub fn start(recorder: &Arc<Recorder>, replicas: &[SocketAddr], files: &Files, seed: u64) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for replica in 0..replicas.len() {
            for number in 0..CLIENTS {
                let client = Client {
                    recorder: Arc::clone(recorder),
                    replica,
                    addresses: replicas.into(),
                    files: Arc::clone(files),
                    random: Random::new(seed, (1 + replica * CLIENTS + number) as u64),
                    next_promotion: ((replica * CLIENTS + number) as u64) << 32,
                    open_promotion: None,
                };
                clients.spawn(client.run(Arc::clone(&stopped)));
            }
        }
        Self { stopped, clients }
    }

    /// Waits for the last outcome of each client.
    pub async fn stop(mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        while self.clients.join_next().await.is_some() {}
    }
}

struct Client {
    recorder: Arc<Recorder>,
    replica: usize,
    addresses: Arc<[SocketAddr]>,
    files: Files,
    random: Random,
    /// The number of the next promotion, different for each client.
    next_promotion: u64,
    /// The promotion without an acknowledgement: its number, its file and its key.
    open_promotion: Option<(u64, usize, usize)>,
}

impl Client {
    async fn run(mut self, stopped: Arc<AtomicBool>) {
        while !stopped.load(Ordering::Relaxed) {
            let keys = self.recorder.active();
            let was_accepted = if self.random.below(PROMOTIONS) == 0 {
                self.promote(keys.unlimited).await
            } else {
                let is_staged = !keys.staged.is_empty() && self.random.below(STAGED) == 0;
                let (keys, operation) =
                    if is_staged { (keys.staged, Operation::DecideInStages) } else { (keys.all, Operation::Decide) };
                let key = keys[self.random.below(keys.len())];
                decide(&self.recorder, self.replica, self.addresses[self.replica], (key, operation)).await
            };
            sleep(if was_accepted { PAUSE } else { RETRY }).await;
        }
    }

    /// Promotes a file at the client's replica, or repeats its last promotion at any replica if that one was not
    /// acknowledged.
    async fn promote(&mut self, key: usize) -> bool {
        let (number, file, key, replica) = match self.open_promotion {
            Some((number, file, key)) => (number, file, key, self.random.below(self.addresses.len())),
            None => (self.next_promotion, self.random.below(self.files.len()), key, self.replica),
        };
        let call = promotion(&self.recorder.secret(key), CONTAINER, &self.files[file]);
        let call = call.header("idempotency-key", format!("{PROMOTION}{number}"));
        let started = self.recorder.invoke(Operation::Promote { file, number }, replica, key);
        let outcome = outcome_of(call.send(self.addresses[replica]).await);
        let was_accepted = outcome != Outcome::Failed;
        if matches!(outcome, Outcome::Ok { .. }) {
            (self.open_promotion, self.next_promotion) = (None, number + 1);
        } else {
            self.open_promotion = Some((number, file, key));
        }
        self.recorder.complete(&started, outcome);
        was_accepted
    }
}

/// Sends a Decisions request and records its outcome; returns false if the replica accepted no connection.
pub async fn decide(
    recorder: &Recorder,
    replica: usize,
    address: SocketAddr,
    (key, operation): (usize, Operation),
) -> bool {
    let question = r#"{"refund":{"type":"noul","instructions":"A refund?"}}"#;
    let (model, questions) = match (operation, recorder.limit(key)) {
        (Operation::DecideInStages, _) => (format!("@preset/{PRESET_SLUG}"), "{}"),
        (_, Some(KeyLimit::Overcharged)) => ("acme/overcharged".to_owned(), question),
        _ => ("acme/alone".to_owned(), question),
    };
    let body = format!(r#"{{"model":"{model}","questions":{questions},"state":"{MARK}{key}."}}"#);
    let call = decisions(&recorder.secret(key), body);
    let started = recorder.invoke(operation, replica, key);
    let outcome = outcome_of(call.send(address).await);
    let was_accepted = outcome != Outcome::Failed;
    recorder.complete(&started, outcome);
    was_accepted
}

fn outcome_of(reply: anyhow::Result<Reply>) -> Outcome {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if is_refused(&error) => return Outcome::Failed,
        Err(error) if format!("{error:#}").contains("violates the OpenAPI document") => {
            return Outcome::Invalid(format!("{error:#}"));
        }
        Err(error) => return Outcome::Unknown(format!("{error:#}")),
    };
    let body = if reply.status == 200 { reply.ok() } else { reply.envelope(reply.status) };
    let body = match body {
        Ok(body) => body,
        Err(error) => return Outcome::Invalid(format!("{error:#}")),
    };
    if reply.status == 200 {
        return match body["id"].as_str() {
            Some(id) => {
                let stages = body["outcomes"].as_object().into_iter().flat_map(|outcomes| outcomes.values());
                let stage = stages.filter_map(|outcome| outcome["stage"].as_i64()).max().unwrap_or_default();
                let cost_pico = usd(&body["usage"]["cost"]).unwrap_or_default();
                Outcome::Ok { id: id.to_owned(), cost_pico, stage }
            }
            None => Outcome::Invalid(format!("no id in {body}")),
        };
    }
    let error = &body["error"];
    Outcome::Rejected {
        status: reply.status,
        has_retry_after: reply.header("retry-after").parse::<u64>().is_ok(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        remaining_pico: remaining(&error["metadata"]),
    }
}

fn is_refused(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.into_iter().any(|cause| cause.kind() == std::io::ErrorKind::ConnectionRefused)
}

fn remaining(metadata: &Value) -> Option<i64> {
    let amount = |name: &str| usd(&metadata[name]);
    amount("limit_usd")?.checked_sub(amount("spent_usd")?)?.checked_sub(amount("reserved_usd")?)
}

fn usd(value: &Value) -> Option<i64> {
    value.is_number().then(|| parse_usd(&value.to_string()))?
}

/// Returns the key of a request that arrived at the provider.
pub fn key_of(request: &str) -> Option<usize> {
    let (_, rest) = request.split_once(MARK)?;
    rest.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_is_read_from_the_state_of_a_request() {
        assert_eq!(key_of(r#"{"state":"chaos-key-17."}"#), Some(17));
        assert_eq!(key_of(r#"{"state":"other"}"#), None);
    }

    #[test]
    fn remaining_amount_is_exact() {
        let metadata = json!({"limit_usd": 0.001, "spent_usd": 0.000_995_4, "reserved_usd": 4.2e-6});
        assert_eq!(remaining(&metadata), Some(400_000));
        assert_eq!(remaining(&json!({"limit_usd": 1})), None);
    }
}
