//! Many small cases against one server, with a report of all failures.

use std::fmt::Write;

use anyhow::{Result, bail};

/// The failed cases.
#[derive(Debug, Default)]
pub struct Report {
    cases: usize,
    failures: Vec<String>,
}

impl Report {
    /// Records the outcome of a case.
    pub fn case<T>(&mut self, name: &str, outcome: Result<T>) {
        self.cases += 1;
        if let Err(error) = outcome {
            self.failures.push(format!("{name}: {error:#}"));
        }
    }

    /// Fails if a case failed, or if there was none.
    pub fn finish(self) -> Result<()> {
        if self.failures.is_empty() && self.cases > 0 {
            return Ok(());
        }
        let mut text = format!("{} of {} cases failed", self.failures.len(), self.cases);
        for failure in self.failures {
            write!(text, "\n  {failure}")?;
        }
        bail!(text)
    }
}
