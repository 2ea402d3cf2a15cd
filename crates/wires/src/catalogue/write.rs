//! Conversion of a model to JSON.

use domain::json::Json;
use domain::model::{Architecture, Model, Pricing};

/// Members of every shown row; null if the row has no value.
const ALWAYS: [&str; 6] = [
    "hugging_face_id",
    "per_request_limits",
    "default_parameters",
    "supported_voices",
    "knowledge_cutoff",
    "expiration_date",
];

/// Writes the public row; `details` is the path of its endpoint list.
pub fn write_row(model: &Model, details: &str) -> String {
    shown(model, details).close()
}

/// Writes a row of a list: [`write_row`] plus the members that clients of OpenAI's model list expect.
pub fn write_listed(model: &Model, details: &str) -> String {
    let mut object = shown(model, details);
    object.member("object", "\"model\"");
    // Aliases begin with a tilde; their models belong to the author all the same.
    object.member("owned_by", &quoted(model.id.author().trim_start_matches('~')));
    object.close()
}

/// Writes the public input and output modalities.
pub fn write_architecture(architecture: &Architecture) -> String {
    self::architecture(architecture, "\"Other\"")
}

/// Writes the public prices: decimal strings in plain notation.
pub fn write_pricing(pricing: &Pricing) -> String {
    self::pricing(pricing)
}

fn shown(model: &Model, details: &str) -> Object {
    let mut object = known(model, &write_architecture(&model.architecture));
    object.member("links", &format!("{{\"details\":{}}}", quoted(details)));
    for name in ALWAYS {
        if !model.further.iter().any(|(further, _)| further == name) {
            object.member(name, "null");
        }
    }
    object
}

/// Writes the stored row, which [`crate::catalogue::read_row`] reads back.
pub fn write_stored(model: &Model) -> String {
    let mut object = known(model, &architecture(&model.architecture, "null"));
    if !model.renamed_from.is_empty() {
        let names: Vec<String> = model.renamed_from.iter().map(|name| quoted(name.as_str())).collect();
        object.member("renamed_from", &format!("[{}]", names.join(",")));
    }
    object.close()
}

fn known(model: &Model, architecture: &str) -> Object {
    let mut object = Object::new();
    object.member("id", &quoted(model.id.as_str()));
    object.member("canonical_slug", &quoted(model.canonical_slug.as_str()));
    object.member("name", &quoted(&model.name));
    object.member("created", &model.created.to_string());
    object.member("description", &quoted(&model.description));
    object.member("context_length", &number(model.context_length));
    object.member("architecture", architecture);
    object.member("pricing", &pricing(&model.pricing));
    let top = &model.top_provider;
    object.member(
        "top_provider",
        &format!(
            "{{\"context_length\":{},\"max_completion_tokens\":{},\"is_moderated\":{}}}",
            number(top.context_length),
            number(top.max_completion_tokens),
            top.is_moderated
        ),
    );
    object.member("supported_parameters", &strings(&model.supported_parameters));
    if let Some(target) = &model.alias_target {
        let (name, slug) = (quoted(&target.name), quoted(target.slug.as_str()));
        object.member("alias_target", &format!("{{\"name\":{name},\"slug\":{slug}}}"));
    }
    for (name, json) in &model.further {
        object.member(name, json.text());
    }
    object
}

/// `unknown` represents a tokenizer that the row does not name. Clients expect a name there.
fn architecture(architecture: &Architecture, unknown: &str) -> String {
    let mut object = Object::new();
    object.member("modality", &optional(architecture.modality.as_deref()));
    object.member("input_modalities", &strings(&architecture.input_modalities));
    object.member("output_modalities", &strings(&architecture.output_modalities));
    object.member("tokenizer", &architecture.tokenizer.as_deref().map_or_else(|| unknown.to_owned(), quoted));
    object.member("instruct_type", &optional(architecture.instruct_type.as_deref()));
    object.close()
}

fn pricing(pricing: &Pricing) -> String {
    let mut object = Object::new();
    let four = [
        ("prompt", pricing.prompt),
        ("completion", pricing.completion),
        ("image", pricing.image),
        ("request", pricing.request),
    ];
    for (name, price) in four.into_iter().chain(pricing.further.iter().map(|(name, price)| (name.as_str(), *price))) {
        // Digits, a sign and a point need no escaping.
        object.member(name, &format!("\"{price}\""));
    }
    if let Some(overrides) = &pricing.overrides {
        object.member("overrides", overrides.text());
    }
    object.close()
}

fn quoted(text: &str) -> String {
    Json::from(serde_json::Value::from(text)).text().to_owned()
}

fn optional(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn strings(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(","))
}

/// An object written member by member, so that opaque values keep their bytes.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn member(&mut self, name: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
    }

    fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
