//! The buffer of log lines for standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use domain::ids::RequestId;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The maximum time that a line is buffered.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// The buffered size that triggers a write, in bytes.
const FLUSH_AT: usize = 32 * 1024;
/// The capacity that an empty buffer keeps, in bytes.
const KEPT_CAPACITY: usize = 256 * 1024;
/// The maximum size of buffered lines, in bytes.
const CAPACITY: usize = 4 << 20;
/// The delay before a write to a blocked descriptor is repeated.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// The process's log buffer. Commands write each line immediately; a server starts the writer thread first.
pub static LOG: LogBuffer = LogBuffer::new();

/// A bounded buffer between the threads that log and the thread that writes to standard error.
///
/// `tracing_appender` has a writer thread too. It bounds lines and not bytes, keeps no room for warnings, wakes its thread
/// for every line, and cannot be flushed within a time.
///
/// A blocked reader of standard error (a full pipe) blocks the writer thread only. Lines that exceed the capacity are
/// dropped and counted.
pub struct LogBuffer {
    state: Mutex<State>,
    /// Wakes the writer thread.
    changed: Condvar,
    /// Wakes threads that wait in [`LogBuffer::flush`].
    written: Condvar,
}

struct State {
    waiting: Vec<u8>,
    /// Bytes that the writer thread is writing.
    writing: usize,
    /// The capacity in bytes; `None` without a writer thread, when each line is written immediately.
    capacity: Option<usize>,
    writer: Option<ThreadId>,
    /// True if lines that are not urgent are batched.
    batches: bool,
    /// True if the buffered bytes must be written now.
    is_due: bool,
    is_closed: bool,
    dropped: u64,
    /// The number of dropped lines that the log has reported.
    reported: u64,
}

impl LogBuffer {
    const fn new() -> Self {
        let state = State {
            waiting: Vec::new(),
            writing: 0,
            capacity: None,
            writer: None,
            batches: false,
            is_due: false,
            is_closed: false,
            dropped: 0,
            reported: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), written: Condvar::new() }
    }

    /// Starts the writer thread: logging threads no longer wait for standard error.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_writer(&'static self) -> io::Result<()> {
        let report = |count| tracing::warn!(count, "log lines dropped");
        let writer = thread::Builder::new().name("log".to_owned());
        writer.spawn(move || self.write_until_closed(io::stderr(), report))?;
        self.lock().capacity = Some(CAPACITY);
        Ok(())
    }

    /// Batches lines below a warning, unless standard error is a terminal.
    pub fn start_batching(&self) {
        self.lock().batches = !io::stderr().is_terminal();
    }

    /// Waits until all lines are written, at most `within`. Returns false if some are not.
    pub fn flush(&self, within: Duration) -> bool {
        let mut state = self.lock();
        if state.capacity.is_none() {
            return true;
        }
        state.is_due = true;
        self.changed.notify_one();
        let is_pending = |state: &mut State| !state.waiting.is_empty() || state.writing > 0;
        let (mut state, _) =
            self.written.wait_timeout_while(state, within, is_pending).unwrap_or_else(PoisonError::into_inner);
        !is_pending(&mut state)
    }

    /// Returns the number of lines dropped since the start.
    pub fn dropped_lines(&self) -> u64 {
        self.lock().dropped
    }

    /// Writes a line that is not a log event, after the buffered ones.
    pub fn write_line(&self, text: &str) {
        self.write(format!("{text}\n").as_bytes(), true);
    }

    /// Writes a whole line.
    pub(super) fn write(&self, line: &[u8], is_urgent: bool) {
        let mut state = self.lock();
        let Some(capacity) = state.capacity else {
            // A log that cannot be written has no other place to report that.
            drop(io::stderr().write_all(line));
            return;
        };
        // The last eighth is reserved for warnings and errors.
        let room = if is_urgent { capacity } else { capacity - capacity / 8 };
        let held = state.waiting.len() + state.writing;
        if held.saturating_add(line.len()) > room && state.writer != Some(thread::current().id()) {
            state.dropped += 1;
            return;
        }
        let was_asleep = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        let is_due = is_urgent || !state.batches || state.waiting.len() >= FLUSH_AT;
        let became_due = is_due && !state.is_due;
        state.is_due |= is_due;
        if was_asleep || became_due {
            self.changed.notify_one();
        }
    }

    /// Writes buffered lines to `out` until the buffer is closed. Calls `report` with a number of dropped lines after a
    /// successful write.
    fn write_until_closed(&self, mut out: impl Write, report: impl Fn(u64)) {
        self.lock().writer = Some(thread::current().id());
        let mut lines = Vec::new();
        while self.take(&mut lines) {
            let lost = write_whole(&mut out, &lines);
            let unreported = {
                let mut state = self.lock();
                state.writing = 0;
                state.dropped += lost;
                let unreported = if lost == 0 { state.dropped - state.reported } else { 0 };
                state.reported += unreported;
                unreported
            };
            if unreported > 0 {
                report(unreported);
            }
            self.written.notify_all();
            lines.clear();
            lines.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Waits for lines and swaps them into `lines`; returns false if the buffer is closed and empty.
    fn take(&self, lines: &mut Vec<u8>) -> bool {
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() {
            return false;
        }
        let may_wait = |state: &mut State| !state.is_due && !state.is_closed;
        if may_wait(&mut state) {
            let waited = self.changed.wait_timeout_while(state, FLUSH_EVERY, may_wait);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.is_due = false;
        std::mem::swap(&mut state.waiting, lines);
        state.writing = lines.len();
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every state change is atomic, so a panic elsewhere leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all bytes; returns the number of lines that could not be written.
fn write_whole(out: &mut impl Write, mut bytes: &[u8]) -> u64 {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => break,
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(RETRY_AFTER),
            Err(_) => break,
        }
    }
    bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

/// The writer of one event's line. Adds the id of the request that the event belongs to.
pub struct LineWriter<'a> {
    buffer: &'a LogBuffer,
    is_urgent: bool,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match api_actix::current_request_id() {
            Some(id) => self.buffer.write(&with_request_id(line, &id), self.is_urgent),
            None => self.buffer.write(line, self.is_urgent),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the line with the id: as the first member of a JSON object, or at the end of a text.
fn with_request_id(line: &[u8], id: &RequestId) -> Vec<u8> {
    match line.strip_prefix(b"{") {
        Some(members) => [format!("{{\"request.id\":\"{id}\",").as_bytes(), members].concat(),
        None => [line.strip_suffix(b"\n").unwrap_or(line), format!(" request.id={id}\n").as_bytes()].concat(),
    }
}

impl<'a> MakeWriter<'a> for &'static LogBuffer {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { buffer: self, is_urgent: true }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> LineWriter<'a> {
        LineWriter { buffer: self, is_urgent: *metadata.level() <= Level::WARN }
    }
}

#[cfg(test)]
mod tests;
