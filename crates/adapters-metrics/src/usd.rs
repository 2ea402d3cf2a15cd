//! Counters of US dollars: whole picodollars inside, exact decimals in the exposition.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::money::Usd;

/// Picodollars in a dollar.
const DOLLAR: u64 = 1_000_000_000_000;

/// A sum of money that only grows. The registry's counters would round it to a float.
#[derive(Debug, Default)]
pub(crate) struct UsdCounter(AtomicU64);

impl UsdCounter {
    pub(crate) fn add(&self, amount: Usd) {
        self.0.fetch_add(amount.pico().unsigned_abs(), Ordering::Relaxed);
    }

    /// Returns the sum in picodollars.
    pub(crate) fn pico(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Formats picodollars as a decimal number of dollars, exact.
fn decimal(pico: u64) -> String {
    let (whole, rest) = (pico / DOLLAR, pico % DOLLAR);
    let decimal = format!("{whole}.{rest:012}");
    let digits = decimal.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
}

/// Writes a family of counters with their sums in picodollars. `name` ends with the unit; providers
/// are slugs, which need no escapes.
pub(crate) fn write_counters<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    sums: impl IntoIterator<Item = (Option<&'a str>, u64)>,
) {
    // Writing to a string does not fail.
    let _ =
        writeln!(text, "# HELP tollgate_{name} {help}.\n# TYPE tollgate_{name} counter\n# UNIT tollgate_{name} usd");
    for (provider, pico) in sums {
        let labels = provider.map(|slug| format!("{{provider=\"{slug}\"}}")).unwrap_or_default();
        let _ = writeln!(text, "tollgate_{name}_total{labels} {}", decimal(pico));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_decimals() {
        let counter = UsdCounter::default();
        assert_eq!(decimal(counter.pico()), "0.0");
        for (pico, expected) in [
            (1, "0.000000000001"),
            (18_017_999, "0.000018018"),
            (2_999_981_982_000, "3.0"),
            (i64::MAX, "9223375.036854775807"),
        ] {
            counter.add(Usd::from_pico(pico));
            assert_eq!(decimal(counter.pico()), expected);
        }
    }
}
