//! `POST /containers/{container_id}/files/{file_id}/promote`: copies a container file into the workspace documents.

use std::pin::pin;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use chrono::SecondsFormat;
use domain::error::ErrorKind;
use domain::file::{Document, InvalidIdempotencyKey, PromoteError};
use domain::usage::RejectionReason;
use futures_util::future::{Either, join, select};
use tokio_util::sync::CancellationToken;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::OneOfBuilder;

use crate::endpoints::prelude::*;
use crate::http::client::{FileShape, WireNames, is_openai_package};
use crate::http::detach::box_in_place;
use crate::http::operation::{FILE_ID, example_path, header};

pub(crate) const ROUTE: Route = Route::any_key(
    Method::Post,
    "/containers/{container_id}/files/{file_id}/promote",
    |call, caller, _| Box::pin(handle(call, caller)),
    tags::FILES,
    describe,
);

fn describe() -> Operation {
    Operation::new("promoteContainerFile", "Promote a container file into workspace documents")
        .description(
            "Copies the file from the container's sandbox prefix into the workspace's durable document storage. \
             Counts against the workspace's storage quota. The shape of the answer follows the headers \
             `anthropic-version`, `User-Agent` and `X-Stainless-*`.",
        )
        .parameter(example_path(
            "container_id",
            "The container's id from a tool result: 1 to 128 of A-Z a-z 0-9 _ -",
            "sess_demo",
        ))
        .parameter(example_path("file_id", "`cfile_` and the unpadded base64url encoding of the file's path", FILE_ID))
        .parameter(header(
            "Idempotency-Key",
            "A retry with the same key within 24 hours returns the first document.",
            255,
        ))
        .answer(file_schema(), "The new document", &[400, 404])
}

impl From<PromoteError> for ApiError {
    fn from(error: PromoteError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            PromoteError::ContainerId(_)
            | PromoteError::FileId(_)
            | PromoteError::IdempotencyKey(_)
            | PromoteError::IdempotencyKeyReused
            | PromoteError::HardLinked { .. } => plain.message(error.to_string()),
            PromoteError::NotFound => plain,
            PromoteError::TooLarge { file_bytes, max_bytes } => {
                plain.metadata("file_bytes", file_bytes).metadata("max_file_bytes", max_bytes)
            }
            PromoteError::QuotaExceeded { quota_bytes, used_bytes, file_bytes, charged_bytes } => plain
                .reason(RejectionReason::StorageQuotaExceeded)
                .message("The workspace's storage quota does not allow this file")
                .metadata("quota_bytes", quota_bytes)
                .metadata("used_bytes", used_bytes)
                .metadata("file_bytes", file_bytes)
                .metadata("charged_bytes", charged_bytes),
            PromoteError::TooManyDocuments { max_documents, documents } => plain
                .reason(RejectionReason::StorageQuotaExceeded)
                .message(error.to_string())
                .metadata("max_documents", max_documents)
                .metadata("documents", documents),
            PromoteError::SourceChanged => {
                plain.reason(RejectionReason::SourceChanged).metadata("reason", error.to_string())
            }
            PromoteError::StillInProgress => {
                plain.reason(RejectionReason::PromotionInProgress).metadata("reason", error.to_string())
            }
            PromoteError::Store(store) => Self::store(store),
        }
    }
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let key = caller.inference()?.clone();
    let headers = call.request.headers();
    let [container_id, file_id, _] = call.parameters;
    let container_id = text_of(container_id, "container_id")?;
    let file_id = text_of(file_id, "file_id")?;
    let idempotency_key = idempotency_key(headers)?;
    let promote = Arc::clone(&call.gateway.services.promote);
    let (stopping, disconnected) = (call.gateway.stopping.clone(), CancellationToken::new());
    let left = disconnected.clone();
    let work = box_in_place(|| async move {
        let key_text = idempotency_key.as_deref();
        let wait_ends = async {
            select(pin!(left.cancelled()), pin!(stopping.cancelled())).await;
        };
        let promoted = promote.execute(&key, &container_id, &file_id, key_text, wait_ends);
        let abandoned = join(left.cancelled(), stopping.cancelled());
        // `abandoned` is polled first: timers and connections of a thread that has stopped must not be polled again.
        match select(pin!(abandoned), pin!(promoted)).await {
            Either::Left(_) => Err(ApiError::from_kind(ErrorKind::Unavailable)
                .caused_by("the server stops, and the client of the promotion has disconnected")),
            Either::Right((promoted, _)) => Ok::<_, ApiError>(promoted?),
        }
    });
    // A started copy is finished or undone, even if the client disconnects; only a stop abandons it then.
    let document = call.run_detachable(work, disconnected).await?;
    Ok(view(&document, shape_for(headers), call.wire_names()))
}

