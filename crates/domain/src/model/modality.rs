//! Output modalities of models, and the filter by them.

use std::str::FromStr;

use super::InvalidModalityFilter;

named_enum! {
    /// An output modality that models can be filtered by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Modality {
        /// `text`
        Text = "text",
        /// `image`
        Image = "image",
        /// `embeddings`
        Embeddings = "embeddings",
        /// `audio`
        Audio = "audio",
        /// `video`
        Video = "video",
        /// `rerank`
        Rerank = "rerank",
        /// `decisions`
        Decisions = "decisions",
        /// `speech`
        Speech = "speech",
        /// `transcription`
        Transcription = "transcription",
    }
}

/// A set of modalities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModalitySet(u16);

impl ModalitySet {
    /// Returns the set with `modality` added.
    #[must_use]
    pub fn with(self, modality: Modality) -> Self {
        Self(self.0 | 1 << modality as u16)
    }

    /// Returns true if the sets share a member.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the only member; `None` unless there is exactly one.
    pub fn only(self) -> Option<Modality> {
        Modality::ALL.into_iter().find(|&modality| self == Self::default().with(modality))
    }

    /// Returns true if `modality` is a member.
    pub fn contains(self, modality: Modality) -> bool {
        self.intersects(Self::default().with(modality))
    }
}

impl FromIterator<Modality> for ModalitySet {
    fn from_iter<I: IntoIterator<Item = Modality>>(modalities: I) -> Self {
        modalities.into_iter().fold(Self::default(), Self::with)
    }
}

/// A filter of models by output modality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModalityFilter {
    /// Every model.
    All,
    /// Models with at least one of these outputs.
    AnyOf(ModalitySet),
}

impl Default for ModalityFilter {
    /// Returns `text`, the default of the interface.
    fn default() -> Self {
        Self::AnyOf(ModalitySet::default().with(Modality::Text))
    }
}

impl FromStr for ModalityFilter {
    type Err = InvalidModalityFilter;

    /// Parses a comma-separated list in any case; `all`, alone or in the list, matches every model. Spaces around an
    /// element are ignored. An empty list or element, or an unknown name, is an error.
    fn from_str(text: &str) -> Result<Self, InvalidModalityFilter> {
        let mut set = ModalitySet::default();
        let mut all = false;
        for name in text.split(',').map(str::trim) {
            if name.eq_ignore_ascii_case("all") {
                all = true;
            } else {
                let modality = Modality::from_name(&name.to_ascii_lowercase())
                    .ok_or_else(|| InvalidModalityFilter(name.chars().take(64).collect()))?;
                set = set.with(modality);
            }
        }
        Ok(if all { Self::All } else { Self::AnyOf(set) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn filter_is_a_union_in_any_case() {
        let filter: ModalityFilter = "TEXT, Image".parse().unwrap();
        assert_eq!(filter, ModalityFilter::AnyOf([Modality::Text, Modality::Image].into_iter().collect()));
    }

    #[test]
    fn only_returns_the_single_member() {
        let set = |names: &[Modality]| names.iter().copied().collect::<ModalitySet>();
        for modality in Modality::ALL {
            assert_eq!(set(&[modality]).only(), Some(modality));
        }
        assert_eq!(set(&[]).only(), None);
        assert_eq!(set(&[Modality::Text, Modality::Decisions]).only(), None);
    }

    #[rstest]
    #[case("all")]
    #[case("text,ALL")]
    fn all_matches_everything_alone_or_in_a_list(#[case] text: &str) {
        assert_eq!(text.parse::<ModalityFilter>().unwrap(), ModalityFilter::All);
    }

    #[rstest]
    #[case("")]
    #[case(",")]
    #[case("text,")]
    #[case("all,")]
    #[case("file")]
    #[case("text;image")]
    #[case("all,nonsense")]
    fn parse_rejects_invalid_lists_and_names_valid_values(#[case] text: &str) {
        let message = text.parse::<ModalityFilter>().unwrap_err().to_string();
        assert!(
            message.contains("text, image, embeddings, audio, video, rerank, decisions, speech, transcription, all")
        );
    }
}
