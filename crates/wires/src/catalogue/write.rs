//! Conversion of a model to JSON.

use domain::json::{Json, ObjectWriter};
use domain::model::{Architecture, Model, ModelId, Pricing};

use super::{ALWAYS, NO_TOKENIZER};
use crate::client::{array, string};

/// Writes the public row; `details` is the path of its endpoint list.
pub fn write_row(model: &Model, details: &str) -> String {
    shown(model, details).end()
}

/// Writes a row of a list: [`write_row`] plus the members that clients of OpenAI's model list expect.
pub fn write_listed(model: &Model, details: &str) -> String {
    // Aliases begin with a tilde; their models belong to the author all the same.
    let author = model.id.author().trim_start_matches('~');
    shown(model, details).text("object", "model").text("owned_by", author).end()
}

/// Writes the public input and output modalities.
pub fn write_architecture(architecture: &Architecture) -> String {
    self::architecture(architecture, &string(NO_TOKENIZER))
}

/// Writes the public prices: decimal strings in plain notation.
pub fn write_pricing(pricing: &Pricing) -> String {
    let four = [
        ("prompt", pricing.prompt),
        ("completion", pricing.completion),
        ("image", pricing.image),
        ("request", pricing.request),
    ];
    let further = pricing.further.iter().map(|(name, price)| (name.as_str(), *price));
    let prices = four.into_iter().chain(further);
    let object = prices.fold(ObjectWriter::new(), |object, (name, price)| object.text(name, price.to_string()));
    object.maybe("overrides", pricing.overrides.as_ref().map(Json::text)).end()
}

fn shown(model: &Model, details: &str) -> ObjectWriter {
    let object = known(model, &write_architecture(&model.architecture));
    let object = object.json("links", &ObjectWriter::new().text("details", details).end());
    let missing = ALWAYS.iter().filter(|name| !model.further.iter().any(|(further, _)| further == *name));
    missing.fold(object, |object, name| object.json(name, "null"))
}

/// Writes the stored row, which [`crate::catalogue::read_row`] reads back.
pub fn write_stored(model: &Model) -> String {
    let object = known(model, &architecture(&model.architecture, "null"));
    if model.renamed_from.is_empty() {
        return object.end();
    }
    object.json("renamed_from", &strings(model.renamed_from.iter().map(ModelId::as_str))).end()
}

fn known(model: &Model, architecture: &str) -> ObjectWriter {
    let top = &model.top_provider;
    let limits = ObjectWriter::new()
        .json("context_length", &number(top.context_length))
        .json("max_completion_tokens", &number(top.max_completion_tokens))
        .shown("is_moderated", top.is_moderated);
    let mut object = ObjectWriter::new()
        .text("id", model.id.as_str())
        .text("canonical_slug", model.canonical_slug.as_str())
        .text("name", &model.name)
        .shown("created", model.created)
        .text("description", &model.description)
        .json("context_length", &number(model.context_length))
        .json("architecture", architecture)
        .json("pricing", &write_pricing(&model.pricing))
        .json("top_provider", &limits.end())
        .json("supported_parameters", &strings(model.supported_parameters.iter().map(String::as_str)));
    if let Some(target) = &model.alias_target {
        let target = ObjectWriter::new().text("name", &target.name).text("slug", target.slug.as_str());
        object = object.json("alias_target", &target.end());
    }
    model.further.iter().fold(object, |object, (name, json)| object.json(name, json.text()))
}

/// `unknown` represents a tokenizer that the row does not name. Clients expect a name there.
fn architecture(architecture: &Architecture, unknown: &str) -> String {
    let optional = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), string);
    ObjectWriter::new()
        .json("modality", &optional(architecture.modality.as_deref()))
        .json("input_modalities", &strings(architecture.input_modalities.iter().map(String::as_str)))
        .json("output_modalities", &strings(architecture.output_modalities.iter().map(String::as_str)))
        .json("tokenizer", &architecture.tokenizer.as_deref().map_or_else(|| unknown.to_owned(), string))
        .json("instruct_type", &optional(architecture.instruct_type.as_deref()))
        .end()
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn strings<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    array(texts.map(string))
}
