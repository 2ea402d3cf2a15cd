//! The golden files of the outbound wires: client requests and provider answers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A case of a wire.
pub struct Case {
    /// A client's request, in canonical form.
    pub caller: String,
    /// Provider answers to it, valid and invalid.
    pub answers: Vec<Vec<u8>>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wires/tests/golden")
}

/// Reads every case of every wire, in a fixed order.
pub fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for wire in sorted(&folder())? {
        if !wire.is_dir() {
            continue;
        }
        for caller in sorted(&wire)? {
            let file = caller.to_string_lossy().into_owned();
            let Some(stem) = file.strip_suffix(".caller.json") else { continue };
            let mut answers = Vec::new();
            answers.extend(fs::read(format!("{stem}.response.json")).ok());
            if stem.ends_with("/all") {
                answers.extend(broken(&wire.join("broken.txt")));
            }
            cases.push(Case { caller: text(&caller)?, answers });
        }
    }
    Ok(cases)
}

/// Reads the bodies of `broken.txt`: blocks of three descriptive lines and a body.
fn broken(file: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split("\n\n").filter_map(|block| Some(block.splitn(4, '\n').nth(3)?.as_bytes().to_vec())).collect()
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn text(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}
