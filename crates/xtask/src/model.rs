//! `cargo xtask model`: checks the ledger with a model checker that explores thread interleavings.

use anyhow::Result;

use crate::{step, workspace};

/// Builds with the checker's locks, in a separate target folder, and runs the models.
pub fn run() -> Result<()> {
    let mut command = step::cargo(&["test", "--package", "domain", "--test", "model"]);
    command.env("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}shuttle");
    command.env("CARGO_TARGET_DIR", workspace::target().join("model"));
    step::run(&mut command)?;
    Ok(())
}
