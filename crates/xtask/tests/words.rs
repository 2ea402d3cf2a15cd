//! Comments, strings, names and pages use the terms of the field: banned words fail the build with path and line.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of a paragraph of a comment: relative clauses in place of a noun. The lists may grow, not shrink.
const BANNED_BEGINNINGS: &[&str] = &[
    "What ",
    "Who ",
    "Whoever ",
    "Whatever ",
    "Whose ",
    "Where ",
    "Wherever ",
    "Nobody ",
    "Nothing ",
    "One that ",
    "That which ",
];

/// Phrases in any text: lower case, whole words. They are found in identifiers and across line ends, too.
const BANNED_PHRASES: &[&str] = &[
    "whoever",
    "whatever becomes",
    "nobody else",
    "is told of",
    "hears of",
    "of late",
    "as good as",
    "stands in for",
    "stand in for",
    "rests",
    "resting",
    "looks through",
    "is well",
    "are well",
    "starts anew",
    "for want of",
    "is of no use",
    "in the open",
];

/// Beginnings of function names, those of tests included.
const BANNED_FUNCTION_PREFIXES: &[&str] =
    &["who_", "what_", "whoever_", "whatever_", "where_", "nobody_", "nothing_", "one_", "such_"];

/// Names of structs, enums, unions, traits and type aliases.
const BANNED_TYPE_NAMES: &[&str] = &[
    "Afterlife",
    "Asked",
    "Asking",
    "Believed",
    "Bell",
    "Better",
    "Busy",
    "Cell",
    "Contest",
    "Course",
    "Customs",
    "Did",
    "Everyone",
    "Guest",
    "HasLeft",
    "Held",
    "Hidden",
    "Joined",
    "Kept",
    "Late",
    "Leaving",
    "LeftAlready",
    "Lot",
    "MadeUp",
    "Manner",
    "Odd",
    "Onlooker",
    "Others",
    "Patience",
    "Purse",
    "Revival",
    "Seat",
    "Seated",
    "Setback",
    "Sifted",
    "Spell",
    "Stage",
    "StaysToTheEnd",
    "Still",
    "SwitchedProbe",
    "Thrift",
    "Told",
    "Trip",
    "Turn",
    "Turns",
    "Uncarried",
    "Visitor",
    "WorkLost",
    "World",
];

/// A banned pattern that is a standard term in one file.
struct Allowed {
    path: &'static str,
    pattern: &'static str,
    /// The standard that defines the term.
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[];

/// This file lists the patterns.
const EXEMPT: &str = "crates/xtask/tests/words.rs";

/// A violation: the line, counted from 1, and the pattern.
type Violation = (usize, String);

fn violations(path: &str, text: &str) -> BTreeSet<Violation> {
    let is_rust = has_extension(Path::new(path), "rs");
    let mut found = phrase_violations(text, is_rust);
    if is_rust {
        found.extend(comment_violations(text));
        found.extend(text.lines().zip(1..).flat_map(|(line, number)| name_violations(line, number)));
    }
    found
}

/// Splits the comment of a line into its marker and its text. A comment behind code needs blanks around its marker.
fn comment_of(line: &str) -> Option<(&'static str, &str)> {
    let trimmed = line.trim_start();
    let comment = if trimmed.starts_with("//") { trimmed } else { &line[line.find(" // ")? + 1..] };
    ["//!", "///", "//"].iter().find_map(|marker| Some((*marker, comment.strip_prefix(marker)?.trim())))
}

/// Finds banned beginnings in the first line of each paragraph of each comment.
fn comment_violations(text: &str) -> BTreeSet<Violation> {
    let mut found = BTreeSet::new();
    let mut continued = None;
    for (line, number) in text.lines().zip(1..) {
        let Some((marker, words)) = comment_of(line) else {
            continued = None;
            continue;
        };
        let is_whole_line = line.trim_start().starts_with("//");
        if !is_whole_line || continued != Some(marker) {
            let banned = BANNED_BEGINNINGS.iter().filter(|beginning| words.starts_with(**beginning));
            found.extend(banned.map(|beginning| (number, format!("^{}", beginning.trim_end()))));
        }
        continued = (is_whole_line && !words.is_empty()).then_some(marker);
    }
    found
}

/// Finds banned names in the declarations of a line.
fn name_violations(line: &str, number: usize) -> Vec<Violation> {
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<&str> = line.split(|c: char| !is_in_name(c)).filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let (keyword, name) = (pair[0], pair[1]);
        match keyword {
            "fn" => {
                let banned = BANNED_FUNCTION_PREFIXES.iter().filter(|prefix| name.starts_with(**prefix));
                found.extend(banned.map(|prefix| (number, format!("fn {prefix}"))));
            }
            "struct" | "enum" | "union" | "trait" | "type" if BANNED_TYPE_NAMES.contains(&name) => {
                found.push((number, format!("{keyword} {name}")));
            }
            _ => {}
        }
    }
    found
}

