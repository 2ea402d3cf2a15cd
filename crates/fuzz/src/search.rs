//! The unguided search: seeds are mutated repeatedly. It finds less than the guided search and needs only Rust.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::mutation::{mutated, mutated_bytes};
use crate::random::Random;
use crate::seeds;
use crate::targets::Target;

/// The result of a search that found a failure.
#[derive(Debug)]
pub struct Found {
    /// The file with the input.
    pub file: PathBuf,
    /// The violated property.
    pub fault: String,
}

/// The maximum length of an input in bytes.
const MAX_BYTES: usize = 16 << 10;
/// The maximum number of inputs that are mutated further.
const MAX_KEPT: usize = 4096;

/// Searches while `goes_on`, called with the number of inputs so far, returns true. Writes a failing input into
/// `folder`, also if the target panics.
///
/// # Errors
/// Unreadable seeds or unwritable inputs.
pub fn run(target: &Target, folder: &Path, seed: u64, goes_on: impl Fn(u64) -> bool) -> Result<Option<Found>> {
    std::fs::create_dir_all(folder)?;
    let trying = folder.join(format!("{}-trying", target.name));
    let mut random = Random::new(seed);
    let mut kept = seeds::of(target)?;
    let mut tried = 0;
    while goes_on(tried) {
        tried += 1;
        let from = random.pick(&kept).context("no seeds")?;
        let input = if target.reads_text() { mutated(from, random.next()) } else { mutated_bytes(from, random.next()) };
        if input.len() > MAX_BYTES {
            continue;
        }
        let outcome = std::panic::catch_unwind(|| (target.check)(&input));
        let fault = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(format!("{fault:#}")),
            Err(_) => Some("it panicked".to_owned()),
        };
        if let Some(fault) = fault {
            std::fs::write(&trying, &input)?;
            return Ok(Some(Found { file: trying, fault }));
        }
        let place = random.below(MAX_KEPT);
        if kept.len() < MAX_KEPT {
            kept.push(input);
        } else if random.below(4) == 0 {
            kept[place] = input;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{PLANTED, TARGETS};

    #[test]
    fn run_finds_planted_fault() {
        let folder = std::env::temp_dir().join(format!("tollgate-fuzz-{}", std::process::id()));
        let found = run(&PLANTED, &folder, 1, |tried| tried < 20_000).unwrap().unwrap();
        assert!(found.fault.contains("planted"), "{found:?}");
        let input = std::fs::read(&found.file).unwrap();
        assert!((PLANTED.check)(&input).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_target_passes_short_search() {
        for target in TARGETS {
            let folder = std::env::temp_dir().join(format!("tollgate-fuzz-{}-{}", target.name, std::process::id()));
            let found = run(target, &folder, 2, |tried| tried < 300).unwrap();
            assert!(found.is_none(), "{}: {found:?}", target.name);
            std::fs::remove_dir_all(folder).unwrap();
        }
    }
}