fn text_of(segment: &str, name: &str) -> Result<String, ApiError> {
    parameters::segment(segment)
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| ApiError::invalid(format!("{name} is not UTF-8 when decoded")))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(key), None) => Ok(Some(key.to_owned())),
        (_, Some(_)) => Err(ApiError::invalid("Idempotency-Key is in the request more than once")),
        (Err(_), None) => Err(PromoteError::from(InvalidIdempotencyKey).into()),
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

/// Returns the schema of a file. The document completes it with the values of `_shape`.
fn file_schema() -> BodySchema {
    let shapes = [
        BodySchema::named::<NativeFile<'_>>("NativeFile", "A stored file in the service's own shape."),
        BodySchema::named::<NativeFile<'_>>("VendorAFile", "A stored file in the shape of one vendor's files API."),
        BodySchema::of::<VendorBFile<'_>>(),
    ];
    let file = OneOfBuilder::new().description(Some("A stored file, in one of three shapes."));
    let file = shapes.iter().fold(file, |file, shape| file.item(Ref::from_schema_name(&shape.name)));
    let mut schemas = vec![("File".to_owned(), file.into())];
    schemas.extend(shapes.into_iter().flat_map(|shape| shape.schemas));
    BodySchema { name: "File".to_owned(), schemas }
}

fn view(document: &Document, shape: FileShape, names: WireNames) -> HttpResponse {
    let name = names.shape(shape);
    match shape {
        FileShape::Native | FileShape::VendorA => HttpResponse::Ok().json(NativeFile {
            shape: name,
            id: document.id.as_str(),
            r#type: "file",
            filename: &document.filename,
            mime_type: &document.media_type,
            size_bytes: document.size_bytes,
            created_at: document.created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
            downloadable: true,
        }),
        FileShape::VendorB => HttpResponse::Ok().json(VendorBFile {
            shape: name,
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

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::http::header::{HeaderName, HeaderValue};
    use chrono::DateTime;
    use domain::ids::WorkspaceId;
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

    #[test]
    fn duplicate_idempotency_key_is_rejected() {
        let key = |pairs| idempotency_key(&headers(pairs)).map_err(|error| error.status().as_u16());
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[("idempotency-key", "a")]), Ok(Some("a".to_owned())));
        assert_eq!(key(&[("idempotency-key", "a"), ("idempotency-key", "a")]), Err(400));
        let mut odd = HeaderMap::new();
        odd.insert(HeaderName::from_static("idempotency-key"), HeaderValue::from_bytes(b"\xc3\xa9").unwrap());
        assert_eq!(idempotency_key(&odd).unwrap_err().status().as_u16(), 400);
    }

    async fn shown(shape: FileShape, names: WireNames) -> String {
        let document = Document {
            id: "tgfile_1".parse().unwrap(),
            workspace_id: WorkspaceId::from_uuid(Uuid::nil()),
            filename: "out/\"a\".png".into(),
            media_type: "image/png".into(),
            size_bytes: 48_213,
            sha256: String::new(),
            created_at: DateTime::from_timestamp_millis(1_795_252_443_512).unwrap(),
        };
        let body = to_bytes(view(&document, shape, names).into_body()).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
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
    async fn each_shape_matches_its_schema() {
        for shape in [FileShape::Native, FileShape::VendorA, FileShape::VendorB] {
            for names in WireNames::ALL {
                crate::app::assert_valid("File", &serde_json::from_str(&shown(shape, names).await).unwrap());
            }
        }
    }

    #[test]
    fn promote_error_names_sizes_when_size_is_exceeded() {
        let error = ApiError::from(PromoteError::TooLarge { file_bytes: 11, max_bytes: 10 });
        assert_eq!((error.status().as_u16(), error.parts().metadata["max_file_bytes"].clone()), (413, 10.into()));
        let error = ApiError::from(PromoteError::QuotaExceeded {
            quota_bytes: 9,
            used_bytes: 5,
            file_bytes: 6,
            charged_bytes: 7,
        });
        assert_eq!(error.status().as_u16(), 403);
        assert_eq!(error.parts().metadata["used_bytes"], 5);
        assert_eq!(error.parts().metadata["charged_bytes"], 7);
        let error = ApiError::from(PromoteError::TooManyDocuments { max_documents: 3, documents: 4 });
        assert_eq!((error.status().as_u16(), error.parts().metadata["max_documents"].clone()), (403, 3.into()));
        assert_eq!(error.text(), "the workspace has 4 documents and may have 3");
        let error = ApiError::from(PromoteError::HardLinked { links: 2 });
        assert_eq!(error.status().as_u16(), 400);
        assert!(error.text().contains("2 hard links"), "{}", error.text());
        assert_eq!(ApiError::from(PromoteError::SourceChanged).status().as_u16(), 503);
        assert_eq!(ApiError::from(PromoteError::NotFound).text(), "Resource not found");
    }
}
