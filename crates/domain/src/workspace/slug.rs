//! The slug of a workspace: its name in URLs.

use crate::ids::WorkspaceId;

/// The most characters of a slug.
const MAX_CHARS: usize = 50;

/// The text is no slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a slug has 1 to {MAX_CHARS} lower-case letters, digits and single hyphens between them, such as team-a, and is \
     no UUID"
)]
pub struct InvalidWorkspaceSlug;

/// A name of 1 to 50 lower-case letters, digits and single hyphens between them. It is no UUID, so that no slug hides
/// behind the id of another workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkspaceSlug(String);

text_access!(WorkspaceSlug);

impl WorkspaceSlug {
    /// Validates length and characters.
    ///
    /// # Errors
    /// The text is no slug.
    pub fn try_new(slug: &str) -> Result<Self, InvalidWorkspaceSlug> {
        let is_part = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let is_slug = slug.len() <= MAX_CHARS && slug.split('-').all(is_part) && slug.parse::<WorkspaceId>().is_err();
        if is_slug { Ok(Self(slug.to_owned())) } else { Err(InvalidWorkspaceSlug) }
    }

    /// Makes a slug of a name: its letters and digits in lower case, with a hyphen for everything between them. A name
    /// without any becomes `workspace`.
    pub fn of_name(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        let parts: Vec<&str> =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let slug = parts.join("-");
        let cut = slug.get(..MAX_CHARS).unwrap_or(&slug).trim_end_matches('-');
        Self::try_new(cut).unwrap_or_else(|_| Self("workspace".to_owned()))
    }

    /// Returns the slug with a number at its end: `team-a` with 2 is `team-a-2`.
    #[must_use]
    pub fn numbered(&self, number: u64) -> Self {
        let suffix = format!("-{number}");
        let room = MAX_CHARS - suffix.len();
        let base = self.0.get(..room).unwrap_or(&self.0).trim_end_matches('-');
        Self(format!("{base}{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slug_has_lower_case_letters_digits_and_single_hyphens() {
        let longest = "a".repeat(50);
        for slug in ["a", "0", "team-a", "a-b-c-1", longest.as_str()] {
            assert_eq!(WorkspaceSlug::try_new(slug).unwrap().as_str(), slug);
        }
        let too_long = "a".repeat(51);
        let uuid = "01990000-0000-7000-8000-000000000001";
        for no_slug in ["", "-", "-a", "a-", "a--b", "A", "a b", "ä", "a_b", "a/b", "a\n", too_long.as_str(), uuid] {
            assert_eq!(WorkspaceSlug::try_new(no_slug), Err(InvalidWorkspaceSlug), "{no_slug:?}");
        }
    }

    #[test]
    fn slug_of_name_keeps_its_letters_and_digits() {
        let of = |name: &str| WorkspaceSlug::of_name(name).as_str().to_owned();
        assert_eq!(of("Team A"), "team-a");
        assert_eq!(of("  büro / 2. OG "), "b-ro-2-og");
        assert_eq!(of("数学"), "workspace");
        assert_eq!(of("01990000-0000-7000-8000-000000000001"), "workspace");
        assert_eq!(of(&format!("{} b", "a".repeat(49))), "a".repeat(49));
        let slug = |slug: &str| WorkspaceSlug::try_new(slug).unwrap();
        assert_eq!(slug("team-a").numbered(2), slug("team-a-2"));
        assert_eq!(slug(&"a".repeat(50)).numbered(12), slug(&format!("{}-12", "a".repeat(47))));
    }

    proptest! {
        #[test]
        fn slugs_made_of_names_are_slugs(name in "\\PC{1,100}", number in 2_u64..) {
            let slug = WorkspaceSlug::of_name(&name);
            prop_assert_eq!(WorkspaceSlug::try_new(slug.as_str()), Ok(slug.clone()));
            let numbered = slug.numbered(number);
            prop_assert_eq!(WorkspaceSlug::try_new(numbered.as_str()), Ok(numbered.clone()));
        }
    }
}
