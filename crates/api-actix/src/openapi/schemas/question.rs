//! The schemas of `questions`: typed ones, or any other JSON value.

use domain::question::{MAX_LEVELS, MAX_OPTIONS};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A map of typed questions, or any other JSON value.
pub(crate) enum Questions {}

/// One typed question.
pub(crate) enum Question {}

impl PartialSchema for Questions {
    fn schema() -> RefOr<Schema> {
        let typed = question_map().description(Some("Typed questions by name, which are validated.")).build();
        let opaque = ObjectBuilder::new()
            .schema_type(SchemaType::AnyValue)
            .description(Some("Any other JSON value, which is forwarded unchanged to wires that accept it."));
        AnyOfBuilder::new().item(Schema::Object(typed)).item(opaque).into()
    }
}

impl ToSchema for Questions {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Question::name().into_owned(), Question::schema()));
    }
}

impl PartialSchema for Question {
    fn schema() -> RefOr<Schema> {
        let sides = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
            .property("true", text("The meaning of yes."))
            .property("false", text("The meaning of no."))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .description(Some("The sides; at least one if there are no instructions."));
        let options = ObjectBuilder::new()
            .schema_type(Type::Object)
            .additional_properties(Some(text("The description of an option.")))
            .description(Some(format!("1 to {MAX_OPTIONS} options by name.")));
        let levels = ArrayBuilder::new()
            .items(text("The description of a level."))
            .min_items(Some(1))
            .max_items(Some(MAX_LEVELS))
            .description(Some("The levels, lowest first."));
        OneOfBuilder::new()
            .item(question("noul", "Asks whether something is true.").property("criteria", sides))
            .item(
                question("choice", "Asks which of several options.").property("criteria", options).required("criteria"),
            )
            .item(question("score", "Asks how much, on a scale.").property("criteria", levels).required("criteria"))
            .item(question("box", "Asks for a rectangle in an image.").required("instructions"))
            .description(Some("A typed question."))
            .into()
    }
}

impl ToSchema for Question {}

/// Returns the schema of a map of typed questions.
pub(crate) fn question_map() -> ObjectBuilder {
    let question: RefOr<Schema> = Ref::from_schema_name(Question::name()).into();
    ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(question))
}

fn question(kind: &str, description: &str) -> ObjectBuilder {
    let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([kind]));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(description))
        .property("type", name)
        .required("type")
        .property("instructions", text("The question in words."))
        // Unknown members are ignored.
        .additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

/// Returns the schema of a text: a string, an object or an array; null counts as absent.
fn text(description: &str) -> ObjectBuilder {
    let types = [Type::String, Type::Object, Type::Array, Type::Null];
    ObjectBuilder::new().schema_type(SchemaType::from_iter(types)).description(Some(description))
}

#[cfg(test)]
mod tests {
    use crate::app::openapi_document;
    use openapi_check::Schemas;
    use serde_json::{Value, json};

    #[test]
    fn question_schema_accepts_what_the_parser_accepts() {
        let schemas = Schemas::new(openapi_document("/api/v1")).unwrap();
        let violations = |schema: &str, value: &Value| {
            schemas.violations(&json!({"$ref": format!("#/components/schemas/{schema}")}), value)
        };
        for (question, is_valid) in [
            (json!({"type": "noul", "instructions": "?"}), true),
            (json!({"type": "noul", "criteria": {"true": ["a", 1]}, "later": 1}), true),
            (json!({"type": "choice", "criteria": {"a": null, "b": {"c": 1}}}), true),
            (json!({"type": "score", "instructions": {"task": "?"}, "criteria": ["a", {"b": 1}]}), true),
            (json!({"type": "box", "instructions": "?"}), true),
            (json!({"type": "noul", "instructions": 7}), false),
            (json!({"type": "choice"}), false),
            (json!({"type": "choice", "criteria": ["a"]}), false),
            (json!({"type": "score", "criteria": {"a": null}}), false),
            (json!({"type": "score", "criteria": []}), false),
            (json!({"type": "rank", "instructions": "?"}), false),
            (json!({"instructions": "?"}), false),
        ] {
            assert_eq!(violations("Question", &question).is_empty(), is_valid, "{question}");
        }
        for opaque in [json!("?"), json!(["a"]), json!({"a": 1}), json!({"a": {"type": "noul", "instructions": "?"}})] {
            assert_eq!(violations("Questions", &opaque), [""; 0], "{opaque}");
        }
    }
}
