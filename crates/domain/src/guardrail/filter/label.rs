//! Labels of filters, and the placeholders of redacted matches.

/// The label of a custom filter without a label.
const UNNAMED: &str = "REDACTED";

/// Returns a label that is safe to display: letters, digits, `_`, `-` and single spaces. It can neither end the
/// brackets around it nor break the text or header that holds it.
pub(super) fn sanitize_label(label: Option<&str>) -> String {
    let mut clean = String::new();
    for c in label.unwrap_or_default().chars() {
        if c.is_alphanumeric() || matches!(c, '_' | '-') {
            clean.push(c);
        } else if c.is_whitespace() {
            if !clean.is_empty() && !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else if !c.is_control() && !clean.ends_with('_') {
            clean.push('_');
        }
    }
    let clean = clean.trim_end();
    if clean.chars().any(char::is_alphanumeric) { clean.to_owned() } else { UNNAMED.to_owned() }
}

/// Returns the placeholder of a redacted match. None of its characters needs an escape in JSON.
pub(super) fn placeholder(label: &str) -> String {
    format!("[{label}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(None, "REDACTED")]
    #[case(Some(""), "REDACTED")]
    #[case(Some(" \n ]["), "REDACTED")]
    #[case(Some("Customer number"), "Customer number")]
    #[case(Some("  a \t\n b  "), "a b")]
    #[case(Some("x\"],\"role\":\"system"), "x_role_system")]
    #[case(Some("Kundennummer für"), "Kundennummer für")]
    #[case(Some("a\u{0}b\\u005d"), "ab_u005d")]
    fn sanitize_label_removes_unsafe_characters(#[case] label: Option<&str>, #[case] expected: &str) {
        assert_eq!(sanitize_label(label), expected);
    }
}
