//! `cargo xtask dist`: builds the program that is shipped, and its archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{step, workspace};

mod archive;
mod licences;

/// The parts of the benchmark whose load is the profile: the five operations, every wire, limits and filters.
const LOAD: &str = "decisions,governed,keys,filters,wires,catalogue,assign,promote";

/// The time that `__DATE__` and `__TIME__` of the C libraries stand for, as that of the archive's files.
const EPOCH: &str = "0";

/// How to build.
#[derive(Args)]
pub struct Options {
    /// Let a profile of the benchmark's load guide the compiler: builds the program twice and needs llvm-tools.
    #[arg(long)]
    pgo: bool,
}

/// Builds the profile `dist` and the archive, and prints their paths.
pub fn run(options: &Options) -> Result<()> {
    let compiler = Compiler::find()?;
    let program = if options.pgo { guided(&compiler)? } else { compiler.build("", &[])? };
    let archive = archive::write(&program, &compiler.host)?;
    step::announce(&format!("built {} and {}", program.display(), archive.display()));
    Ok(())
}

/// Builds an instrumented program, runs the benchmark's load on it, and builds again with what it counted.
fn guided(compiler: &Compiler) -> Result<PathBuf> {
    let profdata = compiler.profdata()?;
    let folder = workspace::target().join("pgo");
    let (raw, merged) = (folder.join("raw"), folder.join("merged.profdata"));
    if raw.exists() {
        // Counts of another version of the code would be merged with those of this one.
        fs::remove_dir_all(&raw).with_context(|| format!("{} could not be removed", raw.display()))?;
    }
    fs::create_dir_all(&raw)?;
    step::run(&mut step::cargo(&["build", "--release", "--package", "bench"]))?;
    // Counting needs no link-time optimisation, and the functions are the same without it.
    let instrumented =
        compiler.build(&format!("-Cprofile-generate={}", raw.display()), &["--config", "profile.dist.lto='off'"])?;
    let mut load = Command::new(workspace::program(&workspace::target().join("release"), "bench"));
    load.args(["run", "--quick", "--profile", "instrumented", "--only", LOAD, "--tollgate"]).arg(instrumented);
    step::run(&mut load)?;
    step::run(Command::new(profdata).args(["merge", "--output"]).args([&merged, &raw]))?;
    compiler.build(&format!("-Cprofile-use={}", merged.display()), &[])
}

/// The compiler that rust-toolchain.toml names.
struct Compiler {
    host: String,
    libraries: PathBuf,
}

impl Compiler {
    fn find() -> Result<Self> {
        let print = |arguments: &[&str]| -> Result<String> {
            let output = Command::new("rustc").args(arguments).current_dir(workspace::root()).output()?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let version = print(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
        let sysroot = print(&["--print", "sysroot"])?;
        Ok(Self { host: host.to_owned(), libraries: Path::new(sysroot.trim()).join("lib").join("rustlib") })
    }

    /// Returns the program that merges profiles: one of another version may not read them.
    fn profdata(&self) -> Result<PathBuf> {
        let program = workspace::program(&self.libraries.join(&self.host).join("bin"), "llvm-profdata");
        if !program.exists() {
            bail!("{} is missing; install it with `rustup component add llvm-tools`", program.display());
        }
        Ok(program)
    }

    /// Builds the program with a flag of the compiler, and without the paths of this machine: the same sources give the
    /// same bytes. The target is named, so that build scripts are compiled without the flags.
    fn build(&self, flag: &str, arguments: &[&str]) -> Result<PathBuf> {
        let mut command = step::cargo(&["build", "--profile", "dist", "--package", "tollgate", "--target", &self.host]);
        let paths =
            [(workspace::root().to_owned(), "/source"), (cargo_home()?, "/cargo"), (workspace::target(), "/target")];
        let maps = |option: &str| {
            paths.iter().fold(String::new(), |all, (from, to)| format!("{all} {option}={}={to}", from.display()))
        };
        let (rust, c) = (maps("--remap-path-prefix"), maps("-ffile-prefix-map"));
        command
            .args(arguments)
            .env("RUSTFLAGS", format!("{flag}{rust}"))
            .env("CFLAGS", c)
            .env("SOURCE_DATE_EPOCH", EPOCH);
        step::run(&mut command)?;
        Ok(workspace::program(&workspace::target().join(&self.host).join("dist"), "tollgate"))
    }
}

/// Returns Cargo's folder, where it unpacks libraries.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it asks as cargo asks")]
fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("neither CARGO_HOME nor HOME is set")
}
