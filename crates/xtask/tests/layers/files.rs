//! Arrows between the files of a crate: a file points to each file whose items it names. Tests are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, Macro, Token, UseTree, Visibility};

use super::graph::root;

/// The files of a crate by their paths below the crate's folder, with the files that each of them points to.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A function that returns the text of a file.
pub type Reader<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Returns the arrows of each target of our crates: a library and a program have files of their own.
pub fn arrows_of_workspace() -> Vec<(String, Arrows)> {
    let mut found = Vec::new();
    for folder in ["crates", "."] {
        let crates = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        for path in crates.filter(|path| path.join("Cargo.toml").exists()) {
            for target in ["src/lib.rs", "src/main.rs"].into_iter().filter(|target| path.join(target).exists()) {
                let read = |file: &Path| fs::read_to_string(path.join(file)).ok();
                let name = format!("{}/{target}", path.file_name().unwrap().to_string_lossy());
                found.push((name, arrows(Path::new(target), &read)));
            }
        }
    }
    found
}

/// Returns the items of a crate that have several public paths, with these paths.
pub fn items_of_several_addresses(root: &Path, read: Reader<'_>) -> Vec<String> {
    let modules = Modules::below(root, read);
    let mut addresses = BTreeMap::new();
    modules.add_addresses(0, "crate", &mut addresses);
    let several = addresses.into_values().filter(|paths| paths.len() > 1);
    several.map(|paths| Vec::from_iter(paths).join(", ")).collect()
}

/// Returns the arrows of the files below a crate's root file.
pub fn arrows(root: &Path, read: Reader<'_>) -> Arrows {
    let modules = Modules::below(root, read);
    let mut arrows = Arrows::new();
    for (number, module) in modules.0.iter().enumerate() {
        let from = arrows.entry(module.file.clone()).or_default();
        from.extend(modules.named_by(number).filter(|file| *file != module.file));
    }
    arrows
}

/// Returns a shortest circle through each file that is part of one, each circle once.
pub fn circles(arrows: &Arrows) -> BTreeSet<Vec<String>> {
    let shortest = arrows.keys().filter_map(|file| circle_through(file, arrows));
    // The same circle is found from each of its files: it begins with its first one.
    let rotated = shortest.map(|mut circle| {
        let first = (0..circle.len()).min_by_key(|at| &circle[*at]).unwrap_or_default();
        circle.rotate_left(first);
        circle
    });
    rotated.collect()
}

fn circle_through(file: &str, arrows: &Arrows) -> Option<Vec<String>> {
    let mut reached = BTreeSet::new();
    let mut ways = vec![vec![file.to_owned()]];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            for next in arrows.get(way.last()?)? {
                if next == file {
                    return Some(way);
                }
                if reached.insert(next) {
                    longer.push(way.iter().chain([next]).cloned().collect());
                }
            }
        }
        ways = longer;
    }
    None
}

#[derive(Default)]
struct Modules(Vec<Module>);

/// A module. One that is written inside a file has the file of its parent.
#[derive(Default)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The names of public modules and items.
    public: BTreeSet<String>,
    /// The names that it defines.
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// The paths in its code, without imports.
    paths: BTreeSet<Vec<String>>,
}

/// A name that `use` brings in; `*` for all names of a module.
struct Import {
    name: String,
    path: Vec<String>,
    is_reexport: bool,
    is_public: bool,
}

/// The module and the name of an item.
type Address = (usize, String);

/// A module does not import the name.
struct NotImported;

impl Modules {
    fn below(root: &Path, read: Reader<'_>) -> Self {
        let mut modules = Self::default();
        let text = read(root).unwrap();
        modules.add(None, root, root.parent().unwrap(), syn::parse_file(&text).unwrap().items, read);
        modules
    }

    /// Adds the public paths of all items that a public module and those inside it show.
    fn add_addresses(&self, at: usize, path: &str, found: &mut BTreeMap<Address, BTreeSet<String>>) {
        for (name, item) in self.exported(at) {
            found.entry(item).or_default().insert(format!("{path}::{name}"));
        }
        let module = &self.0[at];
        for (name, child) in module.children.iter().filter(|(name, _)| module.public.contains(*name)) {
            self.add_addresses(*child, &format!("{path}::{name}"), found);
        }
    }

