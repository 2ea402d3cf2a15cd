//! The figures of a run, as a table or as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The target of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// No target.
    None,
    /// The minimum of the ratio to the compared server.
    RatioAtLeast(f64),
    /// The maximum of the ratio to the compared server.
    RatioAtMost(f64),
    /// The maximum of the gateway's own value.
    AtMost(f64),
}

/// One measured value.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The name of the measurement.
    pub name: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// The gateway's value.
    pub ours: f64,
    /// The name and the value of the compared server.
    pub beside: Option<(&'static str, f64)>,
    /// The median of the rounds' ratios.
    pub ratio: Option<f64>,
    /// The target.
    pub bound: Bound,
}

impl Figure {
    /// Creates a figure without a comparison.
    pub fn single(name: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self { name: name.into(), unit, ours, beside: None, ratio: None, bound: Bound::None }
    }

    /// Creates a figure that is compared with another server's, measured in the same rounds.
    pub fn compared(
        name: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        (other, theirs): (&'static str, &[f64]),
    ) -> Self {
        use crate::statistics::{median, ratio};
        Self {
            beside: Some((other, median(theirs))),
            ratio: Some(ratio(ours, theirs)),
            ..Self::single(name, unit, median(ours))
        }
    }

    /// Sets the target.
    pub fn with_bound(self, bound: Bound) -> Self {
        Self { bound, ..self }
    }

    fn target(&self) -> String {
        match self.bound {
            Bound::None => String::new(),
            Bound::RatioAtLeast(least) => format!(">= {least} x"),
            Bound::RatioAtMost(most) => format!("<= {most} x"),
            Bound::AtMost(most) => format!("<= {}", shown(most)),
        }
    }

    fn is_met(&self) -> Option<bool> {
        match self.bound {
            Bound::None => None,
            Bound::RatioAtLeast(least) => self.ratio.map(|ratio| ratio >= least),
            Bound::RatioAtMost(most) => self.ratio.map(|ratio| ratio <= most),
            Bound::AtMost(most) => Some(self.ours <= most),
        }
    }
}

/// The conditions of the measurement.
pub struct Conditions {
    /// The build profile of both binaries.
    pub profile: String,
    /// Rounds of each comparison.
    pub rounds: usize,
    /// Seconds of load per round and target.
    pub seconds: f64,
    /// True if the run was too short for reliable figures.
    pub quick: bool,
}

/// Returns the figures as a table.
pub fn table(conditions: &Conditions, figures: &[Figure]) -> String {
    let mut text = format!(
        "Profile {}, {} processors, {} rounds of {} s a target; medians of the rounds, ratios pair by pair.\n",
        conditions.profile,
        processors(),
        conditions.rounds,
        conditions.seconds
    );
    if conditions.quick {
        text.push_str("A quick run: it shows that everything works and is too short for figures to be quoted.\n");
    }
    let rows: Vec<[String; 7]> = figures.iter().map(row).collect();
    let head = ["", "unit", "Tollgate", "beside it", "ratio", "target", "met"].map(str::to_owned);
    let mut widths = [0; 7];
    for cells in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for cells in [&head].into_iter().chain(&rows) {
        for (cell, width) in cells.iter().zip(widths) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{cell:width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn row(figure: &Figure) -> [String; 7] {
    [
        figure.name.clone(),
        figure.unit.to_owned(),
        shown(figure.ours),
        figure.beside.map(|(name, value)| format!("{} ({name})", shown(value))).unwrap_or_default(),
        figure.ratio.map(|ratio| format!("{ratio:.2} x")).unwrap_or_default(),
        figure.target(),
        figure.is_met().map(|met| if met { "yes" } else { "NO" }.to_owned()).unwrap_or_default(),
    ]
}

/// Returns the figures as a JSON document.
pub fn document(conditions: &Conditions, figures: &[Figure]) -> Value {
    let figures: Vec<Value> = figures
        .iter()
        .map(|figure| {
            json!({
                "name": figure.name,
                "unit": figure.unit,
                "tollgate": figure.ours,
                "beside": figure.beside.map(|(name, value)| json!({ "name": name, "value": value })),
                "ratio": figure.ratio,
                "target": Some(figure.target()).filter(|target| !target.is_empty()),
                "met": figure.is_met(),
            })
        })
        .collect();
    json!({
        "profile": conditions.profile,
        "processors": processors(),
        "rounds": conditions.rounds,
        "seconds_per_round": conditions.seconds,
        "quick": conditions.quick,
        "figures": figures,
    })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Formats a value with at least three significant digits.
fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: fn() -> Conditions =
        || Conditions { profile: "release".to_owned(), rounds: 2, seconds: 1.0, quick: false };

    #[test]
    fn ratio_bound_is_reported_as_met_or_missed() {
        let slow = Figure::compared("x", "1/s", &[50.0, 60.0], ("bare", &[100.0, 100.0]));
        assert_eq!(slow.clone().with_bound(Bound::RatioAtLeast(0.6)).is_met(), Some(false));
        assert_eq!(slow.clone().with_bound(Bound::RatioAtLeast(0.55)).is_met(), Some(true));
        assert_eq!(slow.clone().with_bound(Bound::RatioAtMost(0.5)).is_met(), Some(false));
        assert_eq!(slow.clone().with_bound(Bound::RatioAtMost(0.6)).is_met(), Some(true));
        assert_eq!(slow.is_met(), None);
        let text = table(&CONDITIONS(), &[slow.with_bound(Bound::RatioAtLeast(0.6))]);
        let row = text.lines().last().unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), "x 1/s 55.0 100 (bare) 0.55 x >= 0.6 x NO");
    }

    #[test]
    fn value_bound_is_reported_as_met_or_missed() {
        let memory = Figure::single("idle", "MiB", 39.9).with_bound(Bound::AtMost(40.0));
        assert_eq!(memory.is_met(), Some(true));
        assert_eq!(Figure { ours: 40.1, ..memory }.is_met(), Some(false));
    }

    #[test]
    fn document_contains_figures_of_the_table() {
        let figure = Figure::compared("x", "1/s", &[50.0], ("bare", &[100.0])).with_bound(Bound::RatioAtLeast(0.8));
        let document = document(&CONDITIONS(), &[figure]);
        assert_eq!(document["figures"][0]["beside"]["value"], 100.0);
        assert_eq!(document["figures"][0]["met"], false);
        assert_eq!(document["profile"], "release");
    }
}
