//! The direct dependencies of our crates, and the transitive ones of `domain`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// The kind of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Normal,
    Build,
    Development,
}

/// A direct dependency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
}

/// The dependencies that our crates declare, on every platform and with every feature.
pub struct Graph(BTreeMap<String, BTreeSet<Dependency>>);

impl Graph {
    /// Reads the manifests. Needs no network, as nothing is resolved.
    pub fn of_workspace() -> Self {
        let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
        let mut graph = Self(BTreeMap::new());
        for package in metadata.packages {
            let name = package.name.to_string();
            graph.0.entry(name.clone()).or_default();
            for dependency in package.dependencies {
                let kind = match dependency.kind {
                    DependencyKind::Development => Kind::Development,
                    DependencyKind::Build => Kind::Build,
                    _ => Kind::Normal,
                };
                // A crate's tests may enable its own features by a dependency on itself.
                if dependency.name != name {
                    graph.add(&name, Dependency { name: dependency.name, kind });
                }
            }
        }
        graph
    }

    pub fn add(&mut self, krate: &str, dependency: Dependency) {
        self.0.entry(krate.to_owned()).or_default().insert(dependency);
    }

    pub fn crates(&self) -> impl Iterator<Item = (&str, &BTreeSet<Dependency>)> {
        self.0.iter().map(|(name, dependencies)| (name.as_str(), dependencies))
    }
}

/// Returns every crate in the build of `domain` alone, without features.
pub fn domain_closure() -> Vec<String> {
    let tree = ["tree", "--offline", "--package", "domain", "--no-default-features", "--edges", "normal"];
    let output =
        Command::new(env!("CARGO")).args(tree).args(["--prefix", "none"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "domain")
        .map(str::to_owned)
        .collect();
    names.into_iter().collect()
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
