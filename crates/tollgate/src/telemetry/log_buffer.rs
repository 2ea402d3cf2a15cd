//! Log lines on their way to standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// How long a line waits at most.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// How many bytes wait at most.
const FLUSH_AT: usize = 32 * 1024;

/// Where every line goes. A server that answers tens of thousands of requests a second would spend a good part of its
/// time on writing one line at a time, so while it serves, lines are written together: at once with any warning or
/// error, else after a tenth of a second or 32 KiB. At any other time, and on a terminal, each is written at once.
pub static LOG: LogBuffer = LogBuffer(Mutex::new(State { waiting: Vec::new(), collects: false }));

/// See [`LOG`].
pub struct LogBuffer(Mutex<State>);

struct State {
    waiting: Vec<u8>,
    collects: bool,
}

impl LogBuffer {
    /// Collects lines for as long as it is polled, and writes them regularly. Never ends by itself.
    pub async fn collect(&self) {
        if io::stderr().is_terminal() {
            return std::future::pending().await;
        }
        let _collecting = Collecting::begin(self);
        loop {
            tokio::time::sleep(FLUSH_EVERY).await;
            self.lock().flush();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Bytes are whole whatever happened to whoever held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn flush(&mut self) {
        // Nobody can be told that the log cannot be written.
        drop(io::stderr().write_all(&self.waiting));
        self.waiting.clear();
    }
}

/// While it lives, lines are collected.
struct Collecting<'a>(&'a LogBuffer);

impl<'a> Collecting<'a> {
    fn begin(buffer: &'a LogBuffer) -> Self {
        buffer.lock().collects = true;
        Self(buffer)
    }
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.collects = false;
        state.flush();
    }
}

/// Takes the lines of one event.
pub struct LineWriter<'a> {
    buffer: &'a LogBuffer,
    urgent: bool,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.buffer.lock();
        state.waiting.extend_from_slice(bytes);
        if self.urgent || !state.collects || state.waiting.len() >= FLUSH_AT {
            state.flush();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for &'static LogBuffer {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { buffer: self, urgent: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        LineWriter { buffer: self, urgent: *metadata.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> LogBuffer {
        LogBuffer(Mutex::new(State { waiting: Vec::new(), collects: false }))
    }

    fn write(buffer: &LogBuffer, urgent: bool, line: &str) -> usize {
        LineWriter { buffer, urgent }.write_all(line.as_bytes()).unwrap();
        buffer.lock().waiting.len()
    }

    #[test]
    fn lines_wait_only_while_they_are_collected() {
        let buffer = buffer();
        assert_eq!(write(&buffer, false, "."), 0);
        let collecting = Collecting::begin(&buffer);
        assert_eq!(write(&buffer, false, "."), 1);
        drop(collecting);
        assert_eq!(buffer.lock().waiting.len(), 0, "what waited was written");
        assert_eq!(write(&buffer, false, "."), 0);
    }

    #[test]
    fn a_warning_takes_along_what_waits_and_much_does_not_wait() {
        let buffer = buffer();
        let _collecting = Collecting::begin(&buffer);
        assert_eq!(write(&buffer, false, "."), 1);
        assert_eq!(write(&buffer, true, "!"), 0);
        assert_eq!(write(&buffer, false, &".".repeat(FLUSH_AT)), 0);
    }
}
