//! A library that shifts the calendar clock of one process.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The variable with the difference in seconds.
pub const OFFSET: &str = "CHAOS_CLOCK_OFFSET_SECONDS";
const SOURCE: &str = include_str!("skew.c");

/// Compiles the library with the machine's C compiler, which the build of the binary needs, too.
pub fn compile(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("skew.c"), folder.join("skew.so"));
    std::fs::write(&source, SOURCE)?;
    let output = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    let output = output.context("a skewed clock needs a C compiler, `cc`")?;
    ensure!(output.status.success(), "skew.c: {}", String::from_utf8_lossy(&output.stderr));
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_shifts_the_clock_of_a_process() {
        let folder = tempfile::TempDir::new().unwrap();
        let library = compile(folder.path()).unwrap();
        let seconds = |offset: &str| {
            let mut date = Command::new("date");
            let output = date.arg("+%s").env("LD_PRELOAD", &library).env(OFFSET, offset).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        assert!((7_190..=7_210).contains(&(seconds("7200") - seconds("0"))));
        assert!((-130..=-110).contains(&(seconds("-120") - seconds("0"))));
    }
}
