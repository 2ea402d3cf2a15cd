//! The index of names, built once per snapshot. A look-up is one or two map reads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{CatalogueViolation, Model, ModelId, SANDBOX_AUTHOR};

/// The author with priority for bare names that several authors have: clients of System One send bare names.
const SYSTEM_ONE_AUTHOR: &str = "typesafe";

/// All resolvable names (lower case) with the indices of their rows.
#[derive(Debug, Default)]
pub(super) struct Names {
    whole: HashMap<String, usize>,
    /// Names without an author of rows that answer Decisions requests.
    bare: HashMap<String, usize>,
}

impl Names {
    pub(super) fn find(&self, lower: &str) -> Option<usize> {
        self.whole.get(lower).copied()
    }

    pub(super) fn find_bare(&self, lower: &str) -> Option<usize> {
        self.bare.get(lower).copied()
    }
}

/// Builds the index, by priority: ids, canonical slugs, renamed slugs, ids of aliases, spellings with dashes for dots.
/// A later kind of name never replaces an earlier one.
pub(super) fn index(rows: &[Arc<Model>]) -> Names {
    let mut names = HashMap::with_capacity(rows.len() * 3);
    let concrete = || rows.iter().enumerate().filter(|(_, row)| row.alias_target.is_none());
    for (index, row) in concrete() {
        names.entry(row.id.as_str().to_owned()).or_insert(index);
    }
    add_canonical_slugs(&mut names, rows);
    for (index, row) in concrete().filter(|(_, row)| row.id.variant().is_none()) {
        for former in &row.renamed_from {
            names.entry(former.as_str().to_owned()).or_insert(index);
            for (variant_index, variant) in concrete().filter(|(_, other)| other.id.base() == row.id.as_str()) {
                if let (Some(suffix), None) = (variant.id.variant(), former.variant()) {
                    names.entry(format!("{former}:{suffix}")).or_insert(variant_index);
                }
            }
        }
    }
    for (index, row) in concrete().filter(|(_, row)| row.id.variant().is_some()) {
        for former in &row.renamed_from {
            names.entry(former.as_str().to_owned()).or_insert(index);
        }
    }
    add_aliases(&mut names, rows);
    let mut bare = bare_names(&names, rows);
    add_dashed_spellings(&mut names, rows);
    for (name, index) in bare_names(&names, rows) {
        bare.entry(name).or_insert(index);
    }
    Names { whole: names, bare }
}

/// Returns the parts after the slash of full names, if they are unique: all full names with this part mean the same
/// row, or System One's author has one of them.
fn bare_names(names: &HashMap<String, usize>, rows: &[Arc<Model>]) -> HashMap<String, usize> {
    let mut by_end: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
    for (name, &index) in names {
        let row = &rows[index];
        if let Some((author, end)) = name.split_once('/')
            && row.serves_decisions()
            && row.id.author() != SANDBOX_AUTHOR
            && author != SANDBOX_AUTHOR
        {
            by_end.entry(end).or_default().push((author, index));
        }
    }
    let meant = |holders: &[(&str, usize)]| {
        let has_row = |author: &str| holders.iter().any(|(holder, _)| *holder == author);
        // Authors of aliases begin with a tilde; a row of the same author and slug has priority.
        let outdone = |author: &str| author.strip_prefix('~').is_some_and(has_row);
        let mut meant = holders.iter().filter(|(author, _)| !outdone(author));
        let (_, first) = *meant.next()?;
        let of_system_one = |(author, _): &&(&str, usize)| author.trim_start_matches('~') == SYSTEM_ONE_AUTHOR;
        if meant.all(|(_, index)| *index == first) {
            return Some(first);
        }
        holders.iter().filter(|(author, _)| !outdone(author)).find(of_system_one).map(|(_, index)| *index)
    };
    by_end.into_iter().filter_map(|(end, holders)| meant(&holders).map(|index| (end.to_owned(), index))).collect()
}

