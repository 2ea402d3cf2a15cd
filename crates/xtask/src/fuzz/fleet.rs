//! Concurrent searches of several targets.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::engine::{Bounds, Engine};
use crate::{step, workspace};

/// The name of the target with the planted fault.
pub(super) const PLANTED: &str = "planted";

/// Returns the folder for all output of the searches.
fn folder() -> PathBuf {
    workspace::target().join("fuzz-work")
}

/// Returns the folder for failing inputs.
pub(super) fn found_folder() -> PathBuf {
    folder().join("found")
}

/// Creates a folder; the error names it.
fn create_folder(folder: PathBuf) -> Result<PathBuf> {
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    Ok(folder)
}

/// A running search.
pub struct Search {
    target: String,
    child: Child,
    log: PathBuf,
    found: PathBuf,
}

/// A finished search.
pub struct Ended {
    /// True if no failing input was found.
    pub held: bool,
    /// The complete output.
    pub log: String,
    target: String,
    found: PathBuf,
}

impl Search {
    /// Starts a search from fresh seeds and, unless it must be repeatable, from the corpus of earlier searches.
    pub fn begin(engine: &Engine, target: &str, bounds: Bounds) -> Result<Self> {
        let own = |kind: &str| folder().join(kind).join(target);
        // A repeatable search has its own folder and keeps the corpus of the other searches.
        let collected = if bounds.seed.is_some() { "repeatable" } else { "corpus" };
        for stale in ["seeds", "found"] {
            let _ = fs::remove_dir_all(own(stale));
        }
        let planted = target == PLANTED;
        if planted || bounds.seed.is_some() {
            // The corpus of an earlier run would contain the planted fault.
            let _ = fs::remove_dir_all(own(collected));
        }
        let (corpus, seeds, found) =
            (create_folder(own(collected))?, create_folder(own("seeds"))?, create_folder(own("found"))?);
        engine.write_seeds(target, &seeds)?;
        let log = create_folder(folder().join("log"))?.join(format!("{target}.log"));
        let said = File::create(&log)?;
        let mut command = engine.search(target, [&corpus, &seeds, &found], bounds);
        command.stdout(Stdio::from(said.try_clone()?)).stderr(said);
        let child = command.spawn().with_context(|| format!("the search of {target} does not start"))?;
        Ok(Self { target: target.to_owned(), child, log, found })
    }

    /// Waits for the end of the search.
    pub fn wait(mut self) -> Result<Ended> {
        self.child.wait()?;
        self.ended()?.context("it has ended")
    }

    /// Returns the result if the search has ended.
    fn ended(&mut self) -> Result<Option<Ended>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        let log = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        let (target, found) = (self.target.clone(), self.found.clone());
        Ok(Some(Ended { held: status.success(), log, target, found }))
    }
}

impl Ended {
    /// Returns the last lines of the output.
    pub fn tail(&self) -> String {
        let lines: Vec<&str> = self.log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Returns the violated property: the line after the panic's location, or the last lines of the output.
    fn fault(&self) -> String {
        let mut lines = self.log.lines().skip_while(|line| !line.contains("panicked at"));
        lines.next().and(lines.next()).map_or_else(|| self.tail(), str::to_owned)
    }

    /// Returns the number of executions that libFuzzer reports.
    fn tried(&self) -> Option<&str> {
        self.log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")).map(str::trim)
    }

    fn report(&self, engine: &Engine) {
        if self.held {
            let tried = self.tried().map(|count| format!(", {count} inputs")).unwrap_or_default();
            return step::announce(&format!("{}: holds{tried}", self.target));
        }
        step::announce(&format!("{}: SOMETHING DOES NOT HOLD\n{}", self.target, self.fault()));
        for file in files(&self.found) {
            match fs::read(&file) {
                Ok(input) => step::announce(&format!("the input, escaped: {}", input.escape_ascii())),
                Err(error) => step::announce(&format!("the input cannot be read: {error}")),
            }
            step::announce(&format!("to try it again: {}", engine.reproduction(&self.target, &file)));
        }
    }
}

/// Searches all targets, at most `jobs` at a time. Returns the names of the targets with failures.
pub fn search(engine: &Engine, targets: &[String], jobs: usize, bounds: Bounds) -> Result<Vec<String>> {
    create_folder(found_folder())?;
    let mut waiting: VecDeque<&String> = targets.iter().collect();
    let mut running: Vec<Search> = Vec::new();
    let mut failed = Vec::new();
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < jobs
            && let Some(target) = waiting.pop_front()
        {
            running.push(Search::begin(engine, target, bounds)?);
        }
        std::thread::sleep(Duration::from_millis(100));
        let mut going = Vec::new();
        for mut search in running {
            match search.ended()? {
                None => going.push(search),
                Some(ended) => {
                    ended.report(engine);
                    if !ended.held {
                        failed.push(ended.target);
                    }
                }
            }
        }
        running = going;
    }
    Ok(failed)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_parses_fault_and_count_from_log() {
        let log = format!("{}stat::number_of_executed_units: 1234\nlast", "line\n".repeat(40));
        let ended = Ended { held: true, log, target: "t".to_owned(), found: "/none".into() };
        assert_eq!(ended.tried(), Some("1234"));
        assert_eq!(ended.tail().lines().count(), 30);
        assert!(ended.tail().ends_with("last") && files(&ended.found).is_empty());
        assert_eq!(ended.fault(), ended.tail());
        let log = "a line\nthread 't' panicked at main.rs:1:2:\nthe fault\nstack backtrace:\n".to_owned();
        assert_eq!(Ended { log, ..ended }.fault(), "the fault");
    }
}
