//! The JSON shapes of files, of their lists and of their deletions. The client's headers select one.

use actix_web::http::header::HeaderMap;
use chrono::SecondsFormat;
use domain::file::{Document, DocumentList};
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder};

use crate::endpoints::prelude::*;
use crate::http::client::{FileShape, WireNames, is_openai_package};

/// The shape of an answer, and the name that stands in `_shape`.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    shape: FileShape,
    name: &'static str,
}

impl Shape {
    /// Returns the shape that the caller's client decodes.
    pub(crate) fn of(call: &Call<'_>) -> Self {
        Self::named(shape_for(call.request.headers()), call.wire_names())
    }

    fn named(shape: FileShape, names: WireNames) -> Self {
        Self { shape, name: names.shape(shape) }
    }

    /// Creates the response with one file.
    pub(crate) fn file(self, document: &Document) -> HttpResponse {
        HttpResponse::Ok().json(self.view(document))
    }

    /// Creates the response with a page of files.
    pub(super) fn list(self, list: &DocumentList) -> HttpResponse {
        let id = |document: Option<&Document>| document.map(|document| document.id.to_string());
        let (shape, has_more) = (self.name, list.has_more);
        let (first_id, last_id) = (id(list.documents.first()), id(list.documents.last()));
        let data: Vec<FileView<'_>> = list.documents.iter().map(|document| self.view(document)).collect();
        let mut response = HttpResponse::Ok();
        match self.shape {
            FileShape::Native => {
                response.json(NativeFileList { shape, data, cursor: list.cursor(), first_id, last_id, has_more })
            }
            FileShape::VendorA => response.json(VendorAFileList { shape, data, first_id, last_id, has_more }),
            FileShape::VendorB => {
                response.json(VendorBFileList { shape, object: "list", data, first_id, last_id, has_more })
            }
        }
    }

    /// Creates the response to a deletion.
    pub(super) fn deleted(self, document: &Document) -> HttpResponse {
        let (shape, id) = (self.name, document.id.as_str());
        match self.shape {
            FileShape::Native | FileShape::VendorA => {
                HttpResponse::Ok().json(NativeFileDeleted { shape, id, r#type: "file_deleted" })
            }
            FileShape::VendorB => {
                HttpResponse::Ok().json(VendorBFileDeleted { shape, id, object: "file", deleted: true })
            }
        }
    }

    fn view(self, document: &Document) -> FileView<'_> {
        match self.shape {
            FileShape::Native | FileShape::VendorA => FileView::Native(NativeFile {
                shape: self.name,
                id: document.id.as_str(),
                r#type: "file",
                filename: &document.filename,
                mime_type: &document.media_type,
                size_bytes: document.size_bytes,
                created_at: document.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
                downloadable: true,
            }),
            FileShape::VendorB => FileView::VendorB(VendorBFile {
                shape: self.name,
                id: document.id.as_str(),
                object: "file",
                bytes: document.size_bytes,
                created_at: document.created_at.timestamp(),
                filename: &document.filename,
                purpose: Purpose::AssistantsOutput,
                status: "processed",
            }),
        }
    }
}

/// Returns the shape that the caller's client decodes, derived from its headers.
fn shape_for(headers: &HeaderMap) -> FileShape {
    if headers.contains_key("anthropic-version") {
        return FileShape::VendorA;
    }
    if is_openai_package(headers) || headers.keys().any(|name| name.as_str().starts_with("x-stainless-")) {
        FileShape::VendorB
    } else {
        FileShape::Native
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum FileView<'a> {
    Native(NativeFile<'a>),
    VendorB(VendorBFile<'a>),
}

/// A stored file in the shapes `native` and `vendor_a`, which differ only in `_shape`.
#[derive(Serialize, ToSchema)]
struct NativeFile<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    /// The durable id.
    id: &'a str,
    #[schema(pattern = "^file$")]
    r#type: &'static str,
    /// The file's path in its container.
    filename: &'a str,
    mime_type: &'a str,
    size_bytes: u64,
    /// ISO 8601, UTC.
    created_at: DateTime,
    downloadable: bool,
}

/// A stored file in the shape of another vendor's files API.
#[derive(Serialize, ToSchema)]
struct VendorBFile<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    /// The durable id.
    id: &'a str,
    #[schema(pattern = "^file$")]
    object: &'static str,
    bytes: u64,
    /// Unix epoch seconds.
    created_at: i64,
    /// The file's path in its container.
    filename: &'a str,
    purpose: Purpose,
    #[schema(pattern = "^processed$")]
    status: &'static str,
}

/// The purpose of a file; promoted files have `assistants_output`.
#[derive(Serialize, ToSchema)]
#[expect(dead_code, reason = "clients know all purposes; promoted files have one")]
enum Purpose {
    #[serde(rename = "assistants")]
    Assistants,
    #[serde(rename = "batch")]
    Batch,
    #[serde(rename = "fine-tune")]
    FineTune,
    #[serde(rename = "vision")]
    Vision,
    #[serde(rename = "user_data")]
    UserData,
    #[serde(rename = "evals")]
    Evals,
    #[serde(rename = "assistants_output")]
    AssistantsOutput,
    #[serde(rename = "batch_output")]
    BatchOutput,
    #[serde(rename = "fine-tune-results")]
    FineTuneResults,
}

/// A page of files in the service's own shape.
#[derive(Serialize, ToSchema)]
struct NativeFileList<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    #[schema(schema_with = files_schema)]
    data: Vec<FileView<'a>>,
    /// The value of `cursor` for the next page; null at the end.
    #[schema(required)]
    cursor: Option<String>,
    #[schema(required)]
    first_id: Option<String>,
    #[schema(required)]
    last_id: Option<String>,
    has_more: bool,
}

/// A page of files in the shape of one vendor's files API.
#[derive(Serialize, ToSchema)]
struct VendorAFileList<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    #[schema(schema_with = files_schema)]
    data: Vec<FileView<'a>>,
    #[schema(required)]
    first_id: Option<String>,
    /// The value of `after_id` for the next page.
    #[schema(required)]
    last_id: Option<String>,
    has_more: bool,
}

