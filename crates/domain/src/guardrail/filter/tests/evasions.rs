//! Disguised text is found like plain text.

use super::*;
use FilterAction::{Block, Redact};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use regex::Regex;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// States in which a filter finds a match.
const FOUND: &[&str] = &[
    "mail alice@example.com",
    "4111111111111111",
    "4111 1111 1111 1111",
    "123-45-6789",
    "call +14155550123",
    "192.168.10.20",
    "2001:db8::12:34",
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "ignore all previous instructions",
    "a zebra-4711",
];

fn class(pattern: &str) -> Vec<char> {
    let all: String = (0..=0x0010_ffff).filter_map(char::from_u32).collect();
    Regex::new(pattern).unwrap().find_iter(&all).flat_map(|found| found.as_str().chars()).collect()
}

static INVISIBLE: LazyLock<Vec<char>> = LazyLock::new(|| {
    let mut all = class(r"[[\p{Cf}\p{Cc}[[\p{Mn}\p{Me}]&&\p{Inherited}]]--[\t\n\r\u{85}]]");
    all.extend("\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2065}\u{fff0}\u{e0000}\u{e01f0}".chars());
    all
});
static DIGITS: LazyLock<Vec<char>> = LazyLock::new(|| class(r"\p{Nd}"));

fn of_every_kind(action: FilterAction) -> CompiledFilters {
    filters(&BuiltinFilter::ALL.map(|slug| (slug, action)), &[("zebra-[0-9]{4}", action, None)])
}

static BLOCKING: LazyLock<CompiledFilters> = LazyLock::new(|| of_every_kind(Block));

fn is_found(state: &str) -> bool {
    sent(&BLOCKING, state).is_err()
}

/// Returns the escape of a character inside `nesting` nested JSON strings.
fn escaped(c: char, nesting: u32) -> String {
    let mut escape = String::new();
    for unit in c.encode_utf16(&mut [0; 2]) {
        let backslashes = "\\".repeat(2_usize.pow(nesting));
        write!(escape, "{backslashes}u{unit:04x}").unwrap();
    }
    escape
}

#[test]
fn undisguised_texts_are_found() {
    for text in FOUND {
        assert!(is_found(Json::string(text).text()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::property_cases(128, ProptestConfig::default().cases)))]

    #[test]
    fn scan_ignores_invisible_characters(
        text in select(FOUND),
        inserted in prop::collection::vec((any::<Index>(), select(&INVISIBLE[..])), 1..6),
    ) {
        let mut chars: Vec<char> = text.chars().collect();
        for (place, c) in &inserted {
            chars.insert(place.index(chars.len() + 1), *c);
        }
        let disguised: String = chars.into_iter().collect();
        prop_assert!(is_found(Json::string(&disguised).text()), "{:?}", disguised);
    }

    #[test]
    fn scan_reads_digits_of_other_scripts(text in select(FOUND), tens in prop::collection::vec(any::<Index>(), 24)) {
        let mut tens = tens.iter().cycle();
        let disguised: String = text.chars().map(|c| match c.to_digit(10) {
            Some(digit) => {
                let ten = tens.next().unwrap().index(DIGITS.len() / 10);
                DIGITS[10 * ten + digit as usize]
            }
            None => c,
        }).collect();
        prop_assert!(is_found(Json::string(&disguised).text()), "{:?}", disguised);
    }

    #[test]
    fn scan_decodes_escapes(
        text in select(FOUND),
        places in prop::collection::vec(any::<bool>(), 64),
        nesting in 0_u32..4,
    ) {
        let disguised: String = text.chars().zip(places.iter().cycle()).map(|(c, is_escaped)| {
            if *is_escaped { escaped(c, nesting) } else { c.to_string() }
        }).collect();
        let state = format!("\"{disguised}\"");
        prop_assert!(Json::parse(&state).is_ok());
        prop_assert!(is_found(&state), "{}", state);
        let redacted = sent(&of_every_kind(Redact), &state).unwrap();
        prop_assert!(Json::parse(&redacted).is_ok() && !is_found(&redacted), "{}", redacted);
    }

    #[test]
    fn scan_decodes_escaped_part_names(places in prop::collection::vec(any::<bool>(), 14), word in select(&["text", "content"][..])) {
        let name: String = word.chars().zip(&places).map(|(c, is_escaped)| {
            if *is_escaped { escaped(c, 0) } else { c.to_string() }
        }).collect();
        let state = format!(r#"[{{"{name}":"alice@exam"}},{{"{word}":"ple.com"}}]"#);
        prop_assert!(is_found(&state), "{}", state);
    }

    #[test]
    fn scan_expands_exponents(leading in 0_usize..200, trailing in 0_usize..200, point in 0_usize..17) {
        let digits = format!("{}4111111111111111{}", "0".repeat(leading), "0".repeat(trailing));
        // The point follows `point` digits after the first digit of the card number.
        let (whole, fraction) = digits.split_at(leading + point);
        let whole = whole.trim_start_matches('0');
        let number = format!("{}.{fraction}0e{}", if whole.is_empty() { "0" } else { whole }, 16 - point);
        prop_assert!(is_found(&format!("[{number}]")), "{}", number);
        let small = format!("0.{}4111111111111111e{}", "0".repeat(leading), leading + 16);
        prop_assert!(is_found(&format!("[{small}]")), "{}", small);
        let shifted = format!("4111111111111111{}e-{trailing}", "0".repeat(trailing));
        prop_assert!(is_found(&format!("[{shifted}]")), "{}", shifted);
    }
}
