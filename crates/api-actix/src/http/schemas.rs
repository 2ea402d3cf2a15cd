//! The schemas of request and response bodies, derived from the types that are parsed and written.

use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::response_body::{Data, Page};

/// The schemas of a document, each with its name.
#[derive(Default)]
pub(crate) struct SchemaList(Vec<(String, RefOr<Schema>)>);

impl SchemaList {
    /// Adds the schema of a type, and those that it refers to.
    pub(crate) fn add<T: ToSchema>(&mut self) {
        self.add_schema(&T::name(), T::schema());
        T::schemas(&mut self.0);
    }

    /// Adds the schema of a type under a name other than the type's, and those that it refers to.
    pub(crate) fn add_as<T: ToSchema>(&mut self, name: &str, description: &str) {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description = Some(description.to_owned());
        }
        self.add_schema(name, schema);
        T::schemas(&mut self.0);
    }

    /// Adds the schema of one record in an envelope. The name of a generic type does not tell its content.
    pub(crate) fn add_data<T: ToSchema>(&mut self, name: &str, description: &str) {
        self.add::<T>();
        self.add_as::<Data<T>>(name, description);
    }

    /// Adds the schema of a page of records.
    pub(crate) fn add_page<T: ToSchema>(&mut self, name: &str, description: &str) {
        self.add::<T>();
        self.add_as::<Page<T>>(name, description);
    }

    /// Adds a schema that no type has.
    pub(crate) fn add_schema(&mut self, name: &str, schema: RefOr<Schema>) {
        self.0.push((name.to_owned(), schema));
    }

    /// Returns the schemas. A schema that several routes use occurs several times.
    pub(crate) fn into_inner(self) -> Vec<(String, RefOr<Schema>)> {
        self.0
    }
}
