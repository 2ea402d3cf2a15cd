//! Error rates of the built-in filters on lines as people and programs write them. The documentation lists them.

use super::*;

const CLEAN: &str = include_str!("corpus/rates/clean.txt");
const DOCUMENTATION: &str = include_str!("../../../../../../docs/guardrails.md");

fn dirty(filter: BuiltinFilter) -> &'static str {
    match filter {
        BuiltinFilter::Email => include_str!("corpus/rates/email.txt"),
        BuiltinFilter::Phone => include_str!("corpus/rates/phone.txt"),
        BuiltinFilter::Ssn => include_str!("corpus/rates/ssn.txt"),
        BuiltinFilter::CreditCard => include_str!("corpus/rates/credit-card.txt"),
        BuiltinFilter::IpAddress => include_str!("corpus/rates/ip-address.txt"),
        BuiltinFilter::Secrets => include_str!("corpus/rates/secrets.txt"),
        BuiltinFilter::RegexPromptInjection => include_str!("corpus/rates/prompt-injection.txt"),
    }
}

/// Counts the lines on which a filter is wrong, and all lines. A line is a JSON value or a text.
fn count_errors(filters: &CompiledFilters, lines: &str, is_dirty: bool) -> (usize, usize) {
    let (mut errors, mut all) = (0, 0);
    for line in lines.lines().filter(|line| !line.starts_with("# ")) {
        let state = if line.starts_with('{') { line.to_owned() } else { serde_json::to_string(line).unwrap() };
        all += 1;
        if sent(filters, &state).is_err() != is_dirty {
            errors += 1;
            eprintln!("{}: {line}", if is_dirty { "missed" } else { "false match" });
        }
    }
    (errors, all)
}

fn share((errors, all): (usize, usize)) -> String {
    format!(
        "{errors} of {all} ({:.1} %)",
        100.0 * f64::from(u32::try_from(errors).unwrap()) / f64::from(u32::try_from(all).unwrap())
    )
}

#[test]
fn error_rates_are_those_of_the_documentation() {
    let mut wrong = Vec::new();
    for filter in BuiltinFilter::ALL {
        let slug = filter.as_str();
        eprintln!("-- {slug}");
        let block = filters(&[(filter, FilterAction::Block)], &[]);
        let false_matches = share(count_errors(&block, CLEAN, false));
        let missed = share(count_errors(&block, dirty(filter), true));
        let row = format!("| `{slug}` | {false_matches} | {missed} |");
        if !DOCUMENTATION.lines().any(|line| line == row) {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "docs/guardrails.md must list:\n{}", wrong.join("\n"));
}