/// A page of files in the shape of another vendor's files API.
#[derive(Serialize, ToSchema)]
struct VendorBFileList<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    #[schema(pattern = "^list$")]
    object: &'static str,
    #[schema(schema_with = files_schema)]
    data: Vec<FileView<'a>>,
    #[schema(required)]
    first_id: Option<String>,
    /// The value of `after` for the next page.
    #[schema(required)]
    last_id: Option<String>,
    has_more: bool,
}

/// A deletion in the shapes `native` and `vendor_a`, which differ only in `_shape`.
#[derive(Serialize, ToSchema)]
struct NativeFileDeleted<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    id: &'a str,
    #[schema(pattern = "^file_deleted$")]
    r#type: &'static str,
}

/// A deletion in the shape of another vendor's files API.
#[derive(Serialize, ToSchema)]
struct VendorBFileDeleted<'a> {
    #[serde(rename = "_shape")]
    shape: &'static str,
    id: &'a str,
    #[schema(pattern = "^file$")]
    object: &'static str,
    deleted: bool,
}

fn files_schema() -> ArrayBuilder {
    ArrayBuilder::new().items(Ref::from_schema_name("File"))
}

/// Returns the schema of a file. The document completes it with the values of `_shape`.
pub(crate) fn file_schema() -> BodySchema {
    let shapes = [
        BodySchema::named::<NativeFile<'_>>("NativeFile", "A stored file in the service's own shape."),
        BodySchema::named::<NativeFile<'_>>("VendorAFile", "A stored file in the shape of one vendor's files API."),
        BodySchema::of::<VendorBFile<'_>>(),
    ];
    union_schema("File", "A stored file, in one of three shapes.", shapes)
}

/// Returns the schema of a page of files.
pub(super) fn list_schema() -> BodySchema {
    let shapes = [
        BodySchema::of::<NativeFileList<'_>>(),
        BodySchema::of::<VendorAFileList<'_>>(),
        BodySchema::of::<VendorBFileList<'_>>(),
    ];
    let mut list = union_schema("FileList", "A page of files, in one of three shapes.", shapes);
    list.schemas.extend(file_schema().schemas);
    list
}

/// Returns the schema of a deletion.
pub(super) fn deleted_schema() -> BodySchema {
    let of_vendor = "The deletion of a file in the shape of one vendor's files API.";
    let shapes = [
        BodySchema::named::<NativeFileDeleted<'_>>(
            "NativeFileDeleted",
            "The deletion of a file in the service's own shape.",
        ),
        BodySchema::named::<NativeFileDeleted<'_>>("VendorAFileDeleted", of_vendor),
        BodySchema::of::<VendorBFileDeleted<'_>>(),
    ];
    union_schema("FileDeleted", "The deletion of a file, in one of three shapes.", shapes)
}

fn union_schema(name: &str, description: &str, shapes: [BodySchema; 3]) -> BodySchema {
    let union = OneOfBuilder::new().description(Some(description));
    let union = shapes.iter().fold(union, |union, shape| union.item(Ref::from_schema_name(&shape.name)));
    let mut schemas = vec![(name.to_owned(), union.into())];
    schemas.extend(shapes.into_iter().flat_map(|shape| shape.schemas));
    BodySchema { name: name.to_owned(), schemas }
}

#[cfg(test)]
mod tests;
