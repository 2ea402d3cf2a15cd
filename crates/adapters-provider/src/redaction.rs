//! Masks keys in texts of providers.

use http::header::{HeaderName, HeaderValue, PROXY_AUTHORIZATION};

/// The replacement of a key.
const MASK: &str = "***";
/// Bytes of a text that are read.
const MAX_BYTES: usize = 4096;
/// A shorter secret is too common to be searched for.
const MIN_SECRET_BYTES: usize = 4;
/// A word with this many bytes of a secret in sequence is masked.
const SHARED_BYTES: usize = 8;
/// The shortest part of a secret that is masked if it is a whole word, such as its beginning or its end.
const MIN_PART_BYTES: usize = 6;
/// A run of letters and digits of this length is a key.
const MIN_MIXED_BYTES: usize = 16;
/// A run of letters or of digits of this length is a key.
const MIN_UNIFORM_BYTES: usize = 40;
/// The beginnings of common keys.
const KEY_PREFIXES: [&str; 13] =
    ["sk-", "sk_", "pk-", "pk_", "rk_", "gsk_", "hf_", "xai-", "AIza", "eyJ", "ghp_", "glpat-", "AKIA"];

/// Masks the keys of one provider's calls, and words that look like keys.
#[derive(Clone)]
pub(crate) struct Redactor {
    secrets: Box<[String]>,
}

impl Redactor {
    /// Creates the redactor of the keys in these headers: the last words of the sensitive ones.
    pub(crate) fn of<'a>(headers: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>) -> Self {
        let headers = headers.into_iter();
        let sensitive = headers.filter(|(name, value)| value.is_sensitive() || **name == PROXY_AUTHORIZATION);
        let secrets = sensitive.filter_map(|(_, value)| value.to_str().ok()?.rsplit(' ').next());
        Self { secrets: secrets.filter(|secret| secret.len() >= MIN_SECRET_BYTES).map(str::to_owned).collect() }
    }

    /// Returns at most `max_chars` characters of the text on one line, with keys masked.
    pub(crate) fn redact(&self, text: &str, max_chars: usize) -> String {
        let mut text = beginning(text, MAX_BYTES).to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), MASK);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text.as_str();
        let (mut previous, mut separator) = ("", "");
        while !rest.is_empty() {
            let (word, behind) = rest.split_at(rest.find(|c| !is_key_char(c)).unwrap_or(rest.len()));
            if !word.is_empty() {
                let is_key = self.is_part_of_secret(word) || is_key(word) || is_labelled_key(word, previous, separator);
                // The full stop of a sentence is kept.
                let stop = &word[word.trim_end_matches('.').len()..];
                redacted.push_str(if is_key { MASK } else { word });
                redacted.push_str(if is_key { stop } else { "" });
                previous = word;
            }
            let (between, behind) = behind.split_at(behind.find(is_key_char).unwrap_or(behind.len()));
            separator = between;
            redacted.extend(between.chars().map(|c| if c.is_control() { ' ' } else { c }));
            rest = behind;
        }
        bounded(&redacted.split_whitespace().collect::<Vec<_>>().join(" "), max_chars)
    }

    /// Returns true if the word shares a longer piece with a secret.
    fn is_part_of_secret(&self, word: &str) -> bool {
        let shares = |secret: &str| {
            (word.len() >= MIN_PART_BYTES && secret.contains(word))
                || secret
                    .as_bytes()
                    .windows(SHARED_BYTES)
                    .any(|piece| word.as_bytes().windows(SHARED_BYTES).any(|other| other == piece))
        };
        self.secrets.iter().any(|secret| shares(secret))
    }
}

/// Returns true for a character that keys consist of.
fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '+' | '/' | '~')
}

/// Returns true for a word that looks like a key or a masked key.
fn is_key(word: &str) -> bool {
    let is_run_of_key = |run: &str| {
        let (letters, digits) = (run.contains(char::is_alphabetic), run.contains(|c: char| c.is_ascii_digit()));
        // Keys are ASCII; a sentence without spaces in another script is none.
        run.is_ascii() && (run.len() >= MIN_UNIFORM_BYTES || (letters && digits && run.len() >= MIN_MIXED_BYTES))
    };
    word.contains(MASK)
        || KEY_PREFIXES.iter().any(|prefix| word.len() > prefix.len() + 4 && word.starts_with(prefix))
        || word.split(|c: char| !c.is_alphanumeric()).any(is_run_of_key)
}

/// Returns true for a word behind `Bearer` or behind the name of a key: `token: abc123`.
fn is_labelled_key(word: &str, previous: &str, separator: &str) -> bool {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let previous = previous.to_ascii_lowercase();
    let is_scheme = matches!(previous.as_str(), "bearer" | "basic");
    let is_name = ["key", "token", "secret", "password"].iter().any(|name| previous.ends_with(name))
        && separator.contains([':', '=']);
    (is_scheme && (has_digit || word.len() >= MIN_MIXED_BYTES))
        || (is_name && has_digit && word.len() >= MIN_PART_BYTES)
}

/// Returns the longest beginning with at most `max` bytes.
fn beginning(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns at most `max` characters; a cut text ends with an ellipsis.
fn bounded(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use http::header::AUTHORIZATION;
    use rstest::rstest;

    const KEY: &str = "alpha-secret-0001";

    fn redactor() -> Redactor {
        let mut value = HeaderValue::from_static("Bearer alpha-secret-0001");
        value.set_sensitive(true);
        Redactor::of(&HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    #[rstest]
    #[case::key("bad key alpha-secret-0001.", "bad key ***.")]
    #[case::key_in_word("url /v1?key=xalpha-secret-0001y", "url /v1?key=***")]
    #[case::beginning("key alpha-secret-… is unknown", "key ***… is unknown")]
    #[case::end("ends with et-0001", "ends with ***")]
    #[case::bearer("got Bearer abc123", "got Bearer ***")]
    #[case::bearer_in_prose("Bearer token is missing", "Bearer token is missing")]
    #[case::labelled("api_key: 'xyz789'", "api_key: '***'")]
    #[case::prefixed("provided: sk-proj-Ab3d", "provided: ***")]
    #[case::masked("provided: ab****yz", "provided: ***")]
    #[case::hex("trace 0123456789abcdef", "trace ***")]
    #[case::jwt("eyJhbGciOi.J9", "***")]
    #[case::model(
        "no model meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "no model meta-llama/Llama-3.3-70B-Instruct-Turbo"
    )]
    #[case::lines("a\r\n  b\u{7}c", "a b c")]
    fn redact_masks_keys_only(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redactor().redact(text, 256), expected);
    }

    #[test]
    fn redact_masks_key_before_it_cuts() {
        for padding in 0..300 {
            let text = format!("{}{KEY}", ". ".repeat(padding));
            let redacted = redactor().redact(&text, 256);
            assert!(!redacted.contains("alpha") && redacted.chars().count() <= 256, "{redacted}");
        }
        let at_limit = format!("{}{KEY}", "a ".repeat(MAX_BYTES / 2 - 5));
        assert!(!redactor().redact(&at_limit, 9_000).contains("alpha-se"));
    }
}
