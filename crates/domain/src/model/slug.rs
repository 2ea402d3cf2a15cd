//! The names of models: `author/slug`, `author/slug:variant`, `~author/family-latest`.

use std::str::FromStr;
use std::sync::Arc;

/// The author of the sandbox models, which answer inside this process. They are never a fallback for another model.
pub const SANDBOX_AUTHOR: &str = "sandbox";

/// The text is not a model name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a model id is author/slug with an optional :variant, made of letters, digits and - . _ ~")]
pub struct InvalidModelId;

/// The name of a model: `author/slug` with an optional `:variant`, in lower case. At most 256 bytes; author and slug
/// are made of `a-z 0-9 - . _ ~`, a variant of `a-z 0-9 - _`. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(Arc<str>);

text_access!(ModelId);

impl ModelId {
    /// Returns the author, before the slash.
    pub fn author(&self) -> &str {
        self.0.split_once('/').map_or("", |(author, _)| author)
    }

    /// Returns the name without the variant.
    pub fn base(&self) -> &str {
        self.0.split_once(':').map_or(self.as_str(), |(base, _)| base)
    }

    /// Returns the variant, after the colon.
    pub fn variant(&self) -> Option<&str> {
        self.0.split_once(':').map(|(_, variant)| variant)
    }
}

impl FromStr for ModelId {
    type Err = InvalidModelId;

    /// Parses a name in any case; the result is in lower case.
    fn from_str(text: &str) -> Result<Self, InvalidModelId> {
        let word = |part: &str, more: &[u8]| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b) || more.contains(&b))
        };
        let (author, rest) = text.split_once('/').ok_or(InvalidModelId)?;
        let (slug, variant) = match rest.split_once(':') {
            Some((slug, variant)) => (slug, Some(variant)),
            None => (rest, None),
        };
        let fits =
            text.len() <= 256 && word(author, b".~") && word(slug, b".~") && variant.is_none_or(|v| word(v, b""));
        if fits { Ok(Self(text.to_ascii_lowercase().into())) } else { Err(InvalidModelId) }
    }
}

/// A routing suffix: it has no own row, and refers to the base model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicVariant {
    /// `:nitro`, the fastest first.
    Nitro,
    /// `:floor`, the cheapest first.
    Floor,
    /// `:exacto`, the best first.
    Exacto,
    /// `:online`, with a web search; kept for old clients.
    Online,
}

impl DynamicVariant {
    /// Splits a dynamic suffix off a lower-case name.
    pub fn split(name: &str) -> Option<(&str, Self)> {
        let (stem, suffix) = name.rsplit_once(':')?;
        let variant = match suffix {
            "nitro" => Self::Nitro,
            "floor" => Self::Floor,
            "exacto" => Self::Exacto,
            "online" => Self::Online,
            _ => return None,
        };
        Some((stem, variant))
    }
}
