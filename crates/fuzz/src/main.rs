//! The search program; `cargo xtask fuzz` builds and runs it. With `--cfg fuzzing` it is a coverage-guided libFuzzer
//! program; otherwise it searches by mutation alone.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod guided {
    use std::path::Path;
    use std::sync::OnceLock;

    use fuzz::targets::{Target, named};
    use fuzz::{mutation, seeds};

    static TARGET: OnceLock<Target> = OnceLock::new();

    /// Reads the target's name and the folder for its seeds from the environment: libFuzzer owns the arguments.
    #[expect(clippy::disallowed_methods, reason = "a tool of the build, not the service")]
    fn begin() {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        if name == "list" {
            std::process::exit(i32::from(fuzz::targets::list().is_err()));
        }
        let target = named(&name);
        assert!(target.is_some(), "FUZZ_TARGET is no target: {name}");
        let Some(target) = target else { return };
        if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
            let written = seeds::write(&target, Path::new(&folder));
            assert!(written.is_ok(), "{written:?}");
            std::process::exit(0);
        }
        let _ = TARGET.set(target);
    }

    libfuzzer_sys::fuzz_target!(init: begin(), |input: &[u8]| {
        if let Some(target) = TARGET.get() {
            let fault = (target.check)(input).err().map(|fault| format!("{fault:#}"));
            assert!(fault.is_none(), "{}: {}", target.name, fault.unwrap_or_default());
        }
    });

    libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
        // Alternates between libFuzzer's byte mutations and our JSON mutations.
        if seed % 4 != 0 && size > 0 && TARGET.get().is_some_and(Target::reads_text) {
            let changed = mutation::mutated(&data[..size], u64::from(seed));
            if changed.len() <= max_size {
                data[..changed.len()].copy_from_slice(&changed);
                return changed.len();
            }
        }
        libfuzzer_sys::fuzzer_mutate(data, size, max_size)
    });
}

/// Runs one of: `fuzz FOLDER SECONDS [SEED]` searches and writes failing inputs into the folder; `fuzz FILE` checks one
/// input; `list` prints all targets. The variable `FUZZ_TARGET` names the target.
#[cfg(not(fuzzing))]
fn main() -> anyhow::Result<()> {
    use anyhow::{Context as _, bail};
    let name = name();
    if name == "list" {
        return Ok(fuzz::targets::list()?);
    }
    let target = fuzz::targets::named(&name).context("FUZZ_TARGET is no target")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file] => (target.check)(&std::fs::read(file)?),
        [folder, seconds, seed @ ..] if seed.len() <= 1 => {
            let seed = seed.first().map_or(Ok(u64::from(std::process::id())), |seed| seed.parse())?;
            let seconds = std::time::Duration::from_secs(seconds.parse()?);
            let began = now();
            let goes_on = |tried: u64| !tried.is_multiple_of(64) || began.elapsed() < seconds;
            match fuzz::search::run(&target, folder.as_ref(), seed, goes_on)? {
                None => Ok(()),
                Some(found) => bail!("{}: {}: {}", target.name, found.file.display(), found.fault),
            }
        }
        _ => bail!("FUZZ_TARGET=NAME fuzz FOLDER SECONDS [SEED], or FUZZ_TARGET=NAME fuzz FILE"),
    }
}

#[cfg(not(fuzzing))]
#[expect(clippy::disallowed_methods, reason = "a tool of the build, not the service")]
fn name() -> String {
    std::env::var("FUZZ_TARGET").unwrap_or_default()
}

#[cfg(not(fuzzing))]
#[expect(clippy::disallowed_methods, reason = "a tool of the build, not the service: there is no clock port here")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
