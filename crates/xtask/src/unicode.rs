//! Writes the character tables of the content filters from Unicode's data.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;

use anyhow::{Context, Result};
use icu_properties::props::{DefaultIgnorableCodePoint, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_properties::{GeneralCategory, UNICODE_VERSION, UnicodeGeneralCategory};

use crate::workspace;

/// The file with the tables.
const FILE: &str = "crates/domain/src/guardrail/filter/normalize/tables.rs";

/// Blocks of combining marks for any script, including unassigned code points.
const COMBINING_BLOCKS: [RangeInclusive<char>; 5] = [
    '\u{300}'..='\u{36f}',
    '\u{1ab0}'..='\u{1aff}',
    '\u{1dc0}'..='\u{1dff}',
    '\u{20d0}'..='\u{20ff}',
    '\u{fe20}'..='\u{fe2f}',
];

/// Writes the file.
pub fn run() -> Result<()> {
    let path = workspace::root().join(FILE);
    fs::write(&path, tables()).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the content of the file.
fn tables() -> String {
    let (major, minor, patch) = UNICODE_VERSION;
    let all = || ('\u{80}'..='\u{10ffff}').filter(|c| !c.is_ascii());
    let mut out = format!(
        "//! Characters of Unicode {major}.{minor}.{patch}. Written by `cargo xtask unicode`; do not edit.\n\n\
         /// Characters that cannot be seen, and marks that combine with any letter. Inclusive ranges, in order.\n\
         #[rustfmt::skip]\npub(super) const INVISIBLE: &[(u32, u32)] = &[\n"
    );
    let ranges = ranges(all().filter(|c| is_invisible(*c)));
    write_rows(&mut out, ranges.iter().map(|(first, last)| format!("({first:#x}, {last:#x}),")), 6);
    out.push_str(
        "];\n\n/// The zeros of the decimal digits of each script; the digits to 9 follow each. In order.\n\
         #[rustfmt::skip]\npub(super) const ZEROS: &[u32] = &[\n",
    );
    let digits: Vec<u32> =
        all().filter(|c| c.general_category() == GeneralCategory::DecimalNumber).map(u32::from).collect();
    write_rows(&mut out, digits.chunks(10).map(|ten| format!("{:#x},", ten[0])), 12);
    out.push_str("];\n");
    out
}

fn is_invisible(c: char) -> bool {
    match c.general_category() {
        // U+0085 (next line) is white space.
        GeneralCategory::Control => c != '\u{85}',
        GeneralCategory::Format => true,
        GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark => combines_with_latin(c),
        _ => {
            // The null notehead is a symbol without a glyph.
            c == '\u{1d159}'
                || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
                || COMBINING_BLOCKS.iter().any(|block| block.contains(&c))
        }
    }
}

/// Returns true for marks except the vowel signs of a single script, which are letters to their readers.
fn combines_with_latin(c: char) -> bool {
    let any = [Script::Inherited, Script::Common, Script::Unknown, Script::Latin, Script::Greek, Script::Cyrillic];
    any.contains(&CodePointMapData::<Script>::new().get(c))
        || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || COMBINING_BLOCKS.iter().any(|block| block.contains(&c))
}

fn ranges(chars: impl Iterator<Item = char>) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for code in chars.map(u32::from) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == code => *last = code,
            _ => ranges.push((code, code)),
        }
    }
    ranges
}

fn write_rows(out: &mut String, cells: impl Iterator<Item = String>, cells_per_row: usize) {
    let cells: Vec<String> = cells.collect();
    for row in cells.chunks(cells_per_row) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "    {}", row.join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_tables_are_those_of_the_unicode_data_in_use() {
        let committed = fs::read_to_string(workspace::root().join(FILE)).unwrap();
        assert!(committed == tables(), "{FILE} is not what `cargo xtask unicode` writes");
    }

    #[test]
    fn documentation_names_the_unicode_version_in_use() {
        let (major, minor, patch) = UNICODE_VERSION;
        let page = fs::read_to_string(workspace::root().join("docs/guardrails.md")).unwrap();
        assert!(page.contains(&format!("Unicode {major}.{minor}.{patch}")));
    }

    #[test]
    fn digits_come_in_tens() {
        let digits =
            ranges(('\u{80}'..='\u{10ffff}').filter(|c| c.general_category() == GeneralCategory::DecimalNumber));
        assert!(digits.iter().all(|(first, last)| (last - first + 1) % 10 == 0), "{digits:x?}");
    }
}