/// Finds banned phrases. Between their words stand blanks, line ends, underscores or the marks of emphasis and code.
fn phrase_violations(text: &str, is_rust: bool) -> BTreeSet<Violation> {
    let phrases: Vec<Vec<&str>> = BANNED_PHRASES.iter().map(|phrase| phrase.split(' ').collect()).collect();
    let first_words: HashSet<&str> = phrases.iter().map(|phrase| phrase[0]).collect();
    let mut found = BTreeSet::new();
    let mut run: Vec<(String, usize)> = Vec::new();
    let mut end_run = |run: &mut Vec<(String, usize)>| {
        for (start, (first, number)) in run.iter().enumerate() {
            if !first_words.contains(first.as_str()) {
                continue;
            }
            let matching = phrases.iter().filter(|phrase| {
                let words = run[start..].iter().map(|(word, _)| word.as_str());
                words.take(phrase.len()).eq(phrase.iter().copied())
            });
            found.extend(matching.map(|phrase| (*number, phrase.join(" "))));
        }
        run.clear();
    };
    for (line, number) in text.lines().zip(1..) {
        let content = if is_rust { without_marker(line) } else { without_quote(line) };
        if content.trim().is_empty() {
            end_run(&mut run);
        }
        let mut rest = content;
        while let Some(start) = rest.find(char::is_alphanumeric) {
            if !joins_words(&rest[..start]) {
                end_run(&mut run);
            }
            let length = word_length(&rest[start..]);
            run.push((rest[start..start + length].to_lowercase(), number));
            rest = &rest[start + length..];
        }
        // A backslash at the end of a line continues a string.
        if !joins_words(rest.strip_suffix('\\').unwrap_or(rest)) {
            end_run(&mut run);
        }
    }
    end_run(&mut run);
    found
}

fn without_marker(line: &str) -> &str {
    let trimmed = line.trim_start();
    trimmed.strip_prefix("//").map_or(trimmed, |comment| comment.trim_start_matches(['/', '!']))
}

fn without_quote(line: &str) -> &str {
    line.trim_start().trim_start_matches("> ")
}

fn joins_words(gap: &str) -> bool {
    gap.chars().all(|c| matches!(c, ' ' | '\t' | '_' | '`' | '*'))
}

/// Returns the length in bytes of the word that the text begins with. Hyphens and apostrophes inside belong to it, so
/// that `well-formed` is one word.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((start, c)) = characters.next() {
        let is_inside = characters.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !(c.is_alphanumeric() || matches!(c, '-' | '\'' | '’') && is_inside) {
            break;
        }
        length = start + c.len_utf8();
    }
    length
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Reads every source and every page: paths below the root with `/`, and texts.
fn sources_and_pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for folder in ["crates", "docs", "migrations", "tests"] {
        collect(&root.join(folder), &mut paths);
    }
    let named = paths.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        (name, fs::read_to_string(path).unwrap())
    });
    named.filter(|(name, _)| name != EXEMPT).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                collect(&path, found);
            }
        } else if has_extension(&path, "rs") || has_extension(&path, "md") {
            found.push(path);
        }
    }
}

#[test]
fn sources_and_pages_use_no_banned_words() {
    let files = sources_and_pages();
    assert!(files.len() > 1000, "only {} files were found", files.len());
    let mut found = Vec::new();
    let mut needed = BTreeSet::new();
    for (path, text) in &files {
        for (number, pattern) in violations(path, text) {
            match ALLOWED.iter().position(|allowed| allowed.path == path && allowed.pattern == pattern) {
                Some(position) => drop(needed.insert(position)),
                None => found.push(format!("{path}:{number}: {pattern}")),
            }
        }
    }
    let unneeded = ALLOWED.iter().enumerate().filter(|(position, _)| !needed.contains(position));
    found.extend(unneeded.map(|(_, allowed)| {
        format!("{}: {} ({}) is not needed in ALLOWED any more", allowed.path, allowed.pattern, allowed.reason)
    }));
    assert!(found.is_empty(), "{} banned words:\n  {}", found.len(), found.join("\n  "));
}

