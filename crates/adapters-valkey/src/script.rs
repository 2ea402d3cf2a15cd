//! The script that counts on the server, and the buckets of a subject: their keys and limits.

use std::num::NonZeroU32;
use std::sync::Arc;

use domain::rate::{Gcra, RateLimited, RateScope, RateSubject, RateUnit};
use domain::system::Clock;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind};

/// Reads the clock of the server, so that clocks of replicas do not matter.
const SERVER_TIME: &str = "local time = redis.call('TIME')\n\
                           local now_seconds, now_nanos = tonumber(time[1]), tonumber(time[2]) * 1000\n";
const COUNT: &str = include_str!("script.lua");

/// The keys and arguments of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) keys: Vec<String>,
    pub(crate) arguments: Vec<String>,
}

/// The script. The server runs it as one step, so that no other request sees a part of it.
pub(crate) struct RateScript {
    text: String,
    hash: String,
    /// A clock in place of the server's, for tests.
    clock: Option<Arc<dyn Clock>>,
}

impl RateScript {
    /// Returns the script that uses the time of the server.
    pub(crate) fn with_server_time() -> Self {
        Self::new(SERVER_TIME)
    }

    fn new(time: &str) -> Self {
        let text = format!("{time}{COUNT}");
        let hash = Script::new(&text).get_hash().to_owned();
        Self { text, hash, clock: None }
    }

    /// Returns the script that uses the time of a test.
    #[cfg(test)]
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let time = "local now_seconds, now_nanos = tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])\n";
        Self { clock: Some(clock), ..Self::new(time) }
    }

    /// Returns the arguments after those of the invocation.
    fn time_arguments(&self) -> Vec<String> {
        let now = self.clock.as_ref().map(|clock| clock.monotonic());
        now.map(|now| vec![now.as_secs().to_string(), now.subsec_nanos().to_string()]).unwrap_or_default()
    }

    /// Runs the script by its hash; a server that does not know the hash gets the text.
    pub(crate) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        invocation: &Invocation,
    ) -> Result<Vec<i64>, RedisError> {
        let by_hash = self.command("EVALSHA", &self.hash, invocation).query_async(connection).await;
        match by_hash {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.command("EVAL", &self.text, invocation).query_async(connection).await
            }
            other => other,
        }
    }

    fn command(&self, name: &str, script: &str, invocation: &Invocation) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(invocation.keys.len()).arg(&invocation.keys).arg(&invocation.arguments);
        command.arg(self.time_arguments());
        command
    }
}

/// The largest amount that the script counts exactly. It is larger than any body or answer.
const MAX_AMOUNT: u64 = 1 << 52;

/// A limit of a subject and the key of its bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    key: String,
    scope: RateScope,
    unit: RateUnit,
    limit: NonZeroU32,
}

/// Returns the buckets of one unit: of the key, and of its workspace.
///
/// The keys consist of ids. The part in braces is the same for a workspace and its keys, so that a cluster keeps them
/// on one node.
pub(crate) fn buckets(prefix: &str, subject: &RateSubject, unit: RateUnit) -> Vec<Bucket> {
    let group = match &subject.workspace {
        Some((id, _)) => id.uuid(),
        None => subject.api_key.uuid(),
    };
    let bucket = |scope: RateScope, owner, limit: Option<NonZeroU32>| {
        let key = format!("{prefix}{{{group}}}:{}:{owner}:{}", scope.as_str(), unit.as_str());
        limit.map(|limit| Bucket { key, scope, unit, limit })
    };
    let of_key = bucket(RateScope::Key, subject.api_key.uuid(), subject.key.for_unit(unit));
    let of_workspace =
        subject.workspace.and_then(|(id, limits)| bucket(RateScope::Workspace, id.uuid(), limits.for_unit(unit)));
    of_key.into_iter().chain(of_workspace).collect()
}

/// Returns the invocation that takes an amount from all buckets or from none. If it takes none, it releases one unit of
/// each of `released`.
pub(crate) fn take(buckets: &[Bucket], amount: u64, released: &[Bucket]) -> Invocation {
    let all = || buckets.iter().chain(released);
    Invocation {
        keys: all().map(|bucket| bucket.key.clone()).collect(),
        arguments: ["take".to_owned(), amount.min(MAX_AMOUNT).to_string(), buckets.len().to_string()]
            .into_iter()
            .chain(all().map(|bucket| bucket.limit.to_string()))
            .collect(),
    }
}

/// Returns the invocation that corrects a taken amount in all buckets.
pub(crate) fn correct(buckets: &[Bucket], taken: u64, used: u64) -> Invocation {
    Invocation {
        keys: buckets.iter().map(|bucket| bucket.key.clone()).collect(),
        arguments: ["correct".to_owned(), taken.min(MAX_AMOUNT).to_string(), used.min(MAX_AMOUNT).to_string()]
            .into_iter()
            .chain(buckets.iter().map(|bucket| bucket.limit.to_string()))
            .collect(),
    }
}

/// Reads the reply to [`take`]. `None` is a reply of another form.
pub(crate) fn verdict(buckets: &[Bucket], amount: u64, reply: &[i64]) -> Option<Result<(), RateLimited>> {
    let (accepted, levels) = reply.split_first()?;
    if *accepted == 1 {
        return Some(Ok(()));
    }
    let rejections = buckets.iter().zip(levels.chunks_exact(2)).filter_map(|(bucket, level)| {
        let level = Gcra::with_level(u64::try_from(level[0]).ok()?, u64::try_from(level[1]).ok()?);
        rejection(bucket, amount.min(MAX_AMOUNT), level)
    });
    rejections.max_by_key(|rejected| rejected.retry_after).map(Err)
}

/// Computes the wait from the level, with the rule that the limiter of one process has.
fn rejection(bucket: &Bucket, amount: u64, level: Gcra) -> Option<RateLimited> {
    let now = std::time::Duration::ZERO;
    let retry_after = level.check(bucket.limit, amount, now).err()?;
    let remaining = level.remaining(bucket.limit, now);
    Some(RateLimited { scope: bucket.scope, unit: bucket.unit, limit: bucket.limit.get(), remaining, retry_after })
}
