//! A check of the Markdown files: the targets of relative links must exist, headings included.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::{step, workspace};

/// Checks README.md, CHANGELOG.md and everything below docs.
pub fn run() -> Result<()> {
    let faults = check(workspace::root())?;
    if faults.is_empty() {
        step::announce("every link of the Markdown files leads somewhere");
        return Ok(());
    }
    bail!("links that lead nowhere:\n  {}", faults.join("\n  "));
}

fn check(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(&root.join("docs"), &mut files)?;
    files.extend(["README.md", "CHANGELOG.md"].map(|name| root.join(name)).into_iter().filter(|file| file.exists()));
    let mut headings = HashMap::new();
    let mut faults = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        for target in links(&text) {
            if let Some(fault) = broken_link(file, &target, &mut headings) {
                faults.push(format!("{}: {target}: {fault}", file.strip_prefix(root).unwrap_or(file).display()));
            }
        }
    }
    Ok(faults)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .with_context(|| format!("{} cannot be read", folder.display()))?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the targets of `[text](target)` outside code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every second piece between backticks is code.
        for piece in line.split('`').step_by(2) {
            for after in piece.split("](").skip(1) {
                if let Some((target, _)) = after.split_once(')') {
                    found.push(target.to_owned());
                }
            }
        }
    }
    found
}

/// Returns the lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn broken_link(file: &Path, target: &str, headings: &mut HashMap<PathBuf, Vec<String>>) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let named = if path.is_empty() { file.to_owned() } else { file.parent()?.join(path) };
    if !named.exists() {
        return Some("no such file");
    }
    let anchor = anchor?;
    let known =
        headings.entry(named.clone()).or_insert_with(|| anchors(&fs::read_to_string(&named).unwrap_or_default()));
    (!known.iter().any(|heading| heading == anchor)).then_some("no such heading")
}

/// Returns the anchors of the headings: lower case, spaces as dashes, without punctuation.
fn anchors(text: &str) -> Vec<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            heading
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn check_reports_broken_links() {
        let folder = repository(&[
            ("README.md", "See [a](docs/a.md), [b](docs/b.md) and [c](docs/a.md#gone)."),
            ("docs/a.md", "# Here it is\n[up](../README.md) [out](https://example.com/x) [in](#here-it-is)\n"),
        ]);
        assert_eq!(
            check(folder.path()).unwrap(),
            ["README.md: docs/b.md: no such file", "README.md: docs/a.md#gone: no such heading"]
        );
    }

    #[test]
    fn links_ignores_code() {
        let folder =
            repository(&[("docs/a.md", "`[x](y)` then\n```\n[x](y)\n# not a heading\n```\n[z](#not-a-heading)\n")]);
        assert_eq!(check(folder.path()).unwrap(), ["docs/a.md: #not-a-heading: no such heading"]);
    }

    #[test]
    fn anchors_follow_github_rules() {
        assert_eq!(anchors("## `POST` /x: what's new_here?\n"), ["post-x-whats-new_here"]);
    }
}
