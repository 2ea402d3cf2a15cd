//! `cargo xtask size`: counts the code and the documents of the repository.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::workspace;

/// Crates that the server does not contain: they test, measure and build it.
const TOOLS: [&str; 8] =
    ["bench", "chaos", "fuzz", "ledger-tests", "openapi-check", "test-object-store", "test-servers", "xtask"];

/// The size of a crate: files with production code, and their lines without tests, comments and blank lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    files: usize,
    lines: usize,
}

/// Prints the lines and files of each crate, the ports of the domain, the keys of the configuration and the words of the
/// documents.
pub fn run() -> Result<()> {
    let root = workspace::root();
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    crates.push(root.join("migrations"));
    crates.sort();
    let mut text = "| crate | lines | files |\n|---|---:|---:|\n".to_owned();
    let (mut server, mut tools) = (Size::default(), Size::default());
    for path in crates {
        let size = size_of(&path.join("src"))?;
        let sum = if TOOLS.iter().any(|tool| path.ends_with(tool)) { &mut tools } else { &mut server };
        *sum = Size { files: sum.files + size.files, lines: sum.lines + size.lines };
        let name = path.strip_prefix(root)?.display();
        writeln!(text, "| `{name}` | {} | {} |", size.lines, size.files)?;
    }
    for (name, size) in [("the server", server), ("tools", tools)] {
        writeln!(text, "| {name} | {} | {} |", size.lines, size.files)?;
    }
    writeln!(text)?;
    let ports = sum(&root.join("crates/domain/src"), "rs", &|text| production(text).filter(is_port).count())?;
    let keys = keys(&std::fs::read_to_string(root.join("docs/configuration.md"))?);
    let words = |text: &str| text.split_whitespace().count();
    let words = sum(&root.join("docs"), "md", &words)? + words(&std::fs::read_to_string(root.join("README.md"))?);
    writeln!(text, "{ports} ports, {keys} keys of the configuration, {words} words of documents")?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Adds up a figure of the files of a kind, in a folder and those in it.
fn sum(folder: &Path, kind: &str, figure: &dyn Fn(&str) -> usize) -> Result<usize> {
    let mut sum = 0;
    for path in files(folder)? {
        if path.extension().is_some_and(|extension| extension == kind) {
            sum += figure(&std::fs::read_to_string(path)?);
        }
    }
    Ok(sum)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn size_of(folder: &Path) -> Result<Size> {
    let mut size = Size::default();
    for path in files(folder)? {
        let is_test = path.iter().any(|part| {
            let part = part.to_string_lossy();
            matches!(&*part, "tests" | "fixtures.rs" | "testing") || part.ends_with("tests.rs")
        });
        if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            size.files += 1;
            size.lines += production(&std::fs::read_to_string(path)?).count();
        }
    }
    Ok(size)
}

/// Returns the lines of a source without its tests, comments and blank lines.
fn production(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}

fn is_port(line: &&str) -> bool {
    line.starts_with("pub trait ")
}

/// Counts the rows of the tables of keys: their headings are sections, as `[server]` or `[[providers]]`.
fn keys(page: &str) -> usize {
    let sections = page.split("\n## ").filter(|section| section.starts_with("`[") || section.starts_with("Keys of"));
    sections.flat_map(str::lines).filter(|line| line.starts_with("| `")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_lines_are_neither_tests_nor_comments() {
        let text = "//! Doc\nuse a;\n\n    // why\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(production(text).collect::<Vec<_>>(), ["use a;", "fn f() {}"]);
    }

    #[test]
    fn keys_are_the_rows_of_sections() {
        let page = "# T\n| `no` |\n\n## `[server]`\n\n| key |\n|---|\n| `listen` | x |\n\n## Names\n| `no` |\n";
        assert_eq!(keys(page), 1);
    }

    #[test]
    fn size_reads_a_crate_without_its_tests() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let source = folder.path().join("src");
        std::fs::create_dir_all(source.join("tests"))?;
        for (name, text) in [("lib.rs", "a\nb\n"), ("tests.rs", "c\n"), ("tests/d.rs", "d\n"), ("e.txt", "e\n")] {
            std::fs::write(source.join(name), text)?;
        }
        assert_eq!(size_of(&source)?, Size { files: 1, lines: 2 });
        Ok(())
    }
}
