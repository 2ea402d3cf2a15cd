//! The licences of the libraries in the program.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand, Package};

use crate::{step, workspace};

/// The files of a package that state its licence begin with one of these, in any case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// Returns the licences of all libraries that the program contains on this platform: a line a library, then each text
/// once with the libraries that it is of.
///
/// # Errors
/// Cargo's metadata cannot be read, or a library names no licence.
pub fn text(host: &str) -> Result<String> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace::root())
        .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), host.to_owned()])
        .exec()
        .context("the metadata of the workspace")?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in libraries(&metadata, host)? {
        let name = format!("{} {}", package.name, package.version);
        let Some(licence) = &package.license else { bail!("{name} names no licence") };
        writeln!(list, "{name}: {licence}")?;
        let folder = package.manifest_path.parent().context("a manifest without a folder")?;
        for text in texts_in(folder.as_std_path())? {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    for (text, names) in texts {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        write!(list, "\n{}\n{names}\n\n{}\n", "-".repeat(72), text.trim_end())?;
    }
    Ok(list)
}

/// Returns the packages from registries that the program links, sorted by name and version. Cargo's metadata has the
/// features of all crates together, tests included; the tree has those of the program.
fn libraries<'a>(metadata: &'a Metadata, host: &str) -> Result<Vec<&'a Package>> {
    let tree = ["tree", "--locked", "--package", "tollgate", "--edges", "normal", "--target", host];
    let output = step::cargo(&tree).args(["--prefix", "none", "--format", "{p}"]).output()?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = String::from_utf8(output.stdout)?;
    // Macros run in the compiler.
    let lines = tree.lines().filter(|line| !line.contains(" (proc-macro)"));
    let linked: HashSet<&str> = lines.map(|line| line.trim_end_matches(" (*)")).collect();
    let is_linked = |package: &&Package| linked.contains(format!("{} v{}", package.name, package.version).as_str());
    let mut found: Vec<&Package> = metadata.packages.iter().filter(is_linked).collect();
    found.sort_by_key(|package| (package.name.clone(), package.version.clone()));
    Ok(found)
}

/// Returns the texts of the licence files in a package's folder.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|prefix| name.starts_with(prefix)) {
            files.push(entry.path());
        }
    }
    files.sort();
    files.iter().map(|file| Ok(String::from_utf8_lossy(&fs::read(file)?).replace("\r\n", "\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_lists_linked_libraries_only() {
        let text = text("x86_64-unknown-linux-gnu").unwrap();
        let list = text.split("----").next().unwrap();
        for linked in ["actix-web ", "aws-lc-sys ", "serde "] {
            assert!(list.lines().any(|line| line.starts_with(linked) && line.contains(": ")), "{linked}\n{list}");
        }
        for other in ["domain ", "proptest ", "mockall ", "libfuzzer-sys "] {
            assert!(!list.lines().any(|line| line.starts_with(other)), "{other}");
        }
        assert!(text.contains("Permission is hereby granted"), "no text of a licence");
    }
}
