//! Which row a name means. Built once per snapshot; a look-up is one or two map reads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{CatalogueFault, Model, ModelId, SANDBOX_AUTHOR};

/// Every resolvable name (lower case) and the row it means.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, usize>);

impl From<HashMap<String, usize>> for Names {
    fn from(names: HashMap<String, usize>) -> Self {
        Self(names)
    }
}

impl Names {
    pub(super) fn find(&self, lower: &str) -> Option<usize> {
        self.0.get(lower).copied()
    }
}

/// In the order of authority: ids, canonical slugs, renamed slugs, aliases' own ids, spellings with dashes for dots.
/// An earlier kind of name is never overridden by a later one.
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
    add_dashed_spellings(&mut names, rows);
    Names(names)
}

/// A slug shared by several rows means the base row, else the first variant by id; with a variant behind it, it
/// means the row of that variant.
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

/// Follows each alias to the concrete row behind it; one that leads nowhere or in a circle gets no name.
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

/// `family-3-5` for `family-3.5`: clients have long written version numbers both ways. Only where exactly one
/// concrete row answers to the spelling, and never for the sandbox.
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

/// Every dot between two digits becomes a dash.
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

pub(super) fn check(rows: &[Model]) -> Result<(), CatalogueFault> {
    let mut ids = HashSet::new();
    let mut slugs = HashSet::new();
    for row in rows {
        if !ids.insert(&row.id) {
            return Err(CatalogueFault::DuplicateId(row.id.clone()));
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
            Follow::Circles => return Err(CatalogueFault::AliasCycle(row.id.clone())),
            Follow::Leads(slug) if slug.split('/').next() == Some(SANDBOX_AUTHOR) => {
                return Err(CatalogueFault::AliasOfSandbox(row.id.clone()));
            }
            Follow::Leads(slug) if !slugs.contains(slug) => {
                return Err(CatalogueFault::DanglingAlias { alias: row.id.clone(), target: target.slug.clone() });
            }
            Follow::Leads(_) => {}
        }
    }
    Ok(())
}
