//! The other two checks must keep their bans: read from their own files.

use std::fs;

use super::graph::root;

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn clippy_forbids_calls_that_belong_behind_ports() {
    let clippy = text("clippy.toml");
    for method in [
        "std::time::SystemTime::now",
        "std::time::Instant::now",
        "chrono::Utc::now",
        "uuid::Uuid::now_v7",
        "uuid::Uuid::new_v4",
        "tokio::spawn",
        "std::thread::spawn",
        "std::env::var",
        "std::env::var_os",
    ] {
        let entry = clippy.lines().find(|line| line.contains(&format!("path = \"{method}\"")));
        let entry = entry.unwrap_or_else(|| panic!("clippy.toml does not forbid {method} any more"));
        assert!(entry.contains("reason = \""), "{method} is forbidden without a reason");
        assert!(!entry.trim_start().starts_with('#'), "{method} is commented out");
    }
}

#[test]
fn cargo_deny_forbids_unwanted_crates() {
    let deny = text("deny.toml");
    let entry =
        |krate: &str| deny.lines().find(|line| line.trim_start().starts_with(&format!("{{ crate = \"{krate}\"")));
    for krate in ["ring", "openssl", "openssl-sys", "native-tls", "reqwest", "async-std"] {
        let entry = entry(krate).unwrap_or_else(|| panic!("deny.toml lets {krate} in"));
        assert!(!entry.contains("wrappers"), "deny.toml lets {krate} in through a wrapper");
    }
    for krate in ["sea-orm", "actix-web", "hyper", "hyper-rustls", "infer", "moka"] {
        let entry = entry(krate).unwrap_or_else(|| panic!("deny.toml lets everybody use {krate}"));
        assert!(entry.contains("wrappers = [\""), "{krate} has no wrappers");
        assert!(!entry.contains("\"domain\""), "domain may use {krate}");
    }
    assert!(deny.contains("unknown-registry = \"deny\"") && deny.contains("unknown-git = \"deny\""));
}

#[test]
fn every_crate_inherits_workspace_lints() {
    let metadata =
        cargo_metadata::MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    for package in metadata.packages {
        let manifest = fs::read_to_string(&package.manifest_path).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} has lints of its own", package.name);
    }
}
