//! The served OpenAPI document: its examples name a model that can be called now.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use domain::model::{DefaultModality, ListModels, ModelFilter, ModelListRequest, SANDBOX_AUTHOR, Visibility};
use serde_json::{Value, json};

/// The sandbox's model, which the examples name.
pub(crate) const SANDBOX_MODEL: &str = "sandbox/decider";
/// The same model by the name of its free variant.
pub(crate) const SANDBOX_VARIANT: &str = "sandbox/decider:free";

/// The document, rendered for the current example model.
pub(crate) struct RenderedOpenApi {
    document: Value,
    rendered: ArcSwap<Rendered>,
}

struct Rendered {
    /// The example model; `None` is the sandbox's.
    model: Option<String>,
    body: Bytes,
}

impl RenderedOpenApi {
    /// Creates the document with the examples of the sandbox.
    pub(crate) fn new(document: Value) -> Self {
        let rendered = Rendered { model: None, body: document.to_string().into() };
        Self { document, rendered: ArcSwap::from_pointee(rendered) }
    }

    /// Returns the text of the document. A reload changes the models, so the last text is kept with its model.
    pub(crate) fn render(&self, models: &ListModels) -> Bytes {
        let model = example_model(models);
        let current = self.rendered.load();
        if current.model == model {
            return current.body.clone();
        }
        let mut document = self.document.clone();
        if let Some(model) = &model {
            name_example_model(&mut document["paths"], model);
        }
        let body = Bytes::from(document.to_string());
        self.rendered.store(Arc::new(Rendered { model, body: body.clone() }));
        body
    }
}

/// Returns the first callable model of a provider if the sandbox is off.
fn example_model(models: &ListModels) -> Option<String> {
    let filter = ModelFilter::of(DefaultModality::Decisions);
    let list = models.execute(&ModelListRequest { filter, visibility: Visibility::Callable, sort: None, page: None });
    let rows = || list.rows.iter().map(|&row| &list.snapshot.rows()[row]);
    if rows().any(|row| row.id.as_str() == SANDBOX_MODEL) {
        return None;
    }
    let is_usable = |row: &&Arc<domain::model::Model>| row.alias_target.is_none() && row.id.author() != SANDBOX_AUTHOR;
    rows().find(is_usable).map(|row| row.id.as_str().to_owned())
}

/// Replaces the sandbox's model in every example.
fn name_example_model(value: &mut Value, model: &str) {
    match value {
        Value::String(text) if text == SANDBOX_MODEL || text == SANDBOX_VARIANT => model.clone_into(text),
        Value::Array(elements) => elements.iter_mut().for_each(|element| name_example_model(element, model)),
        Value::Object(members) => {
            name_example_parameter(members, model);
            members.values_mut().for_each(|member| name_example_model(member, model));
        }
        _ => {}
    }
}

/// Replaces the example of a path's `author` or `slug`.
fn name_example_parameter(parameter: &mut serde_json::Map<String, Value>, model: &str) {
    let Some((author, slug)) = model.split_once('/') else { return };
    let part = match parameter.get("name").and_then(Value::as_str) {
        Some("author") => author,
        Some("slug") => slug,
        _ => return,
    };
    if let Some(example) = parameter.get_mut("example") {
        *example = json!(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::openapi_document;
    use domain::model::{Model, Pricing};
    use domain::money::Price;
    use domain::routing::{Endpoint, EndpointDirectory, Wire};
    use domain::testing::MemoryCatalogue;

    fn models(ids: &[&str], endpoints: &[&str]) -> ListModels {
        let row = |id: &&str| Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        let endpoint = |id: &&str| Endpoint::new(id.parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        ListModels::new(
            Arc::new(MemoryCatalogue::new(ids.iter().map(row).collect())),
            Arc::new(EndpointDirectory::new(endpoints.iter().map(endpoint).collect())),
        )
    }

    #[test]
    fn examples_name_a_callable_model() {
        let live = RenderedOpenApi::new(openapi_document("/api/v1"));
        let rendered = |models: &ListModels| serde_json::from_slice::<Value>(&live.render(models)).unwrap();
        let decisions = "/paths/~1api~1v1~1api~1alpha~1decisions/post";
        for (ids, endpoints, expected) in [
            (&["a/one", "b/two"][..], &["b/two"][..], "b/two"),
            (&["a/one", "sandbox/decider"], &["a/one", "sandbox/decider"], SANDBOX_VARIANT),
            (&["a/one", "sandbox/error-402"], &["a/one", "sandbox/error-402"], "a/one"),
            (&["a/one"], &[], SANDBOX_VARIANT),
        ] {
            let document = rendered(&models(ids, endpoints));
            let operation = document.pointer(decisions).unwrap();
            for content in ["/requestBody", "/responses/200"] {
                let example = format!("{content}/content/application~1json/examples/sandbox/value/model");
                assert_eq!(operation.pointer(&example).unwrap(), expected, "{endpoints:?}");
            }
            let parameters = &document["paths"]["/api/v1/model/{author}/{slug}"]["get"]["parameters"];
            let author = if expected == SANDBOX_VARIANT { "sandbox" } else { expected.split('/').next().unwrap() };
            assert_eq!(parameters[0]["example"], author, "{parameters}");
        }
    }
}