/// Adds canonical slugs. A slug of several rows means the base row, else the first variant by id; a slug with a variant
/// means the row of the variant.
fn add_canonical_slugs(names: &mut HashMap<String, usize>, rows: &[Arc<Model>]) {
    let mut sharing: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.alias_target.is_none()) {
        sharing.entry(row.canonical_slug.as_str()).or_default().push(index);
    }
    for (slug, mut indices) in sharing {
        // No variant sorts before any variant.
        indices.sort_by_key(|&index| (rows[index].id.variant().is_some(), rows[index].id.clone()));
        for &index in &indices {
            if let Some(variant) = rows[index].id.variant() {
                names.entry(format!("{slug}:{variant}")).or_insert(index);
            }
        }
        if let Some(&first) = indices.first() {
            names.entry(slug.to_owned()).or_insert(first);
        }
    }
}

/// Adds aliases with their concrete rows. An alias without target, or a circular one, is left out.
fn add_aliases(names: &mut HashMap<String, usize>, rows: &[Arc<Model>]) {
    let targets: HashMap<&str, &ModelId> =
        rows.iter().filter_map(|row| row.alias_target.as_ref().map(|target| (row.id.as_str(), &target.slug))).collect();
    let mut found = Vec::new();
    for &alias in targets.keys() {
        if let Follow::Leads(slug) = follow(alias, &targets)
            && let Some(&index) = names.get(slug)
            && rows[index].id.author() != SANDBOX_AUTHOR
        {
            found.push((alias.to_owned(), index));
        }
    }
    for (alias, index) in found {
        names.entry(alias).or_insert(index);
    }
}

enum Follow<'a> {
    Leads(&'a str),
    Circles,
}

fn follow<'a>(alias: &'a str, targets: &HashMap<&'a str, &'a ModelId>) -> Follow<'a> {
    let mut seen = HashSet::from([alias]);
    let mut at = alias;
    while let Some(next) = targets.get(at) {
        at = next.as_str();
        if !seen.insert(at) {
            return Follow::Circles;
        }
    }
    Follow::Leads(at)
}

/// Adds spellings such as `family-3-5` for `family-3.5`, because clients write version numbers both ways. Only unique
/// spellings of concrete rows are added, and none of the sandbox.
fn add_dashed_spellings(names: &mut HashMap<String, usize>, rows: &[Arc<Model>]) {
    let mut spellings: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let id = row.id.as_str();
        if row.alias_target.is_none() && row.id.author() != SANDBOX_AUTHOR {
            let dashed = dashed(id);
            if dashed != id {
                spellings.entry(dashed).or_default().push(index);
            }
        }
    }
    for (spelling, indices) in spellings {
        if let [index] = indices[..] {
            names.entry(spelling).or_insert(index);
        }
    }
}

/// Replaces every dot between two digits by a dash.
fn dashed(id: &str) -> String {
    let bytes = id.as_bytes();
    id.char_indices()
        .map(|(at, c)| {
            let between = c == '.'
                && at > 0
                && bytes[at - 1].is_ascii_digit()
                && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            if between { '-' } else { c }
        })
        .collect()
}

pub(super) fn check(rows: &[Model]) -> Result<(), CatalogueViolation> {
    let mut ids = HashSet::new();
    let mut slugs = HashSet::new();
    for row in rows {
        if !ids.insert(&row.id) {
            return Err(CatalogueViolation::DuplicateId(row.id.clone()));
        }
        if row.alias_target.is_none() {
            slugs.insert(row.id.as_str());
            slugs.insert(row.canonical_slug.as_str());
            slugs.extend(row.renamed_from.iter().map(ModelId::as_str));
        }
    }
    let targets: HashMap<&str, &ModelId> =
        rows.iter().filter_map(|row| row.alias_target.as_ref().map(|target| (row.id.as_str(), &target.slug))).collect();
    for row in rows {
        let Some(target) = &row.alias_target else { continue };
        match follow(row.id.as_str(), &targets) {
            Follow::Circles => return Err(CatalogueViolation::AliasCycle(row.id.clone())),
            Follow::Leads(slug) if slug.split('/').next() == Some(SANDBOX_AUTHOR) => {
                return Err(CatalogueViolation::AliasOfSandbox(row.id.clone()));
            }
            Follow::Leads(slug) if !slugs.contains(slug) => {
                return Err(CatalogueViolation::DanglingAlias { alias: row.id.clone(), target: target.slug.clone() });
            }
            Follow::Leads(_) => {}
        }
    }
    Ok(())
}
