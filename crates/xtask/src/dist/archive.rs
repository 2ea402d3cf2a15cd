//! The archive that is shipped: the same input gives the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use super::licences;
use crate::workspace;

/// The shells with completions, and the name of each file.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "tollgate.bash"),
    ("elvish", "tollgate.elv"),
    ("fish", "tollgate.fish"),
    ("powershell", "_tollgate.ps1"),
    ("zsh", "_tollgate"),
];
/// Files of the repository's root.
const FILES: [&str; 4] = ["CHANGELOG.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT"];

/// A file of the archive.
struct Member {
    path: String,
    content: Vec<u8>,
    is_program: bool,
}

/// Writes `tollgate-VERSION-HOST.tar.gz` and its SHA-256 beside it; returns its path.
///
/// # Errors
/// A file cannot be read or written, or the program does not print completions.
pub fn write(program: &Path, host: &str) -> Result<PathBuf> {
    let name = format!("tollgate-{}-{host}", env!("CARGO_PKG_VERSION"));
    let folder = workspace::target().join("archive");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.tar.gz"));
    let bytes = pack(&name, &members(program, host)?)?;
    fs::write(&path, &bytes).with_context(|| format!("{} could not be written", path.display()))?;
    let sum = format!("{}  {name}.tar.gz\n", digest(&bytes));
    fs::write(folder.join(format!("{name}.tar.gz.sha256")), sum)?;
    Ok(path)
}

/// Returns the files in the order of their paths, with their sums last.
fn members(program: &Path, host: &str) -> Result<Vec<Member>> {
    let root = workspace::root();
    let mut members = vec![Member { path: "tollgate".to_owned(), content: fs::read(program)?, is_program: true }];
    let mut add = |path: String, content| members.push(Member { path, content, is_program: false });
    for (shell, file) in SHELLS {
        add(format!("completions/{file}"), completions(program, shell)?);
    }
    for file in FILES {
        add(file.to_owned(), fs::read(root.join(file))?);
    }
    for file in files(&root.join("deploy"))? {
        let path = file.strip_prefix(root)?.to_str().context("a name that is no UTF-8")?.to_owned();
        add(path, fs::read(file)?);
    }
    add("THIRD-PARTY-LICENSES.txt".to_owned(), licences::text(host)?.into_bytes());
    members.sort_by(|one, other| one.path.cmp(&other.path));
    let mut sums = String::new();
    for member in &members {
        writeln!(sums, "{}  {}", digest(&member.content), member.path)?;
    }
    members.push(Member { path: "SHA256SUMS".to_owned(), content: sums.into_bytes(), is_program: false });
    Ok(members)
}

fn completions(program: &Path, shell: &str) -> Result<Vec<u8>> {
    let output = Command::new(program).args(["completions", shell]).output()?;
    if !output.status.success() {
        bail!("no completions of {shell}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Returns the files of a folder and those in it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

/// Packs files below a folder, without times, owners and other properties of this machine.
fn pack(folder: &str, members: &[Member]) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(gzip);
    for member in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(member.content.len())?);
        header.set_mode(if member.is_program { 0o755 } else { 0o644 });
        header.set_mtime(0);
        archive.append_data(&mut header, format!("{folder}/{}", member.path), member.content.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn archive_has_the_same_bytes_twice_and_contains_what_its_sums_name() {
        let program = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let packed = || pack("name", &members(&program, "x86_64-unknown-linux-gnu").unwrap()).unwrap();
        let bytes = packed();
        assert!(bytes == packed(), "two archives differ");
        let folder = tempfile::tempdir().unwrap();
        tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice())).unpack(folder.path()).unwrap();
        let root = folder.path().join("name");
        let sums = fs::read_to_string(root.join("SHA256SUMS")).unwrap();
        let named: Vec<(&str, &str)> = sums.lines().filter_map(|line| line.split_once("  ")).collect();
        for (sum, path) in &named {
            assert_eq!(*sum, digest(&fs::read(root.join(path)).unwrap()), "{path}");
        }
        assert_eq!(named.len() + 1, files(&root).unwrap().len());
        assert_eq!(fs::read(root.join("completions/_tollgate")).unwrap(), b"completions zsh\n");
        assert_eq!(fs::metadata(root.join("tollgate")).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(root.join("deploy/tollgate.service").is_file());
    }
}
