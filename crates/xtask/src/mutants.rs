//! `cargo xtask mutants`: runs cargo-mutants on the modules whose defects cost most.
//!
//! Run by hand, as each mutant needs a build.

use anyhow::{Result, bail};
use clap::Args;

use crate::{step, workspace};

/// The exact version: another one plants other faults.
pub const VERSION: &str = "27.1.0";

/// A group of files that one package tests.
struct Module {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
}

/// The mutated modules.
const MODULES: [Module; 8] = [
    Module { name: "money", package: "domain", files: &["crates/domain/src/money.rs", "crates/domain/src/money/*.rs"] },
    Module { name: "budget", package: "domain", files: &["crates/domain/src/budget/**/*.rs"] },
    Module { name: "guardrail", package: "domain", files: &["crates/domain/src/guardrail/**/*.rs"] },
    Module { name: "health", package: "domain", files: &["crates/domain/src/routing/health/**/*.rs"] },
    Module { name: "audit", package: "domain", files: &["crates/domain/src/audit/**/*.rs"] },
    Module { name: "file", package: "domain", files: &["crates/domain/src/file/**/*.rs"] },
    Module { name: "blob", package: "adapters-blob", files: &["crates/adapters-blob/src/**/*.rs"] },
    Module { name: "s3", package: "adapters-s3", files: &["crates/adapters-s3/src/**/*.rs"] },
];

/// The options of a run.
#[derive(Args)]
pub struct Options {
    /// Only these modules; all of them if none is named.
    #[arg(long, value_name = "MODULE", value_delimiter = ',')]
    only: Vec<String>,
    /// One of so many parts of the mutants, such as 0/8: a sample.
    #[arg(long, value_name = "PART/PARTS")]
    shard: Option<String>,
    /// Builds and tests at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// List the mutants and build nothing.
    #[arg(long)]
    list: bool,
}

/// Installs the tool if it is missing, then runs it module by module. Reports missed mutants as an error at the end.
pub fn run(options: &Options) -> Result<()> {
    let modules = selected_modules(&options.only)?;
    install()?;
    let mut survived = Vec::new();
    for module in modules {
        let mut command = step::cargo(&[]);
        command.args(arguments(module, options));
        step::announce(&format!("mutants of {}", module.name));
        if step::run(&mut command).is_err() {
            survived.push(module.name);
        }
    }
    if !survived.is_empty() {
        bail!("mutants survived, or could not be tested, in {}; see {}", survived.join(", "), folder().display());
    }
    Ok(())
}

fn selected_modules(only: &[String]) -> Result<Vec<&'static Module>> {
    let known = || MODULES.iter().map(|module| module.name).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = only.iter().find(|name| MODULES.iter().all(|module| module.name != **name)) {
        bail!("there is no module {unknown}; there are {}", known());
    }
    Ok(MODULES.iter().filter(|module| only.is_empty() || only.iter().any(|name| name == module.name)).collect())
}

/// Returns the arguments of cargo. Only the tests of the module's own package run: a fault that only a distant test
/// catches is hard to find.
fn arguments(module: &Module, options: &Options) -> Vec<String> {
    let output = folder().join(module.name).display().to_string();
    let jobs = options.jobs.to_string();
    let mut words = vec!["mutants", "--package", module.package, "--all-features", "--no-shuffle", "--jobs", &jobs];
    words.extend(["--output", &output, "--minimum-test-timeout", "60"]);
    for file in module.files {
        words.extend(["--file", file]);
    }
    words.extend(["--exclude", "**/tests.rs", "--exclude", "**/tests/**"]);
    if let Some(shard) = &options.shard {
        words.extend(["--shard", shard]);
    }
    if options.list {
        words.push("--list");
    }
    words.into_iter().map(str::to_owned).collect()
}

fn folder() -> std::path::PathBuf {
    workspace::target().join("mutants")
}

fn install() -> Result<()> {
    let mut version = step::cargo(&["mutants", "--version"]);
    let installed = version.output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(VERSION));
    if !installed {
        step::run(&mut step::cargo(&["install", "--locked", "cargo-mutants", "--version", VERSION]))?;
    }
    Ok(std::fs::create_dir_all(folder())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { only: Vec::new(), shard: Some("1/4".to_owned()), jobs: 2, list: false }
    }

    #[test]
    fn modules_are_chosen_by_name_and_unknown_names_are_rejected() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            selected_modules(&only).map(|modules| modules.iter().map(|module| module.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), MODULES.len());
        assert_eq!(names(&["audit", "money"]).unwrap(), ["money", "audit"]);
        assert!(names(&["mony"]).unwrap_err().to_string().contains("there is no module mony; there are money, "));
    }

    #[test]
    fn every_module_has_files_and_its_package_exists() {
        for module in &MODULES {
            let package = workspace::root().join("crates").join(module.package).join("Cargo.toml");
            assert!(package.exists(), "{}", module.name);
            for file in module.files {
                let (folder, _) = file.split_once('*').unwrap_or((file, ""));
                assert!(workspace::root().join(folder).exists(), "{file}");
            }
        }
    }

    #[test]
    fn arguments_name_the_package_the_files_and_the_sample() {
        let arguments = arguments(&MODULES[0], &options()).join(" ");
        for part in ["--package domain", "--file crates/domain/src/money.rs", "--shard 1/4", "--jobs 2"] {
            assert!(arguments.contains(part), "{part} in {arguments}");
        }
        assert!(!arguments.contains("--list"));
    }
}
