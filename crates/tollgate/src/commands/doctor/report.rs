//! The report of `doctor`.

/// The result of a check.
use crate::commands::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No problem.
    Ok,
    /// A possible problem.
    Warning,
    /// A problem.
    Broken,
}

/// A check with its result.
#[derive(Debug, Serialize)]
pub struct Check {
    /// The name of the checked thing.
    pub name: String,
    /// The result.
    pub status: Status,
    /// A sentence on the result.
    pub detail: String,
}

impl Check {
    /// Creates a check with a result.
    pub fn new(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status, detail: detail.into() }
    }

    /// Creates a check from a result; an error is shown with its causes.
    pub fn of<E: Into<anyhow::Error>>(name: impl Into<String>, result: Result<String, E>) -> Self {
        match result {
            Ok(detail) => Self::new(name, Status::Ok, detail),
            Err(error) => Self::new(name, Status::Broken, format!("{:#}", error.into())),
        }
    }
}

/// All checks with the overall result.
#[derive(Debug, Serialize)]
pub struct Report {
    /// False if any check failed.
    pub ok: bool,
    /// The checks in their order.
    pub checks: Vec<Check>,
}

impl Report {
    /// Creates a report of checks.
    pub fn new(checks: Vec<Check>) -> Self {
        Self { ok: checks.iter().all(|check| check.status != Status::Broken), checks }
    }

    /// Returns the text for a terminal.
    pub fn text(&self) -> String {
        let word = |status: Status| match status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Broken => "error",
        };
        let row = |check: &Check| [word(check.status).to_owned(), check.name.clone(), check.detail.clone()];
        table(["STATE", "CHECK", "DETAIL"], &self.checks.iter().map(row).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_ok_unless_a_check_is_broken() {
        let ok = || Check::of("a", Ok::<_, std::io::Error>("fine".to_owned()));
        let warning = || Check::new("b", Status::Warning, "hm");
        assert!(Report::new(vec![ok(), warning()]).ok);
        let broken = Check::of("c", Err::<String, _>(anyhow::anyhow!("inner").context("outer")));
        assert_eq!(broken.detail, "outer: inner");
        let report = Report::new(vec![ok(), broken, warning()]);
        assert!(!report.ok && report.text().contains("error"));
    }
}
