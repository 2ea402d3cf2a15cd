//! Canonical form -> request body.

use bytes::Bytes;
use domain::json::Json;

/// The body: the model's name at the provider, and `state` and `questions` byte for byte as the caller wrote them.
/// These are all that a provider gets to see, so they are all that this function is given.
pub fn write(upstream_model: &str, state: Option<&Json>, questions: &Json) -> Bytes {
    let model = Json::from(serde_json::Value::from(upstream_model));
    let mut body = String::with_capacity(
        48 + model.text().len() + state.map_or(0, |state| state.text().len()) + questions.text().len(),
    );
    body.push_str(r#"{"model":"#);
    body.push_str(model.text());
    if let Some(state) = state {
        body.push_str(r#","state":"#);
        body.push_str(state.text());
    }
    body.push_str(r#","questions":"#);
    body.push_str(questions.text());
    body.push('}');
    body.into()
}
