//! Builder of request bodies from JSON texts that are not parsed again.

use domain::json::Json;

use crate::http::Payload;

/// Builds a JSON object of the model's name, if given, and these members, whose values are JSON texts.
pub(crate) fn body(model: Option<&str>, members: &[(&str, &str)]) -> Payload {
    let model = model.map(Json::string);
    let members = model.iter().map(|model| ("model", model.text())).chain(members.iter().copied());
    Payload::json(object(members))
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
