//! What was found.

use serde::Serialize;

use crate::output::table;

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Warning,
    /// Broken.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What.
    pub name: String,
    /// How it stands.
    pub status: Status,
    /// In a sentence.
    pub detail: String,
}

impl Check {
    /// A check with a result.
    pub fn new(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status, detail: detail.into() }
    }

    /// A check whose error, with its causes, is the result.
    pub fn of<E: Into<anyhow::Error>>(name: impl Into<String>, result: Result<String, E>) -> Self {
        match result {
            Ok(detail) => Self::new(name, Status::Ok, detail),
            Err(error) => Self::new(name, Status::Broken, format!("{:#}", error.into())),
        }
    }
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
pub struct Report {
    /// False where anything is broken.
    pub ok: bool,
    /// In the order in which it was looked at.
    pub checks: Vec<Check>,
}

impl Report {
    /// Of these checks.
    pub fn new(checks: Vec<Check>) -> Self {
        Self { ok: checks.iter().all(|check| check.status != Status::Broken), checks }
    }

    /// For reading.
    pub fn text(&self) -> String {
        let word = |status: Status| match status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Broken => "BROKEN",
        };
        let row = |check: &Check| [word(check.status).to_owned(), check.name.clone(), check.detail.clone()];
        table(["STATE", "WHAT", "DETAIL"], &self.checks.iter().map(row).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_broken_spoils_the_report() {
        let ok = || Check::of("a", Ok::<_, std::io::Error>("fine".to_owned()));
        let warning = || Check::new("b", Status::Warning, "hm");
        assert!(Report::new(vec![ok(), warning()]).ok);
        let broken = Check::of("c", Err::<String, _>(anyhow::anyhow!("inner").context("outer")));
        assert_eq!(broken.detail, "outer: inner");
        let report = Report::new(vec![ok(), broken, warning()]);
        assert!(!report.ok && report.text().contains("BROKEN"));
    }
}
