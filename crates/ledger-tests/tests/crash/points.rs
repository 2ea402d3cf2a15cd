//! The points at which the process dies.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// The points of this process.
struct Points {
    /// How often each was reached.
    reached: BTreeMap<&'static str, u32>,
    /// The name of the point to die at, and the time at which it is reached.
    planned: Option<(String, u32)>,
}

static POINTS: Mutex<Points> = Mutex::new(Points { reached: BTreeMap::new(), planned: None });

/// Plans the death at a point: `draw#3` is the third draw.
pub fn plan(point: Option<&str>) {
    let point = point.and_then(|point| point.rsplit_once('#'));
    POINTS.lock().unwrap_or_else(PoisonError::into_inner).planned =
        point.map(|(name, number)| (name.to_owned(), number.parse().unwrap()));
    adapters_journal::set_fault_hook(reach);
}

/// A point is reached.
pub fn reach(name: &'static str) {
    let mut points = POINTS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = points.reached.entry(name).or_default();
    *count += 1;
    let reached = *count;
    if points.planned.as_ref().is_some_and(|(planned, number)| planned == name && *number == reached) {
        std::process::abort();
    }
}

/// Writes down an event at once: it survives the process.
pub fn write_down(event: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("\nevent {event}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}

/// Writes down how often each point was reached.
pub fn report() {
    let points = POINTS.lock().unwrap_or_else(PoisonError::into_inner).reached.clone();
    for (name, count) in points {
        write_down(&format!("point {count} {name}"));
    }
}

/// The events that a child wrote down.
pub fn events(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(|line| line.strip_prefix("event "))
}

/// What [`report`] wrote.
pub fn read_report(output: &str) -> BTreeMap<String, u32> {
    let points = events(output).filter_map(|event| event.strip_prefix("point ")?.split_once(' '));
    points.map(|(count, name)| (name.to_owned(), count.parse().unwrap())).collect()
}
