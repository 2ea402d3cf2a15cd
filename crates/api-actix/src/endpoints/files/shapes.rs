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
    #[schema(format = DateTime)]
    created_at: String,
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
    one_of("File", "A stored file, in one of three shapes.", shapes)
}

/// Returns the schema of a page of files.
pub(super) fn list_schema() -> BodySchema {
    let shapes = [
        BodySchema::of::<NativeFileList<'_>>(),
        BodySchema::of::<VendorAFileList<'_>>(),
        BodySchema::of::<VendorBFileList<'_>>(),
    ];
    let mut list = one_of("FileList", "A page of files, in one of three shapes.", shapes);
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
    one_of("FileDeleted", "The deletion of a file, in one of three shapes.", shapes)
}

fn one_of(name: &str, description: &str, shapes: [BodySchema; 3]) -> BodySchema {
    let union = OneOfBuilder::new().description(Some(description));
    let union = shapes.iter().fold(union, |union, shape| union.item(Ref::from_schema_name(&shape.name)));
    let mut schemas = vec![(name.to_owned(), union.into())];
    schemas.extend(shapes.into_iter().flat_map(|shape| shape.schemas));
    BodySchema { name: name.to_owned(), schemas }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::http::header::{HeaderName, HeaderValue};
    use chrono::DateTime;
    use domain::ids::WorkspaceId;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let mut headers = HeaderMap::new();
        pairs.iter().map(pair).for_each(|(name, value)| headers.append(name, value));
        headers
    }

    #[test]
    fn shape_follows_client_headers() {
        let cases: [(&[(&str, &str)], FileShape); 8] = [
            (&[], FileShape::Native),
            (&[("user-agent", "curl/8")], FileShape::Native),
            (&[("user-agent", "MyOpenAI/1")], FileShape::Native),
            (&[("user-agent", "OpenAI/Python 2.1")], FileShape::VendorB),
            (&[("user-agent", "AsyncOpenAI/Python 2.1")], FileShape::VendorB),
            (&[("x-stainless-lang", "js")], FileShape::VendorB),
            (&[("x-stainless-lang", "js"), ("anthropic-version", "2023-06-01")], FileShape::VendorA),
            (&[("anthropic-version", "2023-06-01")], FileShape::VendorA),
        ];
        for (pairs, shape) in cases {
            assert_eq!(shape_for(&headers(pairs)), shape, "{pairs:?}");
        }
    }

    fn document() -> Document {
        Document {
            id: "tgfile_1".parse().unwrap(),
            workspace_id: WorkspaceId::from_uuid(Uuid::nil()),
            filename: "out/\"a\".png".into(),
            media_type: "image/png".into(),
            size_bytes: 48_213,
            sha256: String::new(),
            created_at: DateTime::from_timestamp_millis(1_795_252_443_512).unwrap(),
        }
    }

    async fn text(response: HttpResponse) -> String {
        String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
    }

    async fn shown(shape: FileShape, names: WireNames) -> String {
        text(Shape::named(shape, names).file(&document())).await
    }

    async fn json(response: HttpResponse) -> Value {
        serde_json::from_str(&text(response).await).unwrap()
    }

    #[actix_web::test]
    async fn each_shape_has_its_contract_members() {
        let native = concat!(
            r#""id":"tgfile_1","type":"file","filename":"out/\"a\".png","mime_type":"image/png","#,
            r#""size_bytes":48213,"created_at":"2026-11-21T09:14:03.512Z","downloadable":true}"#
        );
        assert_eq!(shown(FileShape::Native, WireNames::Interface).await, format!(r#"{{"_shape":"native",{native}"#));
        assert_eq!(shown(FileShape::VendorA, WireNames::Interface).await, format!(r#"{{"_shape":"vendor_a",{native}"#));
        assert_eq!(
            shown(FileShape::VendorA, WireNames::OpenRouter).await,
            format!(r#"{{"_shape":"anthropic",{native}"#)
        );
        assert_eq!(
            shown(FileShape::VendorB, WireNames::Interface).await,
            concat!(
                r#"{"_shape":"vendor_b","id":"tgfile_1","object":"file","bytes":48213,"created_at":1795252443,"#,
                r#""filename":"out/\"a\".png","purpose":"assistants_output","status":"processed"}"#
            )
        );
        assert!(shown(FileShape::VendorB, WireNames::OpenRouter).await.contains(r#""_shape":"openai""#));
        assert!(shown(FileShape::Native, WireNames::OpenRouter).await.contains(r#""_shape":"openrouter""#));
    }

    #[actix_web::test]
    async fn lists_and_deletions_have_the_members_that_clients_decode() {
        let shape = |shape| Shape::named(shape, WireNames::OpenRouter);
        let (native, vendor_a, vendor_b) =
            (shape(FileShape::Native), shape(FileShape::VendorA), shape(FileShape::VendorB));
        let (more, empty) = (
            DocumentList { documents: vec![document()], has_more: true },
            DocumentList { documents: Vec::new(), has_more: false },
        );
        let shown = json(native.list(&more)).await;
        assert_eq!(shown["cursor"], json!(more.cursor().unwrap()));
        assert_eq!((&shown["data"][0]["_shape"], &shown["has_more"]), (&json!("openrouter"), &json!(true)));
        assert_eq!((&shown["first_id"], &shown["last_id"]), (&json!("tgfile_1"), &json!("tgfile_1")));
        let none = json!({
            "_shape": "openrouter", "data": [], "cursor": null, "first_id": null, "last_id": null, "has_more": false
        });
        assert_eq!(json(native.list(&empty)).await, none);
        let none = json!({"_shape": "anthropic", "data": [], "first_id": null, "last_id": null, "has_more": false});
        assert_eq!(json(vendor_a.list(&empty)).await, none);
        let none = json!({
            "_shape": "openai", "object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false
        });
        assert_eq!(json(vendor_b.list(&empty)).await, none);
        let deleted = json!({"_shape": "openrouter", "id": "tgfile_1", "type": "file_deleted"});
        assert_eq!(json(native.deleted(&document())).await, deleted);
        let deleted = json!({"_shape": "openai", "id": "tgfile_1", "object": "file", "deleted": true});
        assert_eq!(json(vendor_b.deleted(&document())).await, deleted);
    }

    #[actix_web::test]
    async fn each_shape_matches_its_schema() {
        let list = DocumentList { documents: vec![document()], has_more: true };
        for shape in [FileShape::Native, FileShape::VendorA, FileShape::VendorB] {
            for names in WireNames::ALL {
                let shape = Shape::named(shape, names);
                crate::app::assert_valid("File", &json(shape.file(&document())).await);
                crate::app::assert_valid("FileList", &json(shape.list(&list)).await);
                crate::app::assert_valid("FileDeleted", &json(shape.deleted(&document())).await);
            }
        }
    }
}