/// Returns the violations of a source as `line: pattern`.
fn in_source(text: &str) -> Vec<String> {
    let found = violations("crates/planted/src/lib.rs", text);
    found.into_iter().map(|(number, pattern)| format!("{number}: {pattern}")).collect()
}

#[test]
fn comment_beginning_is_caught_when_planted() {
    for beginning in BANNED_BEGINNINGS {
        for marker in ["//", "///", "//!", "    /// ", "let a = 1; //"] {
            let text = format!("fn a() {{}}\n{marker} {beginning}holds.\n");
            let expected = format!("2: ^{}", beginning.trim_end());
            assert!(in_source(&text).contains(&expected), "{text}: {:?}", in_source(&text));
        }
    }
}

#[test]
fn comment_beginning_is_caught_in_later_paragraph() {
    assert_eq!(in_source("/// The price.\n///\n/// Where it is read.\nstruct Price;"), ["3: ^Where"]);
    assert_eq!(in_source("//! The price.\n// Nobody reads it."), ["2: ^Nobody"]);
}

#[test]
fn phrase_is_caught_when_planted() {
    for phrase in BANNED_PHRASES {
        let two_lines = phrase.replacen(' ', "\n/// ", 1);
        let texts = [
            format!("/// The key {phrase} it."),
            format!("let text = \"the key {phrase}, it\";"),
            format!("/// It: {two_lines}."),
            format!("fn key_{}_it() {{}}", phrase.replace(' ', "_")),
            format!("let text = \"it {} it\";", phrase.replacen(' ', " \\\n    ", 1)),
            format!("/// {}{}.", phrase[..1].to_uppercase(), &phrase[1..]),
        ];
        for text in texts {
            assert!(in_source(&text).contains(&format!("1: {phrase}")), "{text}: {:?}", in_source(&text));
        }
    }
}

#[test]
fn function_name_is_caught_when_planted() {
    for prefix in BANNED_FUNCTION_PREFIXES {
        for declaration in ["fn", "pub(super) async fn", "    const fn"] {
            let expected = format!("2: fn {prefix}");
            let found = in_source(&format!("#[test]\n{declaration} {prefix}key() {{}}"));
            assert!(found.contains(&expected), "{prefix}: {found:?}");
        }
    }
}

#[test]
fn type_name_is_caught_when_planted() {
    for name in BANNED_TYPE_NAMES {
        for (keyword, rest) in
            [("struct", ";"), ("pub enum", "<T> {}"), ("pub(super) trait", ": Send {}"), ("type", " = u8;")]
        {
            let expected = format!("1: {} {name}", keyword.split(' ').next_back().unwrap());
            assert_eq!(in_source(&format!("{keyword} {name}{rest}")), [expected]);
        }
    }
}

#[test]
fn page_is_checked_for_phrases_only() {
    let in_page = |text: &str| violations("docs/planted.md", text).into_iter().collect::<Vec<_>>();
    for phrase in BANNED_PHRASES {
        assert_eq!(in_page(&format!("# Keys\n\n> A key `{phrase}` it.\n")), [(3, (*phrase).to_owned())]);
        assert_eq!(in_page(&format!("- A key\n  **{}** it.\n", phrase.replacen(' ', "\n  ", 1)))[0].1, *phrase);
    }
    assert!(in_page("What a key is.\n\n// Where it is.\n\n`struct World;`, `fn who_knows()`\n").is_empty());
}

#[test]
fn clean_text_is_not_reported() {
    let clean = "//! Prices. What they are is said below, and whosoever reads it knows.\n\
                 //! Where a line continues a sentence, nothing is reported.\n\n\
                 use std::cell::Cell;\n\n\
                 /// The price is well-formed; it is, well, arrested. REST is of a late date: as good, as ever.\n\
                 /// of it. Late charges are open.\n\
                 struct Worlds<'a>(Cell<&'a str>);\n\n\
                 fn whole_one() -> &'static str {\n    \"What https://example.com/ // is\"\n}\n\
                 fn somewhat_of_it_rest() { let one_key = who_knows(); }\n";
    assert!(in_source(clean).is_empty(), "{:?}", in_source(clean));
}