    /// Returns the items that a module shows: its own and those that it re-exports.
    fn exported(&self, at: usize) -> Vec<(String, Address)> {
        let module = &self.0[at];
        let own = module.public.intersection(&module.items).map(|name| (name.clone(), (at, name.clone())));
        let mut found: Vec<_> = own.collect();
        for import in module.imports.iter().filter(|import| import.is_public) {
            let Some((last, from)) = import.path.split_last() else { continue };
            let shown = self.module_at(at, from).map(|from| self.exported(from)).unwrap_or_default();
            let named = shown.into_iter().filter(|(name, _)| last == "*" || name == last);
            found.extend(named.map(|(name, item)| (if last == "*" { name } else { import.name.clone() }, item)));
        }
        found
    }

    /// Returns the module that a path names; `None` for another crate's.
    fn module_at(&self, from: usize, path: &[String]) -> Option<usize> {
        path.iter().enumerate().try_fold(from, |at, (number, name)| match name.as_str() {
            "crate" => Some(0),
            "self" if number == 0 => Some(at),
            "super" => self.0[at].parent,
            name => self.0[at].children.get(name).copied(),
        })
    }

    fn add(&mut self, parent: Option<usize>, file: &Path, folder: &Path, items: Vec<Item>, read: Reader<'_>) -> usize {
        let number = self.0.len();
        let name = file.to_str().unwrap().replace('\\', "/");
        self.0.push(Module { file: name, parent, ..Module::default() });
        for item in items {
            match item {
                Item::Mod(module) if is_test(&module.attrs) => drop(module),
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    self.0[number].show(&name, &module.vis);
                    let child = self.add_child(number, file, folder, module, read);
                    self.0[number].children.insert(name, child);
                }
                item => self.0[number].read(&item),
            }
        }
        number
    }

    fn add_child(&mut self, parent: usize, file: &Path, folder: &Path, module: ItemMod, read: Reader<'_>) -> usize {
        let below = folder.join(module.ident.to_string());
        if let Some((_, items)) = module.content {
            return self.add(Some(parent), file, &below, items, read);
        }
        let path = module.attrs.iter().find_map(path_of).map(|path| file.parent().unwrap().join(path));
        let places: Vec<PathBuf> =
            path.map_or_else(|| vec![below.with_extension("rs"), below.join("mod.rs")], |path| vec![path]);
        let found = places.into_iter().find_map(|place| read(&place).map(|text| (place, text)));
        assert!(found.is_some(), "{} has no file {}", self.0[parent].file, below.display());
        let (file, text) = found.unwrap();
        // Modules below a file that `path` names are beside it.
        let below = if file.ends_with("mod.rs") { file.parent().unwrap().to_owned() } else { below };
        self.add(Some(parent), &file, &below, syn::parse_file(&text).unwrap().items, read)
    }

    /// Returns the files whose items the code of a module names.
    fn named_by(&self, number: usize) -> impl Iterator<Item = String> {
        let module = &self.0[number];
        let is_used = |name: &str| module.paths.iter().any(|path| path[0] == name);
        // A re-export that the code of the module does not use itself is no arrow.
        let imports = module.imports.iter().filter(move |import| !import.is_reexport || is_used(&import.name));
        let paths = imports.map(|import| &import.path).chain(module.paths.iter().filter(|path| path.len() > 1));
        paths.filter_map(move |path| self.file_of(number, path, 0))
    }

    /// Returns the file that defines what a path in a module names; `None` for a module or another crate's item.
    fn file_of(&self, from: usize, path: &[String], depth: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        let module = &self.0[from];
        match first.as_str() {
            _ if depth > 16 => None,
            "crate" => self.file_below(0, rest, depth),
            "self" => self.file_below(from, rest, depth),
            "super" => match rest {
                [next, ..] if next == "super" => self.file_of(module.parent?, rest, depth),
                _ => self.file_below(module.parent?, rest, depth),
            },
            _ if module.children.contains_key(first) => self.file_below(from, path, depth),
            _ => self.imported(from, path, depth).unwrap_or_default(),
        }
    }

    fn file_below(&self, at: usize, path: &[String], depth: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        let module = &self.0[at];
        let is_known = |name: &str| module.items.contains(name);
        if let Some(child) = module.children.get(first).filter(|_| !(rest.is_empty() && is_known(first))) {
            return self.file_below(*child, rest, depth);
        }
        if is_known(first) || first == "*" {
            return (first != "*" || !module.items.is_empty()).then(|| module.file.clone());
        }
        self.imported(at, path, depth).unwrap_or_else(|NotImported| Some(module.file.clone()))
    }

    /// Returns true if a file defines the name. A glob may lead to files that do not.
    fn defines(&self, file: &str, name: &str) -> bool {
        let modules = self.0.iter().filter(|module| module.file == file);
        modules.into_iter().any(|module| module.items.contains(name) || module.children.contains_key(name))
    }

    /// Follows an import to the file that defines its item; `None` for another crate's item.
    fn imported(&self, at: usize, path: &[String], depth: usize) -> Result<Option<String>, NotImported> {
        let (first, rest) = path.split_first().ok_or(NotImported)?;
        let imports = &self.0[at].imports;
        if let Some(import) = imports.iter().find(|import| import.name == *first) {
            // An import of another crate's item that has the name of its own first part ends here.
            let full: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return Ok(if full == path { None } else { self.file_of(at, &full, depth + 1) });
        }
        let mut globs = imports.iter().filter(|import| import.name == "*");
        let found = globs.find_map(|glob| {
            let (_, module) = glob.path.split_last()?;
            let full: Vec<String> = module.iter().chain(path).cloned().collect();
            self.file_of(at, &full, depth + 1).filter(|file| self.defines(file, first))
        });
        found.map(Some).ok_or(NotImported)
    }
}

