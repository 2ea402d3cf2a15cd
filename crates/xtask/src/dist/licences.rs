//! The licences of the libraries in the program.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// The files of a package that state its licence begin with one of these, in any case.
const NAMES: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// Returns the licences of all libraries that the program contains on this platform: a line a library, then each text
/// once with the libraries that it is of.
///
/// # Errors
/// Cargo's metadata cannot be read, or a library names no licence.
pub fn text(host: &str) -> Result<String> {
    let metadata = MetadataCommand::new()
        .current_dir(crate::workspace::root())
        .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), host.to_owned()])
        .exec()
        .context("the metadata of the workspace")?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in libraries(&metadata)? {
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

/// Returns the packages from registries that the program links, sorted by name and version.
fn libraries(metadata: &Metadata) -> Result<Vec<&Package>> {
    let resolve = metadata.resolve.as_ref().context("no resolved dependencies")?;
    let nodes: HashMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let packages: HashMap<&PackageId, &Package> = metadata.packages.iter().map(|each| (&each.id, each)).collect();
    let program = metadata.packages.iter().find(|package| package.name.as_str() == "tollgate");
    let mut open = vec![&program.context("no package of the program")?.id];
    let mut seen: HashSet<&PackageId> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for dependency in &nodes.get(id).context("a package without dependencies")?.deps {
            let is_linked = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if is_linked && seen.insert(&dependency.pkg) {
                open.push(&dependency.pkg);
            }
        }
    }
    let mut found: Vec<&Package> = seen
        .into_iter()
        .filter_map(|id| packages.get(id).copied())
        .filter(|package| package.source.is_some())
        .collect();
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
