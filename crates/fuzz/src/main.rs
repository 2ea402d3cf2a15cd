//! The search program; `cargo xtask fuzz` builds it with `--cfg fuzzing` and runs it. Without the flag the program only
//! checks one input.
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

/// Checks one input: `FUZZ_TARGET=NAME fuzz FILE`. Unlike the search, it needs no C++ compiler.
#[cfg(not(fuzzing))]
#[expect(clippy::disallowed_methods, reason = "a tool of the build, not the service")]
fn main() -> anyhow::Result<()> {
    use anyhow::Context as _;
    let target = std::env::var("FUZZ_TARGET").ok().and_then(|name| fuzz::targets::named(&name));
    let target = target.context("FUZZ_TARGET is no target")?;
    let file = std::env::args_os().nth(1).context("usage: FUZZ_TARGET=NAME fuzz FILE")?;
    (target.check)(&std::fs::read(file)?)
}