impl Module {
    fn read(&mut self, item: &Item) {
        let none = Visibility::Inherited;
        let (attributes, name, visibility) = match item {
            Item::Use(item) if !is_test(&item.attrs) => {
                add_imports(&item.tree, &mut Vec::new(), &item.vis, &mut self.imports);
                return;
            }
            Item::Const(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Enum(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident), &item.vis),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref(), &none),
            Item::Static(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Struct(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Trait(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Type(item) => (&item.attrs, Some(&item.ident), &item.vis),
            Item::Impl(item) => (&item.attrs, None, &none),
            _ => return,
        };
        if is_test(attributes) {
            return;
        }
        if let Some(name) = name.map(ToString::to_string) {
            self.show(&name, visibility);
            self.items.insert(name);
        }
        Paths(&mut self.paths).visit_item(item);
    }

    fn show(&mut self, name: &str, visibility: &Visibility) {
        self.public.extend(matches!(visibility, Visibility::Public(_)).then(|| name.to_owned()));
    }
}

struct Paths<'a>(&'a mut BTreeSet<Vec<String>>);

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    // An import inside a function.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        add_imports(&item.tree, &mut Vec::new(), &Visibility::Inherited, &mut imports);
        self.0.extend(imports.into_iter().map(|import| import.path));
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        // Expressions in macros that take a list of them.
        let list = called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        for expression in list.unwrap_or_default() {
            Paths(self.0).visit_expr(&expression);
        }
    }
}

fn add_imports(tree: &UseTree, path: &mut Vec<String>, visibility: &Visibility, found: &mut Vec<Import>) {
    let (name, last) = match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            add_imports(&tree.tree, path, visibility, found);
            path.pop();
            return;
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| add_imports(tree, path, visibility, found));
            return;
        }
        UseTree::Name(tree) if tree.ident == "self" => (path.last().cloned().unwrap_or_default(), None),
        UseTree::Name(tree) => (tree.ident.to_string(), Some(tree.ident.to_string())),
        UseTree::Rename(tree) if tree.ident == "self" => (tree.rename.to_string(), None),
        UseTree::Rename(tree) => (tree.rename.to_string(), Some(tree.ident.to_string())),
        UseTree::Glob(_) => ("*".to_owned(), Some("*".to_owned())),
    };
    let is_public = matches!(visibility, Visibility::Public(_));
    let is_reexport = !matches!(visibility, Visibility::Inherited);
    found.push(Import { name, path: path.iter().cloned().chain(last).collect(), is_reexport, is_public });
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        is_cfg && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

fn path_of(attribute: &Attribute) -> Option<String> {
    let value = &attribute.meta.require_name_value().ok().filter(|pair| pair.path.is_ident("path"))?.value;
    match value {
        Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
