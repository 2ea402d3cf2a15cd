//! The script that counts on the server.

use std::sync::Arc;

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
