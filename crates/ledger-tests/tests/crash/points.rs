//! The points at which the process can crash.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// The crash points of this process.
struct Points {
    /// The number of times that each point was reached.
    reached: BTreeMap<&'static str, u32>,
    /// The name and the occurrence of the point to crash at.
    planned: Option<(String, u32)>,
}

static POINTS: Mutex<Points> = Mutex::new(Points { reached: BTreeMap::new(), planned: None });

/// Plans the crash at a point: `draw#3` is the third draw.
pub fn plan(point: Option<&str>) {
    let point = point.and_then(|point| point.rsplit_once('#'));
    POINTS.lock().unwrap_or_else(PoisonError::into_inner).planned =
        point.map(|(name, number)| (name.to_owned(), number.parse().unwrap()));
    adapters_journal::set_fault_hook(reach);
}

/// Counts a point, and crashes the process if it is the planned one.
pub fn reach(name: &'static str) {
    let mut points = POINTS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = points.reached.entry(name).or_default();
    *count += 1;
    let reached = *count;
    if points.planned.as_ref().is_some_and(|(planned, number)| planned == name && *number == reached) {
        std::process::abort();
    }
}

/// Reports an event immediately, so that the report survives the crash.
pub fn write_down(event: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("\nevent {event}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

/// Reports how often each point was reached.
pub fn report() {
    let points = POINTS.lock().unwrap_or_else(PoisonError::into_inner).reached.clone();
    for (name, count) in points {
        write_down(&format!("point {count} {name}"));
    }
}

/// Returns the events that a child reported.
pub fn events(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_prefix("event "))
}

/// Parses the output of [`report`].
pub fn read_report(output: &str) -> BTreeMap<String, u32> {
    let points = events(output).filter_map(|event| event.strip_prefix("point ")?.split_once(' '));
    points.map(|(count, name)| (name.to_owned(), count.parse().unwrap())).collect()
}
