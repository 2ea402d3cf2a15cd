//! Request bodies, put together without reading what is in them again.

use domain::json::Json;

use crate::http::Payload;

/// A JSON object of these members, whose values are JSON already, behind the model's name where there is one.
pub(crate) fn body(model: Option<&str>, members: &[(&str, &str)]) -> Payload {
    let model = model.map(Json::string);
    let members = model.iter().map(|model| ("model", model.text())).chain(members.iter().copied());
    Payload::json(object(members))
}

/// A JSON object of members with plain names, whose values are JSON already.
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
