//! Request bodies, built from JSON texts that are not parsed again.

use std::sync::Arc;

use domain::json::Json;

/// A request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestBody {
    /// JSON.
    Json(String),
    /// A form, in pieces, so that files are not copied.
    Form {
        /// The media type with the boundary.
        media_type: String,
        /// The content, in order.
        pieces: Vec<Piece>,
    },
}

/// A piece of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text: a head, or JSON.
    Text(String),
    /// The content of a file.
    File(Arc<[u8]>),
}

impl RequestBody {
    /// Returns the media type.
    pub fn media_type(&self) -> &str {
        match self {
            Self::Json(_) => "application/json",
            Self::Form { media_type, .. } => media_type,
        }
    }

    /// Returns the length in bytes.
    pub fn len_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Json(text) => text.len(),
            Self::Form { pieces, .. } => pieces.iter().map(|piece| piece.as_bytes().len()).sum(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the whole content.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(text) => text.clone().into_bytes(),
            Self::Form { pieces, .. } => pieces.iter().flat_map(Piece::as_bytes).copied().collect(),
        }
    }
}

impl Piece {
    /// Returns the content.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::File(data) => data,
        }
    }
}

/// Builds a JSON object of the model's name, if given, and these members, whose values are JSON texts.
pub(crate) fn body(model: Option<&str>, members: &[(&str, &str)]) -> RequestBody {
    let model = model.map(Json::string);
    let members = model.iter().map(|model| ("model", model.text())).chain(members.iter().copied());
    RequestBody::Json(object(members))
}

/// Builds a JSON object of members with plain names, whose values are JSON texts.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let length: usize = members.clone().into_iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut text = String::with_capacity(length + 2);
    text.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push('"');
        text.push_str(name);
        text.push_str("\":");
        text.push_str(value);
    }
    text.push('}');
    text
}
