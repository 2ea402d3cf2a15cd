//! The memory and the processor time of the replicas, and the calls at the provider.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tollgate_tests::Upstream;

use crate::driver::key_of;
use crate::history::Millis;
use crate::recorder::Recorder;

const PERIOD: Duration = Duration::from_millis(250);
/// A tick of the processor time on all common Linux platforms.
const TICK: Duration = Duration::from_millis(10);

/// Reads `/proc` while it exists.
pub struct Probe {
    processes: Arc<[AtomicU32]>,
    peaks: Arc<Mutex<Peaks>>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Peaks {
    memory_kib: u64,
    delay: Duration,
    longest_delay: Duration,
    used: Vec<Duration>,
    since: Option<Instant>,
}

impl Probe {
    /// Starts without processes.
    pub fn start(replicas: usize) -> Self {
        let processes: Arc<[AtomicU32]> = (0..replicas).map(|_| AtomicU32::new(0)).collect();
        let peaks = Arc::new(Mutex::new(Peaks { used: vec![Duration::ZERO; replicas], ..Peaks::default() }));
        let mut task = JoinSet::new();
        let (watched, shared) = (Arc::clone(&processes), Arc::clone(&peaks));
        task.spawn(async move {
            let mut last = vec![(0, Duration::ZERO); watched.len()];
            loop {
                for (index, (process, last)) in watched.iter().zip(&mut last).enumerate() {
                    let process = process.load(Ordering::Relaxed);
                    if let Some((memory_kib, used)) = read(process) {
                        let before = if last.0 == process { last.1 } else { Duration::ZERO };
                        let mut peaks = shared.lock().unwrap_or_else(PoisonError::into_inner);
                        peaks.memory_kib = peaks.memory_kib.max(memory_kib);
                        peaks.used[index] += used.saturating_sub(before);
                        *last = (process, used);
                    }
                }
                let began = Instant::now();
                sleep(PERIOD).await;
                let mut peaks = shared.lock().unwrap_or_else(PoisonError::into_inner);
                peaks.delay = peaks.delay.max(began.elapsed().saturating_sub(PERIOD));
                peaks.longest_delay = peaks.longest_delay.max(peaks.delay);
            }
        });
        Self { processes, peaks, _task: task }
    }

    /// Returns the longest time that this program waited for a processor since the start.
    pub fn longest_delay(&self) -> Millis {
        let peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        Millis::try_from(peaks.longest_delay.as_millis()).unwrap_or(Millis::MAX)
    }

    /// Sets the process of a replica.
    pub fn watch(&self, replica: usize, process: Option<u32>) {
        if let Some(known) = self.processes.get(replica) {
            known.store(process.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Returns the largest memory in KiB, the largest processor time in thousandths, and the longest time that this
    /// program waited for a processor, all since the last call.
    pub fn take(&self) -> (u64, u64, Millis) {
        let mut peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = peaks.since.map_or(Duration::ZERO, |since| since.elapsed());
        let used = peaks.used.iter().copied().max().unwrap_or_default();
        let permille = (used.as_millis() * 1_000).checked_div(elapsed.as_millis()).unwrap_or(0);
        let (memory_kib, delay) = (peaks.memory_kib, peaks.delay);
        let used = vec![Duration::ZERO; peaks.used.len()];
        let longest_delay = peaks.longest_delay;
        *peaks = Peaks { used, since: Some(Instant::now()), longest_delay, ..Peaks::default() };
        let whole = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        (memory_kib, whole(permille), whole(delay.as_millis()))
    }
}

/// Returns the resident memory in KiB and the processor time of a process.
fn read(process: u32) -> Option<(u64, Duration)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let memory_kib = line.trim().trim_end_matches(" kB").parse().ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some((memory_kib, TICK * ticks(11)?.checked_add(ticks(12)?)?))
}

/// Counts the requests at the provider by key, and forgets them. A request whose connection ended instead of a response
/// is not billed.
pub fn count_provider_calls(upstream: &Upstream, recorder: &Recorder) {
    let requests = upstream.take_requests();
    let billed = requests.iter().filter(|request| !request.is_lost);
    recorder.add_provider_calls(billed.filter_map(|request| key_of(&request.text())));
}

/// Returns the 99th percentile of times; zero without any.
pub fn p99(mut times: Vec<Millis>) -> Millis {
    times.sort_unstable();
    times.get(times.len() * 99 / 100).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_this_process_are_readable() {
        let (memory_kib, used) = read(std::process::id()).unwrap();
        assert!(memory_kib > 100 && used < Duration::from_hours(1));
        assert!(read(0).is_none());
    }

    #[test]
    fn p99_is_the_largest_of_few_times() {
        assert_eq!(p99(vec![3, 1, 2]), 3);
        assert_eq!(p99((1..=1_000).collect()), 991);
        assert_eq!(p99(Vec::new()), 0);
    }
}
