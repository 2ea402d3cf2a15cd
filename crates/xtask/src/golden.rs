//! `cargo xtask golden`: writes the golden files from the current behaviour. A person reviews and commits the
//! difference; `cargo xtask test` compares and never writes.

use anyhow::Result;

use crate::step;

/// The variable that makes tests write their golden files instead of comparing.
pub const WRITE: &str = "TOLLGATE_WRITE_GOLDEN";

/// The tests with golden files: package, target, filter.
const WRITERS: [(&str, &[&str], &str); 6] = [
    ("adapters-broadcast", &["--lib"], "otlp"),
    ("adapters-storage", &["--test", "schema_snapshot"], ""),
    ("api-actix", &["--lib"], "openapi"),
    ("api-actix", &["--test", "wires"], "golden"),
    ("wires", &["--test", "client"], ""),
    ("wires", &["--test", "provider"], "golden"),
];

/// Runs the tests with golden files in the mode that writes them.
pub fn run() -> Result<()> {
    for (package, target, filter) in WRITERS {
        let arguments = [&["test", "--package", package, "--all-features"][..], target, &["--", filter]].concat();
        let mut command = step::cargo(&arguments);
        command.env(WRITE, "1").env("INSTA_UPDATE", "always").env("INSTA_FORCE_PASS", "1");
        step::run(&mut command)?;
    }
    step::announce("written: read `git diff`, then run `cargo xtask test`");
    Ok(())
}
